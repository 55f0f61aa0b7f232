//! `POST /runs/{run}/restart`: goes back to a step, the first one unless another is named, and runs from there. For a
//! run that has ended, a new one does so.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use interlock_core::rejection::Rejection;
use interlock_engine::EngineError;
use interlock_protocol::runs::{Restart, Standing, Started, path};

use crate::api_error::ApiError;
use crate::directive::answer;
use crate::idempotency::{IdempotencyHeaders, key_of};
use crate::identity::Caller;
use crate::request::{Body, NamedRun};
use crate::routes::runs::start::created;
use crate::state::AppState;

/// Go back to a step, by default to the first, and run from there
///
/// For a run that has ended, a new one does so.
#[utoipa::path(
    post,
    path = path::RESTART,
    tag = "runs",
    params(NamedRun, IdempotencyHeaders),
    request_body = Restart,
    responses(
        (status = 200, description = "Where the run stands.", body = Standing),
        (status = 201, description = "The run had ended: a new one takes over.", body = Started),
    ),
)]
pub async fn restart(
    State(state): State<AppState>,
    caller: Caller,
    named: NamedRun,
    headers: HeaderMap,
    Body(restart): Body<Restart>,
) -> Result<Response, ApiError> {
    let NamedRun { tenant, run } = named;
    let from = match restart.from {
        Some(step) => step,
        None => first_step(&state, named).await?,
    };
    match state.runs().restart_from(tenant, run, &from, caller.operator()).await {
        Ok(standing) => Ok(answer(standing).into_response()),
        Err(EngineError::Rejected(Rejection::Terminal { .. })) => {
            let key = key_of(&state, &headers, &caller).await?;
            let started = state.runs().resume_as_new(tenant, run, Some(&from), key, caller.operator()).await?;
            Ok(created(started))
        }
        Err(error) => Err(error.into()),
    }
}

async fn first_step(state: &AppState, named: NamedRun) -> Result<String, ApiError> {
    let steps = state.for_tenant(named.tenant).steps(named.run).await?;
    let first = steps.into_iter().find(|step| step.position == 0);
    first.map(|step| step.key).ok_or_else(|| ApiError::unknown_run(named.run))
}
