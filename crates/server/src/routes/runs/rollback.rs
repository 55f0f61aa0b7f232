//! `POST /runs/{run}/rollback`: undoes a step and all that came after it, or everything, newest first. `GET` says what that
//! would be.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::RunId;
use interlock_core::rejection::Rejection;
use interlock_core::run::Run;
use interlock_core::run::undoing::RollbackPreview;
use interlock_protocol::runs::{RollBackRun, Standing, StepRef, path};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api_error::ApiError;
use crate::directive::answer;
use crate::identity::Caller;
use crate::query::Params;
use crate::request::{Body, Named, reason};
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PreviewParams {
    /// The key of the step to go back to; everything where omitted.
    step: Option<String>,
}

/// See what a rollback would undo
///
/// In order, by which action, and whether the policy in force allows it, denies it or asks people first, by which rule; what
/// would be left as it is, and why; and who would be asked. Nothing is changed.
#[utoipa::path(
    get,
    path = path::ROLLBACK,
    tag = "runs",
    params(("run" = RunId, Path), PreviewParams),
    responses((status = 200, description = "What would be undone.", body = RollbackPreview)),
)]
pub async fn preview(
    State(state): State<AppState>,
    Named { tenant, run }: Named,
    Params(params): Params<PreviewParams>,
) -> Result<Json<RollbackPreview>, ApiError> {
    let found = state.for_tenant(tenant).load_run(run).await?.ok_or_else(|| ApiError::unknown_run(run))?;
    let from = params.step.map(|key| position(&found, &StepRef::Key(key))).transpose()?;
    Ok(Json(state.policies().rollback_preview(&found, from.unwrap_or_default()).await))
}

/// Undo what the run has done
///
/// With `step` that step and all that came after it, else everything; the newest first.
#[utoipa::path(
    post,
    path = path::ROLLBACK,
    tag = "runs",
    params(Named),
    request_body = RollBackRun,
    responses((status = 200, description = "Where the run stands.", body = Standing)),
)]
pub async fn roll_back(
    State(state): State<AppState>,
    caller: Caller,
    Named { tenant, run }: Named,
    Body(body): Body<RollBackRun>,
) -> Result<Json<Standing>, ApiError> {
    let (because, runs) = (reason(body.reason)?, state.runs());
    let standing = match body.step {
        None => runs.roll_back(tenant, run, because, caller.operator()).await?,
        Some(step) => {
            let found = state.for_tenant(tenant).load_run(run).await?;
            let position = position(&found.ok_or_else(|| ApiError::unknown_run(run))?, &step)?;
            runs.roll_back_to(tenant, run, position, because, caller.operator()).await?
        }
    };
    Ok(answer(standing))
}

/// The position of a step of the plan: what was added to undo others is not undone by itself.
fn position(run: &Run, step: &StepRef) -> Result<u32, ApiError> {
    let (found, named) = match step {
        StepRef::Position(position) => {
            let exists = (*position as usize) < run.forward_len();
            (exists.then_some(*position), position.to_string())
        }
        StepRef::Key(key) => (run.position_of(key), key.chars().take(80).collect()),
    };
    found.ok_or_else(|| Rejection::UnknownStep { run: run.id, step: named }.into())
}
