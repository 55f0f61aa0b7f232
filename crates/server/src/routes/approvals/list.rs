//! `GET /approvals`: what waits for people's word, oldest first; with `run` that run's, whatever became of them.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::{ApprovalId, RunId};
use interlock_core::state::ApprovalState;
use interlock_protocol::approvals::{ApprovalList, path};
use interlock_protocol::identity::limits;
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
pub struct ListParams {
    /// `requested` unless another is named.
    state: Option<ApprovalState>,
    run: Option<RunId>,
    limit: Option<usize>,
    after: Option<ApprovalId>,
}

/// List approvals
///
/// What waits for people's word, oldest first; with `run`, that run's, whatever became of them.
#[utoipa::path(
    get,
    path = path::APPROVALS,
    tag = "approvals",
    params(ListParams),
    responses((status = 200, description = "A page of approvals.", body = ApprovalList)),
)]
pub async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<ApprovalList>, ApiError> {
    let store = state.reads(caller.tenant);
    let limit = params.limit.unwrap_or(PAGE_DEFAULT).clamp(1, limits::PAGE_MAX);
    let mut rows = if let Some(run) = params.run {
        caller.reach(&state, run).await?;
        let mut rows = store.approvals_of(caller.tenant, run).await?;
        rows.retain(|row| params.state.is_none_or(|state| row.state == state));
        rows.retain(|row| params.after.is_none_or(|after| row.id > after));
        rows
    } else {
        let wanted = params.state.unwrap_or(ApprovalState::Requested);
        store.approvals(caller.tenant, wanted, params.after, limit + 1).await?
    };
    let next_after = cut(&mut rows, limit, |row| row.id);
    let mut approvals = Vec::with_capacity(rows.len());
    for row in rows {
        if params.run.is_some() || caller.reach(&state, row.run).await.is_ok() {
            approvals.push(view::approval(caller.tenant, row)?);
        }
    }
    Ok(Json(ApprovalList { approvals, next_after }))
}
