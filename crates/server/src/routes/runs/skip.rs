//! `POST /runs/{run}/skip`: goes on without the step that stopped the run.

use axum::Json;
use axum::extract::State;
use interlock_protocol::runs::{Because, Standing, path};

use crate::api_error::ApiError;
use crate::directive::answer;
use crate::identity::Caller;
use crate::request::{Body, Named, reason};
use crate::state::AppState;

/// Go on without the step that stopped the run
#[utoipa::path(
    post,
    path = path::SKIP,
    tag = "runs",
    params(Named),
    request_body = Because,
    responses((status = 200, description = "Where the run stands.", body = Standing)),
)]
pub async fn skip(
    State(state): State<AppState>,
    caller: Caller,
    Named { tenant, run }: Named,
    Body(because): Body<Because>,
) -> Result<Json<Standing>, ApiError> {
    Ok(answer(state.engine().skip(tenant, run, reason(because.reason)?, caller.operator()).await?))
}
