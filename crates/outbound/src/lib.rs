//! The one client for calls to the outside: webhooks, identity providers, connectors, object stores.
//!
//! [`Outbound`] sends a [`Call`] and answers with its [`HttpResponse`]. Which hosts it may call is decided by [`Rules`]
//! on the address that is really connected to: names are resolved by this crate's resolver, which drops what the rules
//! forbid, so there is no second look-up that could answer otherwise; addresses in a URL are judged before the
//! connection; every redirect is a new call under the same rules. Only the server's operator opens a private range, for all
//! ([`OutboundOptions::open`]) or for one tenant ([`OutboundOptions::open_for`], [`Outbound::of_tenant`]); metadata services and this server's own listeners stay closed whatever is opened.
//!
//! Proxy variables of the environment are not read, redirects and bodies have limits, and nothing is decompressed.

mod call;
mod client;
mod error;
mod range;
mod resolver;
mod rules;
mod socket;
mod socket_options;

pub use call::{Call, Excess, HttpResponse};
pub use client::{Exchange, Exchanged, Outbound, OutboundOptions};
pub use error::OutboundError;
pub use range::{InvalidRange, Range};
pub use reqwest::{Method, StatusCode, Url, header};
pub use resolver::{Lookup, Resolve, SystemResolver};
pub use rules::{Forbidden, Rules, Why};
pub use socket::{Secured, Socket};

/// Bounds of every call.
pub mod limits {
    use std::time::Duration;

    pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
    /// From the look-up to the last byte, redirects included.
    pub const CALL_TIMEOUT: Duration = Duration::from_secs(20);
    pub const REDIRECTS_MAX: u32 = 5;
    pub const ANSWER_BYTES_MAX: usize = 1 << 20;
    pub const URL_BYTES_MAX: usize = 2 << 10;
    /// Idle connections to one host, and how long they are kept: rules that changed hold for new ones only.
    pub const IDLE_PER_HOST_MAX: usize = 4;
    pub const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
    /// Addresses of one name that are looked at.
    pub const ADDRESSES_MAX: usize = 32;
}
