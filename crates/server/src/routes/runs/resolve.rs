//! `POST /runs/{run}/steps/{step}/resolve`: a person says what became of an effect in doubt.

use axum::Json;
use axum::extract::State;
use interlock_engine::commands::control::ResolveRequest;
use interlock_protocol::runs::{Resolve, Standing, path};

use crate::api_error::ApiError;
use crate::directive::answer;
use crate::identity::Caller;
use crate::request::{Body, NamedRun, StepKey, reason};
use crate::state::AppState;

/// Say what became of an effect in doubt
#[utoipa::path(
    post,
    path = path::RESOLVE,
    tag = "runs",
    params(NamedRun, StepKey),
    request_body = Resolve,
    responses((status = 200, description = "Where the run stands.", body = Standing)),
)]
pub async fn resolve(
    State(state): State<AppState>,
    caller: Caller,
    NamedRun { tenant, run }: NamedRun,
    StepKey(step): StepKey,
    Body(resolve): Body<Resolve>,
) -> Result<Json<Standing>, ApiError> {
    let Resolve { outcome: resolution, output, reason: because } = resolve;
    let request = ResolveRequest { step, resolution, output, reason: reason(because)? };
    Ok(answer(state.runs().resolve(tenant, run, request, caller.operator()).await?))
}
