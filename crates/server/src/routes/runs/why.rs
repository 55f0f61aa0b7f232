//! `GET /runs/{run}/why`: why the run stands where it stands, and what can be done about it.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::RunId;
use interlock_core::run::Run;
use interlock_core::run::why::{self, Explanation, Surroundings};
use interlock_core::state::WorkerState;
use interlock_core::work::Skills;
use interlock_protocol::runs::path;

use crate::api_error::ApiError;
use crate::request::Named;
use crate::state::AppState;

/// Why a run stands where it stands
///
/// What it waits for, since and until when, the last error, and what can be done about it.
#[utoipa::path(
    get,
    path = path::WHY,
    tag = "runs",
    params(("run" = RunId, Path)),
    responses((status = 200, description = "The causes, the weightiest first, and the remedies.", body = Explanation)),
)]
pub async fn why(State(state): State<AppState>, named: Named) -> Result<Json<Explanation>, ApiError> {
    let found = state.for_tenant(named.tenant).load_run(named.run).await?;
    let run = found.ok_or_else(|| ApiError::unknown_run(named.run))?;
    let workers = Some(workers(&state, &run).await?);
    let throttle = state.engine().runs().throttle(&run).await?;
    let holder = holder(&state, &run).await?;
    let heartbeat = state.for_tenant(named.tenant).heartbeat(named.run).await?;
    let around = Surroundings { workers, throttle, holder, heartbeat };
    Ok(Json(why::why(&run, state.engine().now(), around)))
}

/// The run that a queued one waits for.
async fn holder(state: &AppState, run: &Run) -> Result<Option<RunId>, ApiError> {
    let Some(subject) = run.header.subject.as_ref().filter(|_| run.is_queued()) else { return Ok(None) };
    Ok(state.for_tenant(run.tenant).subject_holder(subject).await?)
}

/// How many worker sessions would take the run's current step.
async fn workers(state: &AppState, run: &Run) -> Result<u32, ApiError> {
    let spec = run.spec(run.position);
    let now = state.engine().now();
    let sessions = state.for_tenant(run.tenant).worker_sessions().await?;
    let takes = |session: &&interlock_store::SessionRow| {
        session.state == WorkerState::Online
            && session.lease_expires_at > now
            && session.queues.contains(&spec.queue)
            && Skills::new(session.tasks.clone(), session.capabilities.clone()).can_take(run)
    };
    Ok(sessions.iter().filter(takes).count() as u32)
}
