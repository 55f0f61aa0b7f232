//! The HTTP surface: the calls of workers, and what can be asked of runs.
//!
//! [`Server::bind`] takes an [`Engine`](interlock_engine::Engine) and [`ServerOptions`]; [`Server::run`] answers
//! requests until it is told to stop. [`router`] is the same without a socket. Every route is one file under
//! [`routes`] that reads like prose: parse, ask the engine, answer. Every refusal is a problem document
//! ([`api_error`]).
//!
//! Every request but a few has a caller: [`guard`] asks [`identity`] who it is and [`matrix`] whether that is enough,
//! and the handler gets a [`Caller`], whose tenant is the only one it can reach.

mod api_error;
mod body;
mod broker;
pub mod confinement;
mod connections;
mod directive;
mod embedded;
pub mod etag;
mod guard;
mod idempotency;
pub mod identity;
mod links;
mod listen;
mod listing;
mod live;
pub mod matrix;
mod metrics;
mod observe;
pub mod openapi;
mod options;
mod origin;
pub mod pages;
mod parameters;
mod plans;
pub mod private_file;
mod query;
mod repeated_calls;
mod request;
mod router;
pub mod routes;
mod seats;
mod state;
pub mod tls;
mod trace;
mod two_keys;
mod unique;

pub use connections::{ConnectionOptions, TrustedProxies};
pub use identity::{Caller, Identity, ServerSecret};
pub use listen::{Server, ServerError};
pub use options::ServerOptions;
pub use router::router;

/// Bounds of the HTTP surface.
pub mod limits {
    use std::time::Duration;

    /// The head of a request: its address and headers.
    pub const HEAD_BYTES_MAX: usize = 64 << 10;
    /// A request's body: a plan, or a report with its outbound messages.
    pub const BODY_BYTES_MAX: usize = 8 << 20;
    /// A body that needs no credential: a name and a password, a link's form.
    pub const PUBLIC_BODY_BYTES_MAX: usize = 16 << 10;
    /// A webhook, whose sender proves itself by a signature over it: a payload, written as a form at worst.
    pub const WEBHOOK_BODY_BYTES_MAX: usize = 4 << 20;
    /// How often one client may ask, unless the operator or its key says otherwise.
    pub const REQUESTS_PER_MIN: u32 = 1_200_000;
    /// What is read from a connection before it is asked for, and written to it before it is sent. The head of a request fits.
    pub const CONNECTION_BUFFER_BYTES_MAX: usize = 128 << 10;
    /// What the kernel holds for a connection beyond what its peer has room for.
    pub const UNSENT_BYTES_MAX: u32 = 128 << 10;
    /// Workers whose calls come over a WebSocket, on one server and of one tenant. The others make requests.
    pub const CHANNELS_MAX: usize = 4_096;
    pub const CHANNELS_PER_TENANT_MAX: usize = 256;
    /// Workers' calls over the broker that one server works on, of all and of one tenant.
    pub const BROKER_CALLS_MAX: usize = 16_384;
    pub const BROKER_CALLS_PER_TENANT_MAX: usize = 4_096;
    /// How long a readiness check may take.
    pub const READY_TIMEOUT: Duration = Duration::from_secs(2);

    const _: () = assert!(BODY_BYTES_MAX > 4 * interlock_core::limits::PAYLOAD_BYTES_MAX);
    const _: () = assert!(CONNECTION_BUFFER_BYTES_MAX > HEAD_BYTES_MAX);
    const _: () = assert!(WEBHOOK_BODY_BYTES_MAX > 3 * interlock_core::limits::PAYLOAD_BYTES_MAX);
}
