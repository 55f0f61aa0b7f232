use interlock_core::ids::RunId;
use interlock_core::json::Json;
use interlock_core::run::change::Context;
use interlock_core::time::Timestamp;

/// One event of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRecord {
    pub seq: u64,
    pub at: Timestamp,
    pub event: Json,
    pub context: Context,
}

/// One event in the tenant's own order.
#[derive(Debug, Clone, PartialEq)]
pub struct TenantEvent {
    pub cursor: u64,
    pub run: RunId,
    pub seq: u64,
    pub at: Timestamp,
    pub event: Json,
    pub context: Context,
}

/// A part of a tenant's feed.
#[derive(Debug, Clone, PartialEq)]
pub struct FeedPage {
    pub events: Vec<TenantEvent>,
    /// Where the next page begins: behind the last event, and behind events that retention has removed.
    pub cursor: u64,
}
