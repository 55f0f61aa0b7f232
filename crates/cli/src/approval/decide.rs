//! `interlock approval approve | reject`: one person's word, on exactly what is shown before.

use clap::Args;
use interlock_core::state::ApprovalState;
use interlock_core::text::visible::{visible, visible_lines};
use interlock_protocol::approvals::{ApprovalView, CastVote, Voted, path};
use serde::Serialize;

use super::{find, show, tone};
use crate::client::{Client, fill};
use crate::output::Printer;
use crate::output::causes::causes;
use crate::output::confirm::confirm;
use crate::output::exit::{Exit, ExitError};
use crate::output::paint::{Paint, Tone};
use crate::output::tell::fallen_vote;

/// Approvals that one command decides, at most.
const DECIDED_AT_ONCE_MAX: usize = 50;

#[derive(Debug, Args)]
pub struct ApproveArgs {
    #[command(flatten)]
    which: ManyApprovalsArg,
    /// Why; it stands beside your vote.
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    sure: ConfirmVote,
}

#[derive(Debug, Args)]
pub struct RejectArgs {
    #[command(flatten)]
    which: ManyApprovalsArg,
    /// Why; it stands beside your vote.
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    sure: ConfirmVote,
}

/// Which ones are meant.
#[derive(Debug, Args)]
struct ManyApprovalsArg {
    /// The approvals: each by its id or the end of it, or by the run that waits for it: its id, the end of it, its subject,
    /// `latest`.
    #[arg(value_name = "APPROVAL", required = true, num_args = 1..=DECIDED_AT_ONCE_MAX)]
    which: Vec<String>,
}

#[derive(Debug, Args)]
struct ConfirmVote {
    /// The digest of what you have looked at (`interlock approval show`); anything else is refused. For one approval.
    #[arg(long)]
    digest: Option<String>,
    /// The person whose right to decide you use, who has delegated it to you. By default your own right
    /// if that is enough, else a delegated one that is.
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

/// What became of one of several votes.
#[derive(Debug, Serialize)]
struct DecidedApproval {
    /// As it was named.
    which: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    vote: Option<Voted>,
    /// Why it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

async fn vote(
    client: &Client,
    printer: Printer,
    which: &ManyApprovalsArg,
    sure: ConfirmVote,
    approve: bool,
    notes: Option<String>,
) -> anyhow::Result<()> {
    let [only] = which.which.as_slice() else {
        return vote_on_each(client, printer, which, sure, approve, notes).await;
    };
    let shown = open(client, only, approve).await?;
    if !sure.yes {
        printer.note(&show::card(&shown, printer.paint, printer.prose_width()));
    }
    confirm(sure.yes, if approve { "Approve this?" } else { "Reject this?" })?;
    let (digest, on_behalf_of) = (sure.digest.unwrap_or_else(|| shown.digest.clone()), sure.on_behalf_of);
    let body = CastVote { approve, digest, notes, on_behalf_of };
    let voted = cast(client, &shown, &body).await?;
    printer.show(&voted, |paint| said(&voted, paint))
}

/// One vote after the other: each counts, or is refused, by itself.
async fn vote_on_each(
    client: &Client,
    printer: Printer,
    which: &ManyApprovalsArg,
    sure: ConfirmVote,
    approve: bool,
    notes: Option<String>,
) -> anyhow::Result<()> {
    if sure.digest.is_some() {
        return Err(ExitError::saying(Exit::Usage, "`--digest` is for one approval: name one, or leave it out"));
    }
    let mut found = Vec::with_capacity(which.which.len());
    for name in &which.which {
        let shown = open(client, name, approve).await;
        if let (false, Ok(shown)) = (sure.yes, &shown) {
            printer.note(&show::card(shown, printer.paint, printer.prose_width()));
        }
        found.push((name, shown));
    }
    let open = found.iter().filter(|(_, shown)| shown.is_ok()).count();
    if open > 0 {
        confirm(sure.yes, &format!("{} these {open}?", if approve { "Approve" } else { "Reject" }))?;
    }
    let mut answers = Vec::with_capacity(found.len());
    for (name, shown) in found {
        let voted = match shown {
            Ok(shown) => {
                let (digest, on_behalf_of) = (shown.digest.clone(), sure.on_behalf_of.clone());
                cast(client, &shown, &CastVote { approve, digest, notes: notes.clone(), on_behalf_of }).await
            }
            Err(error) => Err(error),
        };
        let (vote, refused) = match voted {
            Ok(voted) => (Some(voted), None),
            Err(error) => (None, Some(causes(&error))),
        };
        answers.push(DecidedApproval { which: name.clone(), vote, refused });
    }
    printer.show(&answers, |paint| {
        let line = |answer: &DecidedApproval| match (&answer.vote, &answer.refused) {
            (Some(voted), _) => said(voted, paint),
            (None, why) => {
                let why = visible_lines(why.as_deref().unwrap_or_default()).into_owned();
                format!("{} {}: {why}\n", visible(&answer.which), paint.tone(Tone::Bad, "was not decided"))
            }
        };
        answers.iter().map(line).collect()
    })?;
    match answers.iter().filter(|answer| answer.refused.is_some()).count() {
        0 => Ok(()),
        refused => {
            let what = format!("{refused} of {} were not decided", answers.len());
            Err(ExitError::saying(Exit::Refused, what))
        }
    }
}

/// The approval that is meant, if it is still open, or has a vote like this one already: an approver who did not get an
/// answer votes once more.
async fn open(client: &Client, name: &str, approve: bool) -> anyhow::Result<ApprovalView> {
    let shown = find::approval(client, name).await?;
    let is_open = shown.state == ApprovalState::Requested;
    if !is_open && !shown.votes.iter().any(|vote| vote.approve == approve) {
        return Err(ExitError::saying(Exit::Refused, over(&shown)));
    }
    Ok(shown)
}

/// Votes. The server knows whether it is the same person's word once more, and answers as it did the first time.
async fn cast(client: &Client, shown: &ApprovalView, body: &CastVote) -> anyhow::Result<Voted> {
    let voted = client.post(fill(path::VOTE, &[("approval", &shown.approval)]), body).send::<Voted>().await;
    voted.map_err(|error| {
        if shown.state == ApprovalState::Requested {
            error.into()
        } else {
            ExitError::saying(Exit::Refused, over(shown))
        }
    })
}

/// Where approval and run stand.
fn said(voted: &Voted, paint: Paint) -> String {
    let ApprovalView { approval, state, votes, fallen, quorum, run_id, .. } = &voted.approval;
    let yes = votes.iter().filter(|vote| vote.approve).count();
    let more = match state {
        ApprovalState::Requested => format!(" ({yes} of {quorum}; another person has to say yes)"),
        _ => String::new(),
    };
    let state = paint.tone(tone(*state), state.as_str());
    let fallen = fallen.iter().fold(String::new(), |told, fell| format!("{told}{}\n", fallen_vote(fell)));
    format!("{}\n{approval} is {state}{more}; {run_id} is {}\n{fallen}", visible(&voted.summary), voted.run_state)
}

/// What became of an approval that is not open any more.
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
