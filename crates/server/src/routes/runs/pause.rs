//! `POST /runs/{run}/pause`: nothing is claimed while it lasts; a running attempt finishes.

use axum::Json;
use axum::extract::State;
use interlock_protocol::runs::{Because, Standing, path};

use crate::api_error::ApiError;
use crate::directive::answer;
use crate::identity::Caller;
use crate::request::{Body, NamedRun, reason};
use crate::state::AppState;

/// Pause a run
///
/// Nothing is claimed any more; a running attempt finishes. Signals and votes are still recorded.
#[utoipa::path(
    post,
    path = path::PAUSE,
    tag = "runs",
    params(NamedRun),
    request_body = Because,
    responses((status = 200, description = "Where the run stands.", body = Standing)),
)]
pub async fn pause(
    State(state): State<AppState>,
    caller: Caller,
    NamedRun { tenant, run }: NamedRun,
    Body(because): Body<Because>,
) -> Result<Json<Standing>, ApiError> {
    Ok(answer(state.runs().pause(tenant, run, reason(because.reason)?, caller.operator()).await?))
}
