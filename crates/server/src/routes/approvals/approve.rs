//! `POST /runs/{run}/approve`: a vote on the one approval that the run waits for. The answer says what was decided.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use interlock_core::state::ApprovalState;
use interlock_protocol::approvals::{Approve, Voted, path};

use super::vote::{Word, cast};
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::{Body, Named};
use crate::state::AppState;

/// Vote on what a run waits for
///
/// The answer says what was decided.
#[utoipa::path(
    post,
    path = path::APPROVE,
    tag = "approvals",
    params(Named),
    request_body = Approve,
    responses((status = 200, description = "Where approval and run stand.", body = Voted)),
)]
pub async fn approve(
    State(state): State<AppState>,
    caller: Caller,
    Named { tenant, run }: Named,
    Body(body): Body<Approve>,
) -> Result<Json<Voted>, ApiError> {
    let store = state.reads(tenant);
    if store.run_overview(tenant, run).await?.is_none() {
        return Err(ApiError::unknown_run(run));
    }
    let mut open = store.approvals_of(tenant, run).await?;
    open.retain(|row| row.state == ApprovalState::Requested && body.approval.is_none_or(|named| named == row.id));
    let Some(row) = open.pop().filter(|_| open.is_empty()) else {
        let detail = match body.approval {
            Some(named) => format!("run {run} does not wait for approval {named}"),
            None => format!("run {run} waits for no approval"),
        };
        return Err(ApiError::new(StatusCode::CONFLICT, "APPROVAL_NOT_OPEN", detail));
    };
    let word = Word { approve: body.approve, notes: body.notes, digest: body.digest };
    cast(&state, &caller, tenant, row, word).await
}
