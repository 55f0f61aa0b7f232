//! `GET /readyz`: the store answers and takes commits, and the server is not on its way out.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use interlock_protocol::health::Health;
use tokio::time::timeout;

use crate::api_error::ApiError;
use crate::limits;
use crate::state::AppState;

/// Whether the server can take requests
///
/// The store answers and takes commits, and the server is not on its way out.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "health",
    responses(
        (status = 200, description = "It can.", body = Health),
        (status = 503, description = "Not now."),
    ),
)]
pub async fn ready(State(state): State<AppState>) -> Result<Json<Health>, ApiError> {
    let not_ready = |why: &str| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "NOT_READY", why);
    if state.shutdown().is_cancelled() {
        return Err(not_ready("the server is shutting down"));
    }
    if state.engine().store().takes_commits().is_err() {
        return Err(not_ready("the store takes no commits; the server's log has the reason"));
    }
    match timeout(limits::READY_TIMEOUT, state.engine().store().restoring()).await {
        Ok(Ok(Some(_))) => Err(not_ready("a restore of the store is not finished; run `interlock db restore` again")),
        Ok(Ok(None)) => Ok(Json(Health { status: "ready".to_owned() })),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(not_ready("the store does not answer in time")),
    }
}
