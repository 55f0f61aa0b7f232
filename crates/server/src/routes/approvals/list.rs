//! `GET /approvals`: the tenant's open approvals, oldest first; with `run` all of that run's, decided or not.

use axum::Json;
use axum::extract::State;
use futures::future::try_join_all;
use interlock_core::ids::{ApprovalId, RunId};
use interlock_core::state::ApprovalState;
use interlock_protocol::approvals::{ApprovalList, path};
use interlock_protocol::identity::limits;
use interlock_store::ApprovalRow;
use serde::Deserialize;
use utoipa::IntoParams;

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::Params;
use crate::request::{PAGE_DEFAULT, cut};
use crate::state::AppState;

/// Runs that are loaded at once for what they say of their approvals.
const RUNS_LOADED_AT_ONCE: usize = 16;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ApprovalListParams {
    /// `requested` unless another is named.
    state: Option<ApprovalState>,
    run: Option<RunId>,
    limit: Option<usize>,
    after: Option<ApprovalId>,
}

/// List approvals
///
/// The tenant's open approvals, oldest first; with `run`, all of that run's, decided or not.
#[utoipa::path(
    get,
    path = path::APPROVALS,
    tag = "approvals",
    params(ApprovalListParams),
    responses((status = 200, description = "A page of approvals.", body = ApprovalList)),
)]
pub async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Params(params): Params<ApprovalListParams>,
) -> Result<Json<ApprovalList>, ApiError> {
    let store = state.for_tenant(caller.tenant);
    let limit = params.limit.unwrap_or(PAGE_DEFAULT).clamp(1, limits::PAGE_MAX);
    let mut rows = if let Some(run) = params.run {
        caller.reach(&state, run).await?;
        let mut rows = store.approvals_of(run).await?;
        rows.retain(|row| params.state.is_none_or(|state| row.state == state));
        rows.retain(|row| params.after.is_none_or(|after| row.id > after));
        rows
    } else {
        let wanted = params.state.unwrap_or(ApprovalState::Requested);
        seen(&state, &caller, wanted, params.after, limit + 1).await?
    };
    let next_after = cut(&mut rows, limit, |row| row.id);
    let mut approvals = Vec::with_capacity(rows.len());
    while !rows.is_empty() {
        let next = rows.drain(..rows.len().min(RUNS_LOADED_AT_ONCE));
        let views = try_join_all(next.map(|row| view::looked_up(&state, caller.tenant, row)));
        approvals.extend(views.await?);
    }
    Ok(Json(ApprovalList { approvals, next_after }))
}

/// The approvals of runs that exist for the caller, page by page until there are enough.
async fn seen(
    state: &AppState,
    caller: &Caller,
    wanted: ApprovalState,
    mut after: Option<ApprovalId>,
    count: usize,
) -> Result<Vec<ApprovalRow>, ApiError> {
    let store = state.for_tenant(caller.tenant);
    if caller.workspace.is_none() {
        return Ok(store.approvals(wanted, after, count).await?);
    }
    let mut rows = Vec::new();
    while rows.len() < count {
        let page = store.approvals(wanted, after, limits::PAGE_MAX).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        for row in page {
            let run = store.run_overview(row.run).await?;
            if run.is_some_and(|run| caller.sees(Some(&run.workspace))) {
                rows.push(row);
            }
        }
    }
    rows.truncate(count);
    Ok(rows)
}
