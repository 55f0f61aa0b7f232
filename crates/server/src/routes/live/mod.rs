//! Live: events as they happen, over WebSocket, SSE, and polling for who can do neither.

mod feed;
mod output;
pub mod place;
mod poll;
mod run;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

/// Streams that a request's headers alone open: the guard stands before them.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(run::run_events))
        .routes(routes!(output::step_output))
        .routes(routes!(feed::feed_events))
        .routes(routes!(poll::feed_page))
}

/// WebSockets: their credential may come in the query or the first frame, so they look at it themselves.
pub fn sockets() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(run::run_socket))
        .routes(routes!(run::execution_socket))
        .routes(routes!(feed::feed_socket))
}
