//! `POST /runs/{run}/reassign`: another worker is looked for.

use axum::Json;
use axum::extract::State;
use interlock_protocol::runs::{Because, Standing, path};

use crate::api_error::ApiError;
use crate::directive::answer;
use crate::identity::Caller;
use crate::request::{Body, Named, reason};
use crate::state::AppState;

/// Have another worker looked for
///
/// For a run whose commands share a directory: after its worker was lost in a command, after nobody took it, or while somebody
/// is looked for. The new worker begins with an empty directory. What an approval guards asks those people again.
#[utoipa::path(
    post,
    path = path::REASSIGN,
    tag = "runs",
    params(Named),
    request_body = Because,
    responses((status = 200, description = "Where the run stands.", body = Standing)),
)]
pub async fn reassign(
    State(state): State<AppState>,
    caller: Caller,
    Named { tenant, run }: Named,
    Body(because): Body<Because>,
) -> Result<Json<Standing>, ApiError> {
    Ok(answer(state.runs().reassign(tenant, run, reason(because.reason)?, caller.operator()).await?))
}
