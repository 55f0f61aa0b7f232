//! `GET /approvals`: the tenant's open approvals, oldest first; with `run` all of that run's, decided or not.

use axum::Json;
use axum::extract::State;
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
    let approvals = rows.into_iter().map(|row| view::approval(caller.tenant, row)).collect::<Result<_, _>>()?;
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
