//! Whether the caller could approve something now: the checks of a vote, without casting it.

use interlock_core::ids::ApprovalId;
use interlock_core::run::approval::{Approval, Vote, Voter};
use interlock_core::run::{Phase, Run};

use super::voter::{Question, VoterClaims, eligible};
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::state::AppState;

/// The run's open approval, if it is that one.
pub fn open_approval(run: &Run, approval: ApprovalId) -> Option<&Approval> {
    match &run.current().phase {
        Phase::WaitingApproval(open) if open.id == approval => Some(open),
        _ => None,
    }
}

/// `None` for keys and tokens: they do not vote.
pub async fn may_decide(
    state: &AppState,
    caller: &Caller,
    run: &Run,
    approval: ApprovalId,
) -> Result<Option<bool>, ApiError> {
    if caller.as_voter().is_err() {
        return Ok(None);
    }
    let Some(open) = open_approval(run, approval) else { return Ok(Some(false)) };
    let asked = open.asked_groups();
    let question = Question { approvers: &asked, quorum: open.quorum, approve: true };
    let voter = match eligible(state, caller, run, question, &VoterClaims::default()).await {
        Ok(voter) => voter,
        Err(error) if error.status().is_client_error() => return Ok(Some(false)),
        Err(error) => return Err(error),
    };
    let self_approval = voter.self_approval && !run.plan.rules.is_prod();
    let voter = Voter { self_approval, ..voter };
    let (person, on_behalf_of, at) = (voter.person.clone(), voter.on_behalf_of.clone(), state.now());
    let vote = Vote { person, on_behalf_of, approve: true, notes: None, at, groups: Vec::new() };
    Ok(Some(open.vote(&voter, vote).is_ok()))
}
