use interlock_core::ids::{OutboxId, RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::time::Timestamp;

/// Where messages wait to be sent, and when the first of them is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxDestination {
    pub tenant: TenantId,
    pub destination: String,
    pub next_at: Timestamp,
}

/// A message that is due, the first of its run and destination.
#[derive(Debug, Clone, PartialEq)]
pub struct OutboxMessage {
    pub tenant: TenantId,
    pub id: OutboxId,
    pub run: RunId,
    pub destination: String,
    pub payload: Json,
    pub created_at: Timestamp,
    pub attempts: u32,
}

/// A message that was given up, of whatever kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    pub id: OutboxId,
    pub run: RunId,
    pub destination: String,
    pub created_at: Timestamp,
    pub attempts: u32,
    pub dead_at: Timestamp,
    pub error: Option<String>,
}
