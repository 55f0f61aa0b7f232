//! What a worker is given to make its calls over a broker. The messages themselves are sealed, and stand in a crate of their
//! own.

use interlock_core::time::{Millis, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The code of an answer that is too long for the broker: the worker makes the call by a request.
pub const ANSWER_TOO_LONG: &str = "ANSWER_TOO_LONG";
/// The code of a refusal because the tenant has switched the broker off.
pub const BROKER_DISABLED: &str = "BROKER_DISABLED";

/// Leave to make calls over the broker, for a while.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BrokerTicket {
    /// Names this worker's messages.
    pub channel: String,
    /// The stream that calls are written to.
    pub calls: String,
    /// The stream that their answers are read from.
    pub answers: String,
    /// Goes with each call: it shows a server whose call it is. Only servers can read it.
    pub ticket: String,
    /// What calls and answers are sealed with: 32 bytes, in the base64 of addresses. Shown once.
    pub key: String,
    /// How long it can be used.
    pub expires_in_ms: Millis,
    /// The server's clock. A call says when it was sent, by this clock.
    pub now: Timestamp,
}

/// It is as good as a credential.
impl std::fmt::Debug for BrokerTicket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BrokerTicket").field("channel", &self.channel).finish_non_exhaustive()
    }
}
