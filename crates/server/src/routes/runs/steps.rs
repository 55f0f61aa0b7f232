//! `GET /runs/{run}/steps`: the whole plan, with where each step stands.

use axum::Json;
use axum::extract::State;
use interlock_protocol::runs::{StepList, path};

use super::view;
use crate::api_error::ApiError;
use crate::request::NamedRun;
use crate::state::AppState;

/// The whole plan, with where each step stands
#[utoipa::path(
    get,
    path = path::STEPS,
    tag = "runs",
    params(NamedRun),
    responses((status = 200, description = "The steps in order.", body = StepList)),
)]
pub async fn steps(State(state): State<AppState>, named: NamedRun) -> Result<Json<StepList>, ApiError> {
    let store = state.for_tenant(named.tenant);
    let rows = store.steps(named.run).await?;
    // A plan has at least one step.
    if rows.is_empty() {
        return Err(ApiError::unknown_run(named.run));
    }
    // The view of steps has neither inputs nor phases; the run's plan and journal have them.
    let run = store.load_run(named.run).await?;
    let mut steps: Vec<_> = rows.into_iter().map(|row| view::step(&state, named.run, row)).collect();
    for step in &mut steps {
        // A step may have been appended between the two reads.
        let known = run.as_ref().filter(|run| (step.position as usize) < run.steps.len());
        let Some(run) = known else { continue };
        let input = run.steps[step.position as usize].input.clone();
        step.input = input.map(|input| view::payload(&state, named.run, input));
        step.no_retry = run.why_no_retry(step.position);
        step.phase = run.spec(step.position).rules.phase;
    }
    Ok(Json(StepList { steps }))
}
