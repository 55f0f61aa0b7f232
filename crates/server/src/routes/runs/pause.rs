//! `POST /runs/{run}/pause`: nothing is claimed while it lasts; a running attempt finishes.

use axum::Json;
use axum::extract::State;
use interlock_protocol::runs::{Because, Standing};

use crate::api_error::ApiError;
use crate::directive::{OPERATOR, answer};
use crate::request::{Body, Named, reason};
use crate::state::AppState;

pub async fn pause(
    State(state): State<AppState>,
    Named { tenant, run }: Named,
    Body(because): Body<Because>,
) -> Result<Json<Standing>, ApiError> {
    Ok(answer(state.engine().pause(tenant, run, reason(because.reason)?, OPERATOR).await?))
}
