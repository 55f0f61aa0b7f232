//! `GET /workers/{session}`: one worker, and the steps that it has.

use axum::Json;
use axum::extract::{FromRequestParts as _, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use interlock_core::ids::SessionId;
use interlock_protocol::operations::{HeldStepView, WorkerDetail, limits, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::named_in_path;
use crate::state::AppState;

/// Look at one worker
///
/// With the steps of this tenant that it has, the oldest first.
#[utoipa::path(
    get,
    path = path::WORKER,
    tag = "operations",
    operation_id = "worker",
    params(("session" = SessionId, Path)),
    responses((status = 200, description = "The worker.", body = WorkerDetail)),
)]
pub async fn get(State(state): State<AppState>, mut parts: Parts) -> Result<Json<WorkerDetail>, ApiError> {
    let caller = Caller::from_request_parts(&mut parts, &state).await?;
    let named = named_in_path(&mut parts, &state, "session").await?;
    let unknown = || {
        let detail = format!("worker `{}` does not exist", named.chars().take(80).collect::<String>());
        ApiError::new(StatusCode::NOT_FOUND, "WORKER_NOT_FOUND", detail)
    };
    let session: SessionId = named.parse().map_err(|_| unknown())?;
    let store = state.for_tenant(caller.tenant);
    let row = store.worker_sessions().await?.into_iter().find(|row| row.id == session).ok_or_else(unknown)?;
    let held = store.held_by(session, limits::HELD_MAX).await?;
    let worker = view::worker(held.len() as u64, row, state.engine().now());
    let holds = held.into_iter().map(|step| HeldStepView {
        run_id: step.run,
        position: step.position,
        attempt: step.attempt,
        since: step.claimed_at,
    });
    Ok(Json(WorkerDetail { worker, holds: holds.collect() }))
}
