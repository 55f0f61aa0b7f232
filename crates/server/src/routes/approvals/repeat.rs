//! Repeated votes: a voter who did not get the answer votes once more, and is told where the approval stands. A
//! different vote, or one on something else, is no repetition.

use interlock_core::run::Run;
use interlock_core::run::approval::Vote;
use interlock_core::state::ApprovalState;
use interlock_store::ApprovalRow;

use super::pick::{ApprovalSelector, pick};
use super::view;
use super::vote::VoteInput;
use crate::api_error::ApiError;
use crate::state::AppState;

/// Whether one of the votes that count is the person's, with the same word, and in the same right where they say in whose.
pub fn is_repeated(counted: &[Vote], person: &str, word: &VoteInput) -> bool {
    counted.iter().any(|vote| {
        let right = vote.on_behalf_of.as_deref().unwrap_or(person);
        let same_right = word.by.on_behalf_of.as_deref().is_none_or(|claimed| claimed == right);
        vote.person == person && vote.approve == word.approve && same_right
    })
}

/// The run's open approval that is meant. Where it was decided a moment ago, and the person's word is the same once more, that one:
/// of a request that was sent twice at once, the slower one finds it so.
pub async fn open_or_repeated(
    state: &AppState,
    run: &Run,
    meant: ApprovalSelector<'_>,
    person: &str,
    word: &VoteInput,
) -> Result<ApprovalRow, ApiError> {
    match pick(state, run, meant).await {
        Err(refused) if refused.code() == "APPROVAL_NOT_OPEN" => {
            decided_before(state, run, meant, person, word).await?.ok_or(refused)
        }
        picked => picked,
    }
}

/// The run's approval that is decided by now, and that the person's word repeats. The word must name it: a run that waits
/// for nothing any more does not tell which one was meant.
pub async fn decided_before(
    state: &AppState,
    run: &Run,
    meant: ApprovalSelector<'_>,
    person: &str,
    word: &VoteInput,
) -> Result<Option<ApprovalRow>, ApiError> {
    if meant.approval.is_none() && meant.digest.is_none() {
        return Ok(None);
    }
    for row in state.for_tenant(run.tenant).approvals_of(run.id).await? {
        let is_named = meant.approval.is_none_or(|named| named == row.id)
            && meant.position.is_none_or(|position| position == row.position);
        if row.state == ApprovalState::Requested || !is_named || !is_repeated(&row.votes, person, word) {
            continue;
        }
        if meant.digest.is_none_or(|digest| view::digest(run.tenant, &row).is_ok_and(|own| own == digest)) {
            return Ok(Some(row));
        }
    }
    Ok(None)
}
