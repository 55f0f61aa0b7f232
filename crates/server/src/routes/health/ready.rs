//! `GET /readyz`: the store answers too, and the server is not on its way out.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::api_error::ApiError;
use crate::limits;
use crate::state::AppState;

pub async fn ready(State(state): State<AppState>) -> Result<Json<Value>, ApiError> {
    let not_ready = |why: &str| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "NOT_READY", why);
    if state.shutdown().is_cancelled() {
        return Err(not_ready("the server is shutting down"));
    }
    match timeout(limits::READY_TIMEOUT, state.engine().store().epoch()).await {
        Ok(Ok(_)) => Ok(Json(json!({ "status": "ready" }))),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(not_ready("the store does not answer in time")),
    }
}
