//! Accounts of an excluded person's making. Whoever may not decide must not make somebody who may: an account that an
//! excluded person has made, given its rights or let in within the last day does not vote there. Who stands behind a key
//! without an owner is not known, so an account that such a key has made or changed since the run was started does not
//! vote there either.

use axum::http::StatusCode;
use interlock_core::ids::KeyId;
use interlock_core::run::Run;
use interlock_core::time::{Millis, Timestamp};
use interlock_store::UserRow;

use super::voter::Question;
use crate::api_error::ApiError;
use crate::identity::{Caller, Via};
use crate::state::AppState;

/// How long a change of access keeps an account from deciding on its maker's runs.
const FRESH: Millis = Millis::from_hours(24);

/// Refuses a vote by the right of an account that somebody who is excluded from the run's approvals has just made or
/// changed, whichever way the vote comes.
pub async fn check(state: &AppState, run: &Run, name: &str) -> Result<(), ApiError> {
    let Some(user) = state.for_tenant(run.tenant).user_named(name).await? else { return Ok(()) };
    let Some(access) = changed_lately(&user, state.engine().now()) else { return Ok(()) };
    let by = access.by;
    if by.parse::<KeyId>().is_ok() {
        if access.at <= run.header.created_at {
            return Ok(());
        }
        return Err(refused(format!(
            "the account `{name}` was made or changed by the key {by} after this run was started, and the key has no owner who \
             answers for it; somebody else decides, or this account does a day later"
        )));
    }
    if by == name || !is_excluded(state, run, by).await? {
        return Ok(());
    }
    Err(refused(format!(
        "{by} may not decide here, and has made or changed the account `{name}` within the last day; somebody else decides, \
         or this account does a day later"
    )))
}

/// Refuses a vote that comes by way of Slack where the way is too new to be the second key, or was made by somebody who may
/// not decide: whoever links an account to a Slack user, or gives the secret with which Slack signs, could vote as others.
pub async fn check_link(state: &AppState, caller: &Caller, run: &Run, question: Question<'_>) -> Result<(), ApiError> {
    let Via::Slack { proof, .. } = &caller.via else { return Ok(()) };
    let (person, now) = (caller.as_voter()?, state.engine().now());
    let second_key = question.quorum > 1;
    let ways = [
        ("your Slack account was linked", proof.linked_at, Some(proof.linked_by.as_str())),
        (
            "this tenant's connection to Slack was set up or given another secret",
            proof.secret_at,
            proof.secret_by.as_deref(),
        ),
    ];
    for (what, at, by) in ways {
        let fresh = now.since(at) < FRESH;
        if second_key && question.approve && fresh {
            let detail = format!("two people must agree here, and {what} within the last day: approve in the console");
            return Err(refused(detail));
        }
        let Some(by) = by.filter(|by| *by != person && (second_key || fresh)) else { continue };
        let unknown = by.parse::<KeyId>().is_ok() && at > run.header.created_at;
        if unknown || is_excluded(state, run, by).await? {
            return Err(refused(format!("{by} may not decide here, and by {by} {what}: decide in the console")));
        }
    }
    Ok(())
}

/// Whether somebody may not decide on a run: they started it, directed it so that it asks, or wrote its workflow.
pub async fn is_excluded(state: &AppState, run: &Run, person: &str) -> Result<bool, ApiError> {
    let author = state.engine().runs().version_author(run.tenant, run).await?;
    let approvals = state.for_tenant(run.tenant).approvals_of(run.id).await?;
    Ok(approvals.iter().flat_map(|row| &row.excluded).any(|excluded| excluded == person)
        || run.header.started_by.as_deref() == Some(person)
        || author.as_deref() == Some(person))
}

fn refused(detail: String) -> ApiError {
    ApiError::new(StatusCode::CONFLICT, "APPROVAL_VOTE_REFUSED", detail)
}

/// A change of what an account may do, or of how its person gets in.
struct AccessChange<'a> {
    at: Timestamp,
    /// A person, or a key that has no owner.
    by: &'a str,
}

fn changed_lately(user: &UserRow, now: Timestamp) -> Option<AccessChange<'_>> {
    let at = user.access_changed_at.filter(|at| now.since(*at) < FRESH)?;
    Some(AccessChange { at, by: user.access_changed_by.as_deref()? })
}
