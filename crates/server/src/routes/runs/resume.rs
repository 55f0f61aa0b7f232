//! `POST /runs/{run}/resume`: ends a pause. Refused where the run waits for another directive.

use axum::Json;
use axum::extract::State;
use interlock_protocol::runs::{Nothing, Standing, path};

use crate::api_error::ApiError;
use crate::directive::answer;
use crate::identity::Caller;
use crate::request::{Body, NamedRun};
use crate::state::AppState;

/// End a pause
///
/// Refused where a directive is due: retry, skip, roll back or cancel instead.
#[utoipa::path(
    post,
    path = path::RESUME,
    tag = "runs",
    params(NamedRun),
    request_body = Nothing,
    responses((status = 200, description = "Where the run stands.", body = Standing)),
)]
pub async fn resume(
    State(state): State<AppState>,
    caller: Caller,
    NamedRun { tenant, run }: NamedRun,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Standing>, ApiError> {
    Ok(answer(state.runs().resume(tenant, run, caller.operator()).await?))
}
