//! `GET /metrics`: all numbers, as Prometheus reads them.

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::metrics::{OpenSockets, plain};
use crate::state::AppState;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Numbers for Prometheus
///
/// As OpenMetrics 1.0 where `Accept` names it, else in the text format 0.0.4. Where there are several tenants, the figures of
/// runs, which are sums over all of them, are shown to a key with charge of the installation only.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "health",
    responses((status = 200, description = "The numbers.", body = String, content_type = "text/plain")),
)]
pub async fn show(State(state): State<AppState>, caller: Caller, headers: HeaderMap) -> Result<Response, ApiError> {
    // Sums over all tenants are for callers with charge of the installation, unless there is only one tenant.
    let with_runs = caller.installation || state.installation().tenants().await?.len() <= 1;
    let sockets = OpenSockets { watchers: state.hub().taken(), workers: state.channels().taken_by_all() };
    let text = state.metrics().text(&state.health(), sockets, state.now(), with_runs).await?;
    Ok(if asks_for_open_metrics(&headers) {
        ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response()
    } else {
        ([(header::CONTENT_TYPE, PLAIN)], plain(&text)).into_response()
    })
}

/// Whether `Accept` names the format, and does not rule it out with `q=0`.
fn asks_for_open_metrics(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("application/openmetrics-text"));
        let refused = parts.any(|part| {
            part.strip_prefix("q=")
                .and_then(|quality| quality.parse::<f32>().ok())
                .is_some_and(|quality| quality <= 0.0)
        });
        named && !refused
    })
}
