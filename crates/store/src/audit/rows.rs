use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::{Hash, Json};
use interlock_core::time::Timestamp;
use uuid::Uuid;

/// A tenant's log, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditLogRow {
    pub tenant: TenantId,
    /// Rises when a log begins anew.
    pub number: u64,
    pub origin: String,
    /// The store's epoch in which it began.
    pub epoch: u64,
    pub key_id: Hash,
    pub opened_at: Timestamp,
    pub size: u64,
    pub last_hash: Hash,
    /// 32 bytes each.
    pub peaks: Vec<u8>,
    pub checkpoint: String,
    pub feed_cursor: u64,
    pub sealed_at: Timestamp,
}

/// Entries that were sealed together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditBlockRow {
    pub number: u64,
    pub first_entry: u64,
    pub last_entry: u64,
    pub prev_hash: Hash,
    /// One JSON object a line.
    pub bodies: String,
    /// 32 bytes for each entry.
    pub salts: Vec<u8>,
    /// 32 bytes for each entry.
    pub leaves: Vec<u8>,
    /// The first and the last instant of its entries.
    pub at_from: Timestamp,
    pub at_to: Timestamp,
    pub checkpoint: String,
}

/// Nodes of the tree above the leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditTileRow {
    pub level: u32,
    pub tile: u64,
    /// 32 bytes each.
    pub hashes: Vec<u8>,
}

/// What the hashes of an entry stand for, where the journal does not say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditDetailsRow {
    pub entry: u64,
    pub actor: Option<String>,
    pub details: Option<String>,
}

/// Something that happened apart from runs and belongs into the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditNote {
    pub tenant: TenantId,
    pub id: Uuid,
    pub at: Timestamp,
    pub initiator: String,
    pub actor: Option<String>,
    pub kind: String,
    pub subject: Option<String>,
    pub details: Json,
}

/// A part of a tenant's feed: the events of one run that were committed together, and the cursor of the last of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedSpan {
    pub run: RunId,
    pub first_seq: u64,
    pub seq: u64,
    pub cursor: u64,
}

/// A row of a run's journal, whole.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalRow {
    pub run: RunId,
    pub first_seq: u64,
    pub seq: u64,
    pub at: Timestamp,
    pub events: Json,
    pub initiator: String,
    pub person: Option<String>,
    pub context_meta: Option<Json>,
    pub done_position: Option<u32>,
    pub done_state: Option<String>,
    pub done_attempt: Option<u32>,
    pub done_failures: Option<u32>,
    pub done_iteration: Option<u32>,
    pub input: Option<Json>,
    pub output: Option<Json>,
    pub error: Option<Json>,
    pub why: Option<String>,
}
