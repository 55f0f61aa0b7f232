//! `POST /executions/{session_id}/rollback`: undoes a step and all that came after it, or everything, newest first.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::RunId;
use interlock_protocol::executions::{ExecutionStatus, RollBack, path};

use super::{view, words};
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::{Body, NamedRun, reason};
use crate::state::AppState;

/// Undo what the execution has done
///
/// With `step_number` that step and all that came after it, else everything; the newest first.
#[utoipa::path(
    post,
    path = path::ROLLBACK,
    tag = "executions",
    params(("session_id" = RunId, Path)),
    request_body = RollBack,
    responses((status = 200, description = "Where the execution stands.", body = ExecutionStatus)),
)]
pub async fn roll_back(
    State(state): State<AppState>,
    caller: Caller,
    NamedRun { tenant, run }: NamedRun,
    Body(body): Body<RollBack>,
) -> Result<Json<ExecutionStatus>, ApiError> {
    let because = reason(body.reason)?;
    let standing = match body.step_number {
        None => state.runs().roll_back(tenant, run, because, caller.operator()).await?,
        Some(number) => {
            let unknown = || ApiError::unknown_run(run);
            let found = state.for_tenant(tenant).load_run(run).await?.ok_or_else(unknown)?;
            let position = view::position(&found, number)?;
            state.runs().roll_back_to(tenant, run, position, because, caller.operator()).await?
        }
    };
    let status = words::session(standing.state, None).to_owned();
    Ok(Json(ExecutionStatus { session_id: run, status, last_event_seq: standing.version }))
}
