//! `POST /auth/ws-token`: a token that opens WebSockets.

use axum::Json;
use axum::extract::State;
use interlock_protocol::identity::{WsToken, path};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::state::AppState;

/// Get a token for a WebSocket
///
/// Pass it as `?token=` within a minute.
#[utoipa::path(
    post,
    path = path::WS_TOKEN,
    tag = "auth",
    responses((status = 200, description = "The token.", body = WsToken)),
)]
pub async fn ws_token(State(state): State<AppState>, caller: Caller) -> Result<Json<WsToken>, ApiError> {
    let (token, expires_at) = state.identity().ws_token(&caller)?;
    Ok(Json(WsToken { token, expires_at }))
}
