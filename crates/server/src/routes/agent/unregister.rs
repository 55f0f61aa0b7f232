//! `POST /agent/unregister`: a worker leaves in good order; what it still holds goes back at once.

use axum::extract::State;
use axum::http::StatusCode;
use interlock_protocol::agent::{Unregister, path};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::Body;
use crate::state::AppState;

/// End a session; what it still holds goes back
#[utoipa::path(
    post,
    path = path::UNREGISTER,
    tag = "agent",
    request_body = Unregister,
    responses((status = 204, description = "The session is over.")),
)]
pub async fn unregister(
    State(state): State<AppState>,
    caller: Caller,
    Body(Unregister { session }): Body<Unregister>,
) -> Result<StatusCode, ApiError> {
    state.workers().check_session(caller.session_owner(), session).await?;
    state.workers().unregister(session).await?;
    Ok(StatusCode::NO_CONTENT)
}
