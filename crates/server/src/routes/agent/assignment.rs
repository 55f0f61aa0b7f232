//! `POST /agent/{session}/assignments`: a worker takes a run that it was offered, or says why not.

use axum::extract::State;
use axum::http::StatusCode;
use interlock_protocol::agent::{OfferAnswer, path};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::{Body, OfSession};
use crate::state::AppState;

/// Take a run that was offered, or say why not
///
/// A run whose commands share a directory is offered with the answer to a poll. Once it is taken, its steps are this session's
/// alone.
#[utoipa::path(
    post,
    path = path::ASSIGNMENTS,
    tag = "agent",
    params(OfSession),
    request_body = OfferAnswer,
    responses((status = 204, description = "The answer is recorded.")),
)]
pub async fn assignment(
    State(state): State<AppState>,
    caller: Caller,
    OfSession(session): OfSession,
    Body(answer): Body<OfferAnswer>,
) -> Result<StatusCode, ApiError> {
    if answer.tenant != caller.tenant {
        return Err(ApiError::unknown_run(answer.run));
    }
    state.workers().answer_offer(session, answer).await?;
    Ok(StatusCode::NO_CONTENT)
}
