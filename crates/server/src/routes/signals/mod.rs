//! Messages from outside.

pub mod send;

use axum::Router;
use axum::routing::post;
use interlock_protocol::runs::path;

use crate::state::AppState;

pub fn routes() -> Router<AppState> {
    Router::new().route(path::SIGNALS, post(send::send))
}
