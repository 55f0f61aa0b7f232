//! `GET /workers/{session}`: one worker, and the steps that it has.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::SessionId;
use interlock_protocol::operations::{AssignedRunView, HeldStepView, WorkerDetail, limits, path};

use super::view::{self, OfWorker};
use crate::api_error::ApiError;
use crate::identity::Caller;
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
pub async fn get(
    State(state): State<AppState>,
    caller: Caller,
    OfWorker(row): OfWorker,
) -> Result<Json<WorkerDetail>, ApiError> {
    let store = state.for_tenant(caller.tenant);
    let held = store.held_by(row.id, limits::HELD_MAX).await?;
    let assigned = store.assigned_to(row.id, limits::HELD_MAX).await?;
    let worker = view::worker(&state, held.len() as u64, row);
    let mut holds: Vec<HeldStepView> = Vec::with_capacity(held.len());
    for step in held {
        let run = if holds.len() < limits::HELD_NAMED_MAX { store.load_run(step.run).await? } else { None };
        let run = run.filter(|run| (step.position as usize) < run.steps.len());
        holds.push(HeldStepView {
            run_id: step.run,
            position: step.position,
            step: run.map(|run| run.spec(step.position).key.clone()),
            attempt: step.attempt,
            since: step.claimed_at,
        });
    }
    let assigned = assigned.into_iter().map(|row| AssignedRunView {
        run_id: row.run,
        state: row.state,
        since: row.acked_at.unwrap_or(row.offered_at),
    });
    Ok(Json(WorkerDetail { worker, holds, assigned: assigned.collect() }))
}
