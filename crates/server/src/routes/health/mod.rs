//! Health checks, open to everybody: they say nothing about what the server holds.

mod live;
mod ready;

use axum::Router;
use axum::routing::get;

use crate::state::AppState;

pub fn routes() -> Router<AppState> {
    Router::new().route("/healthz", get(live::live)).route("/readyz", get(ready::ready))
}
