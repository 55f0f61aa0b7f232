//! `POST /auth/logout`: the visit is over, here and at once.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Response};

use interlock_protocol::identity::path;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::state::AppState;

/// Sign out
#[utoipa::path(
    post,
    path = path::LOGOUT,
    tag = "auth",
    responses((status = 204, description = "Done.")),
)]
pub async fn logout(State(state): State<AppState>, caller: Caller) -> Result<Response, ApiError> {
    let cookie = state.identity().end_session(&caller).await?;
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, cookie)]).into_response())
}
