//! `interlock approval`: the tenant's open approvals, and votes on them.

mod decide;
mod delegate;
mod find;
mod list;
mod show;

use clap::{Args, Subcommand};
use interlock_core::state::ApprovalState;

use crate::client::ClientArgs;
use crate::output::paint::Tone;

#[derive(Args)]
pub struct ApprovalArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    verb: ApprovalVerb,
}

#[derive(Subcommand)]
enum ApprovalVerb {
    /// List open approvals: those that you may decide first, and of these what is due first.
    List(list::ListApprovalsArgs),
    /// Show an approval: what is asked, who may decide, who has decided.
    Show(ApprovalArg),
    /// Say yes, to one or several; each is checked on its own. Only people can, not keys (`interlock login --user NAME`).
    Approve(decide::ApproveArgs),
    /// Say no, to one or several. One no is enough.
    Reject(decide::RejectArgs),
    /// Delegate your right to decide to another person for a time; you and they count as one person meanwhile.
    Delegate(delegate::DelegateArgs),
    /// List who decides for whom.
    Delegations(delegate::DelegationsArgs),
    /// End a delegation at once.
    Undelegate(delegate::UndelegateArgs),
}

/// Which one is meant.
#[derive(Debug, Args)]
struct ApprovalArg {
    /// The approval's id or the end of it, or the run that waits for it: its id, the end of it, its subject, `latest`.
    #[arg(value_name = "APPROVAL")]
    which: String,
}

pub async fn run(args: ApprovalArgs) -> anyhow::Result<()> {
    let (client, printer) = args.client.open()?;
    match args.verb {
        ApprovalVerb::List(args) => list::run(&client, printer, args).await,
        ApprovalVerb::Show(args) => show::run(&client, printer, &args.which).await,
        ApprovalVerb::Approve(args) => decide::approve(&client, printer, args).await,
        ApprovalVerb::Reject(args) => decide::reject(&client, printer, args).await,
        ApprovalVerb::Delegate(args) => delegate::delegate(&client, printer, args).await,
        ApprovalVerb::Delegations(args) => delegate::list(&client, printer, args).await,
        ApprovalVerb::Undelegate(args) => delegate::undelegate(&client, printer, args).await,
    }
}

const fn tone(state: ApprovalState) -> Tone {
    match state {
        ApprovalState::Requested => Tone::Careful,
        ApprovalState::Approved => Tone::Good,
        ApprovalState::Rejected | ApprovalState::Expired => Tone::Bad,
        ApprovalState::Canceled => Tone::Dim,
    }
}
