//! `POST /runs/{run}/rollback`: undoes what the run has done, newest first.

use axum::Json;
use axum::extract::State;
use interlock_protocol::runs::{Because, Standing, path};

use crate::api_error::ApiError;
use crate::directive::answer;
use crate::identity::Caller;
use crate::request::{Body, Named, reason};
use crate::state::AppState;

/// Undo what the run has done
#[utoipa::path(
    post,
    path = path::ROLLBACK,
    tag = "runs",
    params(Named),
    request_body = Because,
    responses((status = 200, description = "Where the run stands.", body = Standing)),
)]
pub async fn roll_back(
    State(state): State<AppState>,
    caller: Caller,
    Named { tenant, run }: Named,
    Body(because): Body<Because>,
) -> Result<Json<Standing>, ApiError> {
    Ok(answer(state.engine().runs().roll_back(tenant, run, reason(because.reason)?, caller.operator()).await?))
}
