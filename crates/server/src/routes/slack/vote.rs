//! From a press to a vote. The vote is cast where every vote is cast; here is only said who pressed, on what, and what they
//! are told when it does not count.

use std::time::Duration;

use interlock_core::state::ApprovalState;
use interlock_core::text::visible::visible;
use interlock_core::work::notice::Notice;
use interlock_engine::slack::api::{SlackClient, Whisper};
use interlock_engine::slack::card::{escaped, reject_dialog};
use interlock_engine::slack::take::{Interaction, Press, Presser};
use interlock_store::{ApprovalRow, SlackRow};

use super::dialog::PressedCard;
use super::presser::{PressRefusal, identify};
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::links::login_link;
use crate::routes::approvals::vote::{VoteInput, cast, loaded};
use crate::routes::approvals::voter::VoterClaims;
use crate::state::AppState;

/// How often, and how far apart, it is looked where a card is that was just posted: within Slack's three seconds.
const RECORDED_TRIES: u32 = 10;
const RECORDED_EVERY: Duration = Duration::from_millis(100);

/// Works on a press. Slack's request has been answered before.
pub async fn take(state: &AppState, slack: &SlackRow, interaction: Interaction) {
    let client = match state.slack().client(slack) {
        Ok(client) => client,
        Err(error) => {
            tracing::warn!(tenant = %slack.tenant, %error, "a press in Slack cannot be answered");
            return;
        }
    };
    let (whom, outcome) = match interaction {
        Interaction::Approve { by, press } => {
            let outcome = approve(state, slack, &client, &by, &press).await;
            (whisper(&by, &press.channel, press.response_url), outcome)
        }
        Interaction::Reject { by, press } => {
            let outcome = ask_comment(state, slack, &client, &by, &press).await;
            (whisper(&by, &press.channel, press.response_url), outcome)
        }
        Interaction::Rejected { by, metadata, comment } => {
            let Some(card) = PressedCard::open(state, slack, &by, &metadata) else {
                tracing::warn!(tenant = %slack.tenant, "a dialog came from Slack that was not opened here");
                return;
            };
            let outcome = reject(state, slack, &client, &by, &card, comment).await;
            (whisper(&by, &card.channel, None), outcome)
        }
        Interaction::Other => return,
    };
    let text = match outcome {
        Ok(Ok(())) => return,
        Ok(Err(PressRefusal(text))) => text,
        Err(error) => words(state, &error),
    };
    if let Err(failure) = client.whisper(&whom, &text).await {
        tracing::warn!(tenant = %slack.tenant, %failure, "the Slack user was not told why their press did not count");
    }
}

type Outcome = Result<Result<(), PressRefusal>, ApiError>;

