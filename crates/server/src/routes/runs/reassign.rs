//! `POST /runs/{run}/reassign`: another worker is looked for.

use axum::Json;
use axum::extract::State;
use interlock_protocol::runs::{Because, Standing, path};

use crate::api_error::ApiError;
use crate::directive::answer;
use crate::identity::Caller;
use crate::request::{Body, NamedRun, reason};
use crate::state::AppState;

/// Have another worker looked for
///
/// For a run whose commands share a directory: after its worker was lost in a command, after no worker took it, or
/// while a worker is looked for. The new worker begins with an empty directory. What an approval guards asks its
/// approvers again.
#[utoipa::path(
    post,
    path = path::REASSIGN,
    tag = "runs",
    params(NamedRun),
    request_body = Because,
    responses((status = 200, description = "Where the run stands.", body = Standing)),
)]
pub async fn reassign(
    State(state): State<AppState>,
    caller: Caller,
    NamedRun { tenant, run }: NamedRun,
    Body(because): Body<Because>,
) -> Result<Json<Standing>, ApiError> {
    Ok(answer(state.runs().reassign(tenant, run, reason(because.reason)?, caller.operator()).await?))
}
