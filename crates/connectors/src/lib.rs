//! Connectors: what Interlock knows about calling another system.
//!
//! A [`Connector`] is one operation of one system: `slack.post`, `servicenow.incident.update`. Its [`Declaration`] says
//! which fields it takes, how safe a repeat is, how its effect key is made and how it is undone. Its methods are pure:
//! they turn checked [`Fields`] and a [`Connection`] into a [`Request`], and a [`Response`] into an output or a
//! [`CallFailure`]. None of them opens a connection, so each system is one file in [`systems`] and is tested without
//! it.
//!
//! [`send::Caller`] does the talking: it resolves secrets at the last moment, sends through the one outbound client, takes
//! the secrets out of every answer again, and asks a target whether a call whose answer was lost has happened. It is
//! behind the feature `calls`; checking a workflow file needs none of it.

pub mod connection;
pub mod connector;
pub mod declaration;
pub mod failure;
pub mod fields;
pub mod page;
pub mod price;
pub mod registry;
pub mod request;
pub mod schema;
#[cfg(feature = "calls")]
pub mod send;
pub mod systems;

pub use connection::{Connection, Connections};
pub use connector::{CallFacts, Connector, Inverse, Probed};
pub use declaration::{Declaration, Reversal};
pub use failure::{CallFailure, Sent};
pub use fields::Fields;
pub use registry::{all, bound, find, names};
pub use request::{Request, Response};
pub use schema::{FieldFault, Filling};

/// The name under which a `model` step is carried out.
pub const MODEL_CHAT: &str = "model.chat";

/// Bounds of what connectors take and give.
pub mod limits {
    use std::time::Duration;

    /// A text such as a channel, a label, a name.
    pub const SHORT_TEXT: usize = 256;
    /// A text that people read.
    pub const LONG_TEXT: usize = 64 << 10;
    pub const URL_BYTES: usize = 2 << 10;
    /// Free JSON: a body, blocks.
    pub const JSON_BYTES: usize = 256 << 10;
    pub const ITEMS: usize = 100;
    /// The longest answer that is read.
    pub const ANSWER_BYTES: usize = 512 << 10;
    /// The longest call that may change something. A doubt counts from here, so it is never longer.
    pub const CALL_TIMEOUT: Duration = interlock_core::limits::EFFECT_SEND_TIMEOUT.as_duration();
    /// A model may think for longer; a repeat of its call does no harm.
    pub const MODEL_TIMEOUT: Duration = Duration::from_mins(10);
    /// How much of another system's error is repeated.
    pub const QUOTED_CHARS: usize = 300;
    /// The longest pause that a target's `Retry-After` is believed for.
    pub const RETRY_AFTER_MAX: Duration = Duration::from_hours(1);
    pub const CONNECTIONS: usize = 200;
    pub const CONNECTIONS_FILE_BYTES: usize = 1 << 20;
}
