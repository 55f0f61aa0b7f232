//! Live: events as they happen, over WebSocket, SSE, and polling for who can do neither.

mod feed;
mod output;
pub mod place;
mod poll;
mod run;

use crate::listing::{Listing, routes};

/// Streams that a request's headers alone open: the guard stands before them.
pub fn routes<L: Listing>() -> L {
    L::default()
        .routes(routes!(run::run_events))
        .routes(routes!(output::step_output))
        .routes(routes!(feed::feed_events))
        .routes(routes!(poll::feed_page))
}

/// WebSockets: their credential may come in the query or the first frame, so they look at it themselves.
pub fn sockets<L: Listing>() -> L {
    L::default()
        .routes(routes!(run::run_socket))
        .routes(routes!(run::execution_socket))
        .routes(routes!(feed::feed_socket))
}
