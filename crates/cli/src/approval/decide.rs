//! `interlock approval approve | reject`: one person's word, on exactly what is shown before.

use clap::Args;
use interlock_core::state::ApprovalState;
use interlock_core::text::visible::visible;
use interlock_protocol::approvals::{ApprovalView, CastVote, Voted, path};

use super::{Which, find, show, tone};
use crate::client::{Client, fill};
use crate::output::Printer;
use crate::output::confirm::confirm;
use crate::output::exit::{Ended, Exit};

#[derive(Debug, Args)]
pub struct ApproveArgs {
    #[command(flatten)]
    which: Which,
    /// Why; it stands beside your vote.
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    sure: ConfirmVote,
}

#[derive(Debug, Args)]
pub struct RejectArgs {
    #[command(flatten)]
    which: Which,
    /// Why; it stands beside your vote.
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    sure: ConfirmVote,
}

#[derive(Debug, Args)]
struct ConfirmVote {
    /// The digest of what you have looked at (`interlock approval show`); anything else is refused.
    #[arg(long)]
    digest: Option<String>,
    /// The person whose right to decide you use, who has delegated it to you. By default your own if
    /// it is enough, else one that is.
    #[arg(long, value_name = "NAME")]
    on_behalf_of: Option<String>,
    /// Do not ask.
    #[arg(long, short = 'y')]
    yes: bool,
}

pub async fn approve(client: &Client, printer: Printer, args: ApproveArgs) -> anyhow::Result<()> {
    vote(client, printer, &args.which, args.sure, true, args.reason).await
}

pub async fn reject(client: &Client, printer: Printer, args: RejectArgs) -> anyhow::Result<()> {
    vote(client, printer, &args.which, args.sure, false, Some(args.reason)).await
}

async fn vote(
    client: &Client,
    printer: Printer,
    which: &Which,
    sure: ConfirmVote,
    approve: bool,
    notes: Option<String>,
) -> anyhow::Result<()> {
    let shown = find::approval(client, &which.which).await?;
    if shown.state != ApprovalState::Requested {
        return Err(Ended::saying(Exit::Refused, over(&shown)));
    }
    if !sure.yes {
        printer.note(&show::card(&shown, printer.paint));
    }
    confirm(sure.yes, if approve { "Approve this?" } else { "Reject this?" })?;
    let (digest, on_behalf_of) = (sure.digest.unwrap_or(shown.digest), sure.on_behalf_of);
    let body = CastVote { approve, digest, notes, on_behalf_of };
    let voted: Voted = client.post(fill(path::VOTE, &[("approval", &shown.approval)]), &body).send().await?;
    printer.show(&voted, |paint| {
        let ApprovalView { approval, state, votes, quorum, run_id, .. } = &voted.approval;
        let yes = votes.iter().filter(|vote| vote.approve).count();
        let more = match state {
            ApprovalState::Requested => format!(" ({yes} of {quorum}; another person has to say yes)"),
            _ => String::new(),
        };
        let state = paint.tone(tone(*state), state.as_str());
        format!("{}\n{approval} is {state}{more}; {run_id} is {}\n", visible(&voted.summary), voted.run_state)
    })
}

/// What became of an approval on which nobody can vote any more.
fn over(approval: &ApprovalView) -> String {
    let id = approval.approval;
    let by = |approve: bool| {
        let people: Vec<_> =
            approval.votes.iter().filter(|vote| vote.approve == approve).map(|vote| vote.person.as_str()).collect();
        visible(&people.join(", ")).into_owned()
    };
    match approval.state {
        ApprovalState::Approved => format!("{id} is approved already, by {}", by(true)),
        ApprovalState::Rejected => format!("{id} is rejected already, by {}", by(false)),
        ApprovalState::Expired => format!("{id} has expired: it was not decided in time"),
        ApprovalState::Canceled | ApprovalState::Requested => {
            format!("{id} is {}: there is nothing to decide", approval.state)
        }
    }
}
