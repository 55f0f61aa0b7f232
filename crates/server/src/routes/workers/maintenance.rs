//! `POST` and `DELETE /workers/{session}/maintenance`: new work is kept from a worker for a while, which stays connected.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::SessionId;
use interlock_core::limits::MAINTENANCE_MAX;
use interlock_core::time::Timestamp;
use interlock_core::work::fault::WorkerMaintenance;
use interlock_protocol::operations::{BeginMaintenance, WorkerView, path};
use interlock_store::SetSessionMaintenance;
use serde_json::json;

use super::view::{self, OfWorker};
use crate::api_error::ApiError;
use crate::identity::{Caller, note};
use crate::request::{Body, reason};
use crate::state::AppState;

/// Put a worker into maintenance
///
/// It stays connected, keeps the steps and runs that it has until they end, and is given nothing new. Asking again changes the
/// reason and the end.
#[utoipa::path(
    post,
    path = path::WORKER_MAINTENANCE,
    tag = "operations",
    operation_id = "begin_worker_maintenance",
    params(("session" = SessionId, Path)),
    request_body = BeginMaintenance,
    responses((status = 200, description = "The worker as it is now.", body = WorkerView)),
)]
pub async fn begin(
    State(state): State<AppState>,
    caller: Caller,
    OfWorker(row): OfWorker,
    Body(asked): Body<BeginMaintenance>,
) -> Result<Json<WorkerView>, ApiError> {
    let now = state.now();
    let reason = reason(asked.reason)?;
    check_end(asked.until, now)?;
    if row.tenant.is_none() {
        return Err(view::alive(&row, "it is inside a server, and stops with it"));
    }
    let what = note::by(
        &caller,
        "worker.maintenance_begun",
        row.id,
        &json!({ "worker": row.worker, "reason": reason, "until": asked.until }),
    );
    let maintenance = WorkerMaintenance { by: Some(caller.shown_name()), reason, since: now, until: asked.until };
    let set = SetSessionMaintenance { tenant: caller.tenant, session: row.id, maintenance: Some(maintenance) };
    if !row.is_over(now) {
        state.identity().write_noted(caller.tenant, set, what).await?;
    }
    told(&state, &caller, row.id).await
}

/// End the maintenance of a worker
///
/// It is given work again. Nothing happens where it is in none.
#[utoipa::path(
    delete,
    path = path::WORKER_MAINTENANCE,
    tag = "operations",
    operation_id = "end_worker_maintenance",
    params(("session" = SessionId, Path)),
    responses((status = 200, description = "The worker as it is now.", body = WorkerView)),
)]
pub async fn end(
    State(state): State<AppState>,
    caller: Caller,
    OfWorker(row): OfWorker,
) -> Result<Json<WorkerView>, ApiError> {
    if row.tenant.is_none() {
        return Err(view::alive(&row, "it is inside a server, and stops with it"));
    }
    if row.maintenance.is_some() && !row.is_over(state.now()) {
        let what = note::by(&caller, "worker.maintenance_ended", row.id, &json!({ "worker": row.worker }));
        let set = SetSessionMaintenance { tenant: caller.tenant, session: row.id, maintenance: None };
        state.identity().write_noted(caller.tenant, set, what).await?;
    }
    told(&state, &caller, row.id).await
}

fn check_end(until: Option<Timestamp>, now: Timestamp) -> Result<(), ApiError> {
    match until {
        Some(until) if until <= now => {
            Err(ApiError::invalid("`until` is in the past; leave it out to end the maintenance yourself"))
        }
        Some(until) if until > now + MAINTENANCE_MAX => {
            let days = MAINTENANCE_MAX.0 / 86_400_000;
            let what = format!("`until` is more than {days} days away; leave it out for a maintenance without an end");
            Err(ApiError::invalid(what))
        }
        _ => Ok(()),
    }
}

/// Has the engine follow what the row says, and shows the worker.
async fn told(state: &AppState, caller: &Caller, session: SessionId) -> Result<Json<WorkerView>, ApiError> {
    state.workers().maintained(session).await?;
    let store = state.for_tenant(caller.tenant);
    let row = store.worker_sessions().await?.into_iter().find(|row| row.id == session);
    let row = row.ok_or_else(|| view::unknown(&session.to_string()))?;
    let running = store.claims_by_session().await?.get(&session).copied().unwrap_or(0);
    Ok(Json(view::worker(state, running, row)))
}
