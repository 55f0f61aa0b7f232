//! `POST /workers/{session}/drain`: a worker finishes what it has, and leaves.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::SessionId;
use interlock_core::state::WorkerState;
use interlock_protocol::operations::{WorkerView, path};
use interlock_protocol::runs::Nothing;
use interlock_store::DrainSession;
use serde_json::json;

use super::view::{self, OfWorker};
use crate::api_error::ApiError;
use crate::identity::{Caller, note};
use crate::request::Body;
use crate::state::AppState;

/// Take a worker out of service
///
/// It is given nothing new, finishes the steps that it has, and unregisters.
#[utoipa::path(
    post,
    path = path::WORKER_DRAIN,
    tag = "operations",
    operation_id = "drain_worker",
    params(("session" = SessionId, Path)),
    request_body = Nothing,
    responses((status = 200, description = "The worker as it is now.", body = WorkerView)),
)]
pub async fn drain(
    State(state): State<AppState>,
    caller: Caller,
    OfWorker(mut row): OfWorker,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<WorkerView>, ApiError> {
    if row.tenant.is_none() {
        return Err(view::alive(&row, "it is inside a server, and stops with it"));
    }
    let now = state.now();
    if row.state != WorkerState::Offline && row.lease_expires_at > now {
        let what = note::by(&caller, "worker.drained", row.id, &json!({ "worker": row.worker }));
        let drain = DrainSession { tenant: caller.tenant, session: row.id };
        state.identity().write_noted(caller.tenant, drain, what).await?;
        state.workers().drained(row.id);
        row.state = WorkerState::Draining;
    }
    let running = state.for_tenant(caller.tenant).claims_by_session().await?.get(&row.id).copied().unwrap_or(0);
    Ok(Json(view::worker(&state, running, row)))
}
