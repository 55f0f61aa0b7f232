//! `POST /agent/{session}/outcomes`: what became of an effect.

use axum::extract::State;
use axum::http::StatusCode;
use interlock_protocol::body::OutcomeBody;

use crate::api_error::ApiError;
use crate::request::{Body, OfSession};
use crate::state::AppState;

pub async fn outcome(
    State(state): State<AppState>,
    _: OfSession,
    Body(OutcomeBody(outcome)): Body<OutcomeBody>,
) -> Result<StatusCode, ApiError> {
    state.engine().outcome(outcome).await?;
    Ok(StatusCode::NO_CONTENT)
}
