//! `POST /agent/{session}/effects`: a worker is about to act on another system.

use axum::Json;
use axum::extract::State;
use interlock_protocol::body::{AnswerBody, IntentBody};

use crate::api_error::ApiError;
use crate::request::{Body, OfSession};
use crate::state::AppState;

pub async fn intent(
    State(state): State<AppState>,
    _: OfSession,
    Body(IntentBody(intent)): Body<IntentBody>,
) -> Result<Json<AnswerBody>, ApiError> {
    Ok(Json(AnswerBody(state.engine().intent(intent).await?)))
}
