//! `POST /runs/{run}/cancel`: nothing further starts; what is running is told to stop.

use axum::Json;
use axum::extract::State;
use interlock_protocol::runs::{Cancel, Standing, path};

use crate::api_error::ApiError;
use crate::directive::answer;
use crate::identity::Caller;
use crate::request::{Body, NamedRun, reason};
use crate::state::AppState;

/// Cancel a run
///
/// Nothing further starts; what is running is told to stop. With `rollback`, what has been done is undone first.
#[utoipa::path(
    post,
    path = path::CANCEL,
    tag = "runs",
    params(NamedRun),
    request_body = Cancel,
    responses((status = 200, description = "Where the run stands.", body = Standing)),
)]
pub async fn cancel(
    State(state): State<AppState>,
    caller: Caller,
    NamedRun { tenant, run }: NamedRun,
    Body(cancel): Body<Cancel>,
) -> Result<Json<Standing>, ApiError> {
    let because = reason(cancel.reason)?;
    Ok(answer(state.runs().cancel(tenant, run, because, cancel.rollback, caller.operator()).await?))
}
