//! `GET /runs/{run}/why`: why the run stands where it stands, and what can be done about it.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::RunId;
use interlock_core::run::why::{self, Explanation, Heartbeat, Surroundings};
use interlock_core::run::{Phase, Run};
use interlock_core::state::{RunState, WorkerState};
use interlock_core::work::Skills;
use interlock_protocol::runs::path;
use interlock_store::SessionRow;

use crate::api_error::ApiError;
use crate::request::NamedRun;
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
pub async fn why(State(state): State<AppState>, named: NamedRun) -> Result<Json<Explanation>, ApiError> {
    let found = state.for_tenant(named.tenant).load_run(named.run).await?;
    let run = found.ok_or_else(|| ApiError::unknown_run(named.run))?;
    let sessions = state.for_tenant(named.tenant).worker_sessions().await?;
    let only_embedded = !state.tenants().orchestrates_workers(named.tenant).await?;
    let counted: Vec<&SessionRow> = sessions.iter().filter(|row| !only_embedded || row.tenant.is_none()).collect();
    let workers = Some(workers(&state, &run, &counted));
    let throttle = state.runs().throttle(&run).await?;
    let holder = holder(&state, &run).await?;
    let heartbeat = state.for_tenant(named.tenant).heartbeat(named.run).await?;
    let holding = match &run.current().phase {
        Phase::Running { session, .. } => sessions.iter().find(|row| row.id == *session),
        _ => None,
    };
    let worker = holding.map(|row| (row.worker.as_str(), row.lease_expires_at));
    let around = Surroundings { workers, only_embedded, throttle, holder, heartbeat, worker };
    Ok(Json(why::why(&run, state.now(), around)))
}

/// The run that a queued one waits for, and where it stands.
async fn holder(state: &AppState, run: &Run) -> Result<Option<(RunId, RunState)>, ApiError> {
    let Some(subject) = run.header.subject.as_ref().filter(|_| run.is_queued()) else { return Ok(None) };
    let store = state.for_tenant(run.tenant);
    let Some(holder) = store.subject_holder(subject).await? else { return Ok(None) };
    Ok(store.run_overview(holder).await?.map(|row| (holder, row.state)))
}

/// How many worker sessions would take the run's current step. One whose heartbeats have stopped would not.
fn workers(state: &AppState, run: &Run, sessions: &[&SessionRow]) -> u32 {
    let spec = run.spec(run.position);
    let now = state.now();
    let takes = |session: &&&SessionRow| {
        session.state == WorkerState::Online
            && Heartbeat::At(session.heartbeat_at).silent_since(now).is_none()
            && session.lease_expires_at > now
            && session.queues.contains(&spec.queue)
            && !(run.seeks_worker() && run.was_refused_by(session.id))
            && Skills::within(Skills::new(session.tasks.clone(), session.capabilities.clone()), session.terms.clone())
                .can_take(run)
    };
    sessions.iter().filter(takes).count() as u32
}
