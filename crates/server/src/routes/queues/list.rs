//! `GET /queues`: how many steps wait on each queue, how long the oldest has, and who takes from it.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use interlock_core::state::WorkerState;
use interlock_protocol::operations::{QueueList, QueueView, WorkerView, path};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::routes::workers::view;
use crate::state::AppState;

/// List the queues that have something to do, or a worker
#[utoipa::path(
    get,
    path = path::QUEUES,
    tag = "operations",
    operation_id = "queues",
    responses((status = 200, description = "The tenant's queues, by name.", body = QueueList)),
)]
pub async fn list(State(state): State<AppState>, caller: Caller) -> Result<Json<QueueList>, ApiError> {
    let workers = view::workers(&state, caller.tenant, false).await?;
    Ok(Json(QueueList { queues: queues(&state, &caller, &workers).await? }))
}

/// The caller's queues, by name.
pub async fn queues(state: &AppState, caller: &Caller, workers: &[WorkerView]) -> Result<Vec<QueueView>, ApiError> {
    let loads = state.for_tenant(caller.tenant).queues(caller.workspace.as_deref(), state.now()).await?;
    let empty = |queue: &str| QueueView {
        queue: queue.to_owned(),
        ready: 0,
        delayed: 0,
        running: 0,
        oldest_ready_at: None,
        workers: 0,
    };
    let mut queues: BTreeMap<String, QueueView> = BTreeMap::new();
    for load in loads {
        let queue = QueueView {
            ready: load.ready,
            delayed: load.delayed,
            running: load.running,
            oldest_ready_at: load.oldest_ready_at,
            ..empty(&load.queue)
        };
        queues.insert(load.queue, queue);
    }
    // One that is errored is given tasks all the same.
    let takes = |state: WorkerState| matches!(state, WorkerState::Online | WorkerState::Errored);
    for worker in workers.iter().filter(|worker| takes(worker.state) && !worker.silent) {
        for queue in &worker.queues {
            // A caller limited to a workspace sees its queues, and no others.
            if caller.workspace.is_none() || queues.contains_key(queue) {
                queues.entry(queue.clone()).or_insert_with(|| empty(queue)).workers += 1;
            }
        }
    }
    Ok(queues.into_values().collect())
}
