//! `POST /runs/{run}/rollback`: undoes a step and all that came after it, or everything, newest first. A run that has
//! succeeded is undone by a new one. `GET` says what that would be.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use interlock_core::ids::RunId;
use interlock_core::rejection::Rejection;
use interlock_core::run::Run;
use interlock_core::run::undoing::RollbackPreview;
use interlock_engine::EngineError;
use interlock_engine::commands::undo::UndoRequest;
use interlock_protocol::runs::{RollBackRun, Standing, Started, StepRef, path};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api_error::ApiError;
use crate::directive::answer;
use crate::idempotency::{IdempotencyHeaders, key_of};
use crate::identity::Caller;
use crate::query::Params;
use crate::request::{Body, NamedRun, reason};
use crate::routes::runs::start::created;
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
    responses((status = 200, description = "What would be undone.", body = RollbackPreview), (status = 409)),
)]
pub async fn preview(
    State(state): State<AppState>,
    NamedRun { tenant, run }: NamedRun,
    Params(params): Params<PreviewParams>,
) -> Result<Json<RollbackPreview>, ApiError> {
    let found = state.runs().to_undo(tenant, run).await?;
    let from = params.step.map(|key| position(&found, &StepRef::Key(key))).transpose()?;
    Ok(Json(state.policies().rollback_preview(&found, from.unwrap_or_default()).await))
}

/// Undo what the run has done
///
/// With `step` that step and all that came after it, else everything; the newest first. A run that has succeeded does not
/// change: a new run undoes it, one at a time, and what that is about to do is judged by the policy like anything new.
#[utoipa::path(
    post,
    path = path::ROLLBACK,
    tag = "runs",
    params(NamedRun, IdempotencyHeaders),
    request_body = RollBackRun,
    responses(
        (status = 200, description = "Where the run stands.", body = Standing),
        (status = 201, description = "The run had succeeded: a new one undoes it.", body = Started),
    ),
)]
pub async fn roll_back(
    State(state): State<AppState>,
    caller: Caller,
    NamedRun { tenant, run }: NamedRun,
    headers: HeaderMap,
    Body(body): Body<RollBackRun>,
) -> Result<Response, ApiError> {
    let (because, runs) = (reason(body.reason)?, state.runs());
    let from = match body.step {
        None => None,
        Some(step) => {
            let found = state.for_tenant(tenant).load_run(run).await?;
            Some(position(&found.ok_or_else(|| ApiError::unknown_run(run))?, &step)?)
        }
    };
    let directed = match from {
        None => runs.roll_back(tenant, run, because.clone(), caller.operator()).await,
        Some(from) => runs.roll_back_to(tenant, run, from, because.clone(), caller.operator()).await,
    };
    match directed {
        Ok(standing) => Ok(answer(standing).into_response()),
        Err(EngineError::Rejected(Rejection::Terminal { .. })) => {
            let key = key_of(&state, &headers, &caller).await?;
            let request = UndoRequest { run, from: from.unwrap_or_default(), reason: because, key };
            Ok(created(runs.undo_as_new(tenant, request, caller.operator()).await?))
        }
        Err(error) => Err(error.into()),
    }
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
