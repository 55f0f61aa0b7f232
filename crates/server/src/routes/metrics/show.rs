//! `GET /metrics`: all numbers, as Prometheus reads them.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::api_error::ApiError;
use crate::state::AppState;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Numbers for Prometheus, as OpenMetrics text
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "health",
    responses((status = 200, description = "The numbers.", body = String, content_type = "application/openmetrics-text")),
)]
pub async fn show(State(state): State<AppState>) -> Result<Response, ApiError> {
    let text = state.metrics().text(state.engine()).await?;
    Ok(([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response())
}
