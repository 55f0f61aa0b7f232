//! Accounts of an excluded person's making. Whoever may not decide must not make somebody who may: an account that an
//! excluded person has made, given its rights or let in within the last day does not vote there.

use axum::http::StatusCode;
use interlock_core::run::Run;
use interlock_core::time::Millis;
use interlock_store::UserRow;

use crate::api_error::ApiError;
use crate::state::AppState;

/// How long a change of access keeps an account from deciding on its maker's runs.
const FRESH: Millis = Millis::from_hours(24);

/// Refuses a vote by the right of an account that somebody who is excluded from the run's approvals has just made or
/// changed, whichever way the vote comes.
pub async fn check(state: &AppState, run: &Run, name: &str) -> Result<(), ApiError> {
    let Some(user) = state.for_tenant(run.tenant).user_named(name).await? else { return Ok(()) };
    let Some(by) = maker(&user, state.engine().now()) else { return Ok(()) };
    let author = state.engine().version_author(run.tenant, run).await?;
    let approvals = state.for_tenant(run.tenant).approvals_of(run.id).await?;
    let is_excluded = approvals.iter().flat_map(|row| &row.excluded).any(|person| person == by)
        || run.header.started_by.as_deref() == Some(by)
        || author.as_deref() == Some(by);
    if !is_excluded || by == name {
        return Ok(());
    }
    let detail = format!(
        "{by} may not decide here, and has made or changed the account `{name}` within the last day; somebody else decides, \
         or this account does a day later"
    );
    Err(ApiError::new(StatusCode::CONFLICT, "APPROVAL_VOTE_REFUSED", detail))
}

/// Who has lately made the account, or changed its access.
fn maker(user: &UserRow, now: interlock_core::time::Timestamp) -> Option<&str> {
    let changed = user.access_changed_at.filter(|at| now.since(*at) < FRESH);
    changed.and(user.access_changed_by.as_deref())
}