async fn approve(state: &AppState, slack: &SlackRow, client: &SlackClient, by: &Presser, press: &Press) -> Outcome {
    let caller = match identify(state, client, slack, by).await? {
        Ok(caller) => caller,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let Some(card) = PressedCard::of(press) else { return Ok(Err(not_ours())) };
    let row = match current(state, slack, &card).await? {
        Ok(row) => row,
        Err(refusal) => return Ok(Err(refusal)),
    };
    decide(state, &caller, row, card, None).await
}

async fn ask_comment(state: &AppState, slack: &SlackRow, client: &SlackClient, by: &Presser, press: &Press) -> Outcome {
    let caller = match identify(state, client, slack, by).await? {
        Ok(caller) => caller,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let Some(card) = PressedCard::of(press) else { return Ok(Err(not_ours())) };
    let row = match current(state, slack, &card).await? {
        Ok(row) => row,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let run = loaded(state, caller.tenant, row.run).await?;
    let subject = format!("{} step {}", visible(&run.plan.workflow), visible(&run.spec(row.position).key));
    let view = reject_dialog(&subject, &card.seal(state, slack, by));
    // Slack takes it for three seconds after the press.
    match client.open_view(&press.trigger_id, view).await {
        Ok(()) => Ok(Ok(())),
        Err(failure) => {
            tracing::warn!(tenant = %slack.tenant, %failure, "the dialog for a rejection could not be opened");
            Ok(Err(PressRefusal("The dialog could not be opened. Press again, or reject in the console.".to_owned())))
        }
    }
}

async fn reject(
    state: &AppState,
    slack: &SlackRow,
    client: &SlackClient,
    by: &Presser,
    card: &PressedCard,
    comment: String,
) -> Outcome {
    let caller = match identify(state, client, slack, by).await? {
        Ok(caller) => caller,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let row = match current(state, slack, card).await? {
        Ok(row) => row,
        Err(refusal) => return Ok(Err(refusal)),
    };
    decide(state, &caller, row, card.clone(), Some(comment)).await
}

/// The approval of a card, if it is the card that is kept up to date: a copy could say anything.
async fn current(
    state: &AppState,
    slack: &SlackRow,
    card: &PressedCard,
) -> Result<Result<ApprovalRow, PressRefusal>, ApiError> {
    let store = state.for_tenant(slack.tenant);
    let Some(row) = store.approval(card.approval).await? else { return Ok(Err(not_ours())) };
    for _ in 0..RECORDED_TRIES {
        let notices = store.notices(card.approval).await?;
        let Some(posted) = notices.into_iter().find(|notice| notice.kind == Notice::Card) else { break };
        if let (Some(channel), Some(ts)) = (posted.channel, posted.ts) {
            let same = ts == card.ts && channel == card.channel;
            return Ok(if same { Ok(row) } else { Err(not_ours()) });
        }
        // People can be faster than the commit that says where the card is.
        tokio::time::sleep(RECORDED_EVERY).await;
    }
    Ok(Err(not_ours()))
}

/// A comment is a rejection.
async fn decide(
    state: &AppState,
    caller: &Caller,
    row: ApprovalRow,
    card: PressedCard,
    comment: Option<String>,
) -> Outcome {
    let approve = comment.is_none();
    let person = caller.as_voter()?;
    if row.state != ApprovalState::Requested {
        // The second press of the same button by the same person changes nothing. While it is open, `cast` sees to that: the
        // vote may count no more.
        if row.votes.iter().any(|vote| vote.person == person && vote.approve == approve) {
            return Ok(Ok(()));
        }
        return Ok(Err(PressRefusal(format!("This is {} already; your press has changed nothing.", row.state))));
    }
    let run = loaded(state, caller.tenant, row.run).await?;
    let word = VoteInput { approve, notes: comment, digest: Some(card.digest), by: VoterClaims::default() };
    cast(state, caller, &run, row, word).await?;
    Ok(Ok(()))
}

fn whisper(by: &Presser, channel: &str, response_url: Option<String>) -> Whisper {
    Whisper { channel: channel.to_owned(), user: by.user.clone(), response_url }
}

fn not_ours() -> PressRefusal {
    PressRefusal(
        "This card is not the one that Interlock keeps up to date. Decide on the newest card, or in the console."
            .to_owned(),
    )
}

/// Why a vote does not count, for the Slack user who pressed.
fn words(state: &AppState, error: &ApiError) -> String {
    let base = state.base_url(&axum::http::HeaderMap::new());
    match error.code() {
        "APPROVAL_CHANGED" => {
            "This card is outdated: what is asked has changed since it was posted. Nothing was decided; \
                               look at the newest card."
                .to_owned()
        }
        "SIGN_IN_AGAIN" => {
            let address = login_link(&base);
            format!("{} <{}|Sign in>", escaped(error.detail()), escaped(&address))
        }
        _ if error.status().is_server_error() => {
            tracing::warn!(code = error.code(), detail = error.detail(), "a press in Slack was not recorded");
            "Interlock could not record this now. Press again in a moment.".to_owned()
        }
        _ => escaped(&visible(error.detail())),
    }
}
