//! `POST /runs/{run}/retry`: tries the step that stopped the run again. A run that has ended does not change: a new
//! one takes over what it achieved, and is answered as a new run.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use interlock_core::rejection::Rejection;
use interlock_engine::EngineError;
use interlock_protocol::runs::{Retry, Standing, Started, path};

use crate::api_error::ApiError;
use crate::directive::answer;
use crate::idempotency::{IdempotencyHeaders, key_of};
use crate::identity::Caller;
use crate::request::{Body, NamedRun};
use crate::routes::runs::start::created;
use crate::state::AppState;

/// Try the step that stopped the run again
///
/// A run that has ended does not change: a new one takes over what it achieved.
#[utoipa::path(
    post,
    path = path::RETRY,
    tag = "runs",
    params(NamedRun, IdempotencyHeaders),
    request_body = Retry,
    responses(
        (status = 200, description = "Where the run stands.", body = Standing),
        (status = 201, description = "The run had ended: a new one takes over.", body = Started),
    ),
)]
pub async fn retry(
    State(state): State<AppState>,
    caller: Caller,
    NamedRun { tenant, run }: NamedRun,
    headers: HeaderMap,
    Body(retry): Body<Retry>,
) -> Result<Response, ApiError> {
    let changed_input = retry.input.is_some();
    match state.runs().retry(tenant, run, retry.input, caller.operator()).await {
        Ok(standing) => Ok(answer(standing).into_response()),
        Err(EngineError::Rejected(Rejection::Terminal { .. })) if changed_input => {
            Err(ApiError::invalid("a run that has ended is retried with its own inputs; start a new run for others"))
        }
        Err(EngineError::Rejected(Rejection::Terminal { .. })) => {
            let key = key_of(&state, &headers, &caller).await?;
            let started = state.runs().resume_as_new(tenant, run, None, key, caller.operator()).await?;
            Ok(created(started))
        }
        Err(error) => Err(error.into()),
    }
}
