//! `GET /runs/{run}`: one run. With `wait_ms` the answer waits for the run's end, but no longer than that.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::RunId;
use interlock_core::run::Notes;
use interlock_core::run::assignment::{AssignedSession, RunAssignment};
use interlock_core::run::why::Heartbeat;
use interlock_core::state::{Detail, RunState};
use interlock_core::time::Millis;
use interlock_protocol::runs::{AssignmentView, DirectiveView, RunView, UndoneView, limits, path};
use interlock_store::RunSummary;
use serde::Deserialize;
use tokio::time::timeout;
use utoipa::IntoParams;

use super::view;
use crate::api_error::ApiError;
use crate::query::Params;
use crate::request::{NamedRun, bounded};
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct GetParams {
    wait_ms: Option<Millis>,
}

/// Look at one run
///
/// With `wait_ms` the answer waits for the run's end, but no longer than that.
#[utoipa::path(
    get,
    path = path::RUN,
    tag = "runs",
    params(("run" = RunId, Path), GetParams),
    responses((status = 200, description = "The run.", body = RunView)),
)]
pub async fn get(
    State(state): State<AppState>,
    NamedRun { tenant, run }: NamedRun,
    Params(params): Params<GetParams>,
) -> Result<Json<RunView>, ApiError> {
    if params.wait_ms.is_some() {
        let events = state.events();
        let ending = timeout(bounded(params.wait_ms, limits::WAIT_MAX), events.wait_for_end(tenant, run));
        if let Some(Ok(ended)) = state.shutdown().run_until_cancelled(ending).await {
            ended?;
        }
    }
    let overview = state.for_tenant(tenant).run_overview(run).await?;
    let mut row = overview.ok_or_else(|| ApiError::unknown_run(run))?;
    if is_held_back(&state, &row).await? {
        row.detail = Some(Detail::Throttled);
    }
    let heartbeat = match row.state {
        RunState::Running | RunState::RollingBack => state.for_tenant(tenant).heartbeat(run).await?,
        _ => None,
    };
    if heartbeat.is_some_and(|beat| beat.is_orphaned(state.worker_settings(), state.now())) {
        row.detail = Some(Detail::Orphaned);
    }
    let last_heartbeat_at = heartbeat.and_then(Heartbeat::at);
    let notes = state.for_tenant(tenant).run_notes(run).await?.unwrap_or_default();
    let mut view = RunView { last_heartbeat_at, ..view::run(&state, row) };
    tell_notes(&notes, &mut view);
    Ok(Json(view))
}

fn tell_notes(notes: &Notes, view: &mut RunView) {
    let Notes { cancellation, pause, compensation_log, tokens, metrics, assignment, .. } = notes;
    view.assignment = assignment.as_deref().map(assigned);
    view.metrics = metrics.as_deref().copied();
    let tokens = Some(*tokens).filter(|tokens| !tokens.is_none());
    view.input_tokens = tokens.map(|tokens| tokens.input);
    view.output_tokens = tokens.map(|tokens| tokens.output);
    view.spent_micros = Some(notes.spent_micros).filter(|spent| *spent > 0);
    view.spent_unit.clone_from(&notes.spent_unit);
    view.cancellation = cancellation.as_ref().map(|asked| DirectiveView {
        by: asked.by.clone(),
        reason: asked.reason.clone(),
        at: asked.at,
    });
    let pause = pause.as_ref().filter(|_| view.state == RunState::Paused);
    view.pause = pause.map(|asked| DirectiveView { by: asked.by.clone(), reason: asked.reason.clone(), at: asked.at });
    view.undone = compensation_log
        .iter()
        .map(|undone| UndoneView {
            position: undone.step,
            by_position: undone.by_step,
            outcome: undone.outcome,
            verified: undone.verified,
            receipts: undone.receipts.clone(),
            at: undone.at,
        })
        .collect();
}

fn assigned(known: &RunAssignment) -> AssignmentView {
    let with = known.with.as_ref();
    AssignmentView {
        attempt: known.number,
        state: with.map(AssignedSession::state),
        worker: with.map(|with| with.worker.clone()),
        session: with.map(|with| with.session),
        since: with.map(|with| with.acked_at.unwrap_or(with.offered_at)),
        failures: known.failures.clone(),
        lost: known.lost_in_step,
    }
}

/// Whether a limit keeps a run waiting whose step could be claimed. Nothing is read for any other run.
async fn is_held_back(state: &AppState, row: &RunSummary) -> Result<bool, ApiError> {
    if row.eligible_at.is_none_or(|at| at > state.now()) {
        return Ok(false);
    }
    match state.for_tenant(row.tenant).load_run(row.run).await? {
        Some(run) => Ok(state.runs().throttle(&run).await?.is_some()),
        None => Ok(false),
    }
}
