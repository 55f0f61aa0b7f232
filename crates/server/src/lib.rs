//! The HTTP surface: the calls of workers, and what can be asked of runs.
//!
//! [`Server::bind`] takes an [`Engine`](interlock_engine::Engine) and [`ServerOptions`]; [`Server::run`] answers
//! requests until it is told to stop. [`router`] is the same without a socket. Every route is one file under
//! [`routes`] that reads like prose: parse, ask the engine, answer. Every refusal is a problem document
//! ([`api_error`]).
//!
//! There are no identities yet. One optional token guards all routes but the health checks; without a token the server
//! listens on loopback only, and answers only requests that name a loopback host, so that a web page cannot reach it
//! through a browser.

mod api_error;
mod directive;
mod guard;
mod listen;
pub mod openapi;
mod request;
pub mod routes;
mod state;

pub use listen::{Server, ServerError, ServerOptions};
pub use routes::router;

/// Bounds of the HTTP surface.
pub mod limits {
    use std::time::Duration;

    /// A request's body: a plan, or a report with its outbound messages.
    pub const BODY_BYTES_MAX: usize = 8 << 20;
    /// How long a readiness check may take.
    pub const READY_TIMEOUT: Duration = Duration::from_secs(2);

    const _: () = assert!(BODY_BYTES_MAX > 4 * interlock_core::limits::PAYLOAD_BYTES_MAX);
}
