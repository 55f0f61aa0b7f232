use interlock_core::ids::{OutboundId, OutboxId, RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::trigger::EndpointState;

use crate::secrets::Secrets;

/// An address to which a tenant's events are sent.
#[derive(Debug, Clone, PartialEq)]
pub struct OutboundRow {
    pub tenant: TenantId,
    pub id: OutboundId,
    /// Unique in the tenant, where there is one.
    pub name: Option<String>,
    pub url: String,
    pub description: Option<String>,
    pub events: Option<Vec<String>>,
    pub workflows: Option<Vec<String>>,
    pub secrets: Secrets,
    pub state: EndpointState,
    pub note: Option<String>,
    pub fed_to: u64,
    pub fed_at: Timestamp,
    pub failing_since: Option<Timestamp>,
    pub created_at: Timestamp,
    /// A person, or the id of a key that no person owns.
    pub created_by: Option<String>,
}

/// A message on its way to an endpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageRow {
    pub id: OutboxId,
    pub run: RunId,
    pub payload: Json,
    pub created_at: Timestamp,
    pub attempts: u32,
    pub next_at: Timestamp,
    pub delivered_at: Option<Timestamp>,
    pub dead_at: Option<Timestamp>,
    pub last_error: Option<String>,
}

/// One try to bring a message to its endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRow {
    pub attempt: u32,
    pub at: Timestamp,
    pub duration: Millis,
    pub status: Option<u16>,
    pub error: Option<String>,
    /// The beginning of the answer, escaped.
    pub excerpt: Option<String>,
}

/// A message to be queued.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMessage {
    pub id: OutboxId,
    pub run: RunId,
    pub payload: Json,
    /// Where it stands among the run's messages to this endpoint; at the same place the id decides.
    pub place: i64,
}

/// The destination of an endpoint's messages in the outbox.
pub fn destination(endpoint: OutboundId) -> String {
    format!("webhook:{endpoint}")
}
