//! A worker's calls over one WebSocket. A text frame from the worker is a call, one from the server is its answer; both carry
//! the number that the worker has given it, so that many are under way at once and answers come in any order.
//!
//! A call is what the request to its address would be, and is held against the same: credential, role, session, size, rate.
//! What goes with the call ([`crate::call`]) stands in the frame, where the server has said with [`CALL_CONTEXT`] that it
//! takes it: one of an earlier release would close the channel.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Bounds of a channel.
pub mod limits {
    /// Calls of one channel that are worked on at once; more wait unread.
    pub const CALLS_MAX: usize = 1_024;
    /// The longest frame with a call. A longer call goes by a request of its own, so that a connection that stays open holds
    /// little.
    pub const FRAME_BYTES_MAX: usize = 256 << 10;
}

/// The header of the answer to the handshake by which a server says that frames may have the call's context.
pub const CALL_CONTEXT: &str = "interlock-call-context";

/// From the worker: what it would have sent by `POST`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallFrame<'a> {
    pub id: u64,
    /// The address, as in [`crate::agent::path`].
    #[serde(borrow)]
    pub call: Cow<'a, str>,
    /// Names the call: a repeat has the same.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<Cow<'a, str>>,
    /// W3C trace context.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub body: &'a RawValue,
}

/// From the server: what the answer to the request would have been.
#[derive(Debug, Serialize, Deserialize)]
pub struct AnswerFrame<'a> {
    pub id: u64,
    pub status: u16,
    /// None where the answer has none.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub body: Option<&'a RawValue>,
}
