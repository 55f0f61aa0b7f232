//! `GET /runs/{run}/decisions`: what was decided on the run's actions, and what that rests on.

use axum::Json;
use axum::extract::State;
use interlock_core::limits::DECISIONS_SHOWN_MAX;
use interlock_protocol::policy::{DecisionList, DecisionView, path};
use interlock_store::DecisionRow;

use crate::api_error::ApiError;
use crate::request::NamedRun;
use crate::state::AppState;

/// What the policy has decided on the run's actions
///
/// Leave that stands for every run of the workflow's version is not repeated here.
#[utoipa::path(
    get,
    path = path::DECISIONS,
    tag = "runs",
    params(NamedRun),
    responses((status = 200, description = "Decisions in their order.", body = DecisionList)),
)]
pub async fn decisions(
    State(state): State<AppState>,
    NamedRun { tenant, run }: NamedRun,
) -> Result<Json<DecisionList>, ApiError> {
    let store = state.for_tenant(tenant);
    let run_row = store.load_run(run).await?.ok_or_else(|| ApiError::unknown_run(run))?;
    let rows = store.decisions_of(run, DECISIONS_SHOWN_MAX).await?;
    let view = |row: DecisionRow| {
        let record = row.record;
        let basis = &*record.basis;
        DecisionView {
            decision: record.id,
            at: row.at,
            position: record.position,
            step: run_row.spec(record.position).key.clone(),
            iteration: record.iteration,
            attempt: record.attempt,
            operation: record.operation,
            verdict: record.verdict,
            tier: basis.tier.clone(),
            action: record.action,
            bundle: basis.bundle,
            evaluator: basis.evaluator.clone(),
            input: basis.input.clone(),
            answer: basis.answer.clone(),
            shadow: basis.shadow.clone(),
        }
    };
    Ok(Json(DecisionList { decisions: rows.into_iter().map(view).collect() }))
}
