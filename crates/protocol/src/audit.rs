//! What is asked and answered about the audit log and the evidence of runs.

use interlock_core::json::Json;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where the calls live.
pub mod path {
    pub const AUDIT: &str = "/api/v1/audit";
    pub const CHECKPOINT: &str = "/api/v1/audit/checkpoint";
    pub const ERASURES: &str = "/api/v1/audit/erasures";
    pub const KEY: &str = "/api/v1/audit/key";
    pub const EVIDENCE: &str = "/api/v1/runs/{run}/evidence";
}

/// Bounds of these calls.
pub mod limits {
    /// Entries on one page.
    pub const PAGE_MAX: usize = 500;
    pub const PAGE_DEFAULT: usize = 100;
    /// Why details are erased.
    pub const REASON_BYTES_MAX: usize = 2_000;
}

/// The key that heads and bundles are signed with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditKey {
    pub algorithm: String,
    /// How envelopes call it: the sha256 of its SubjectPublicKeyInfo.
    pub key_id: String,
    /// PEM.
    pub public_key: String,
    /// The line by which tools for signed notes know it: `NAME+ID+KEY`.
    pub verifier_key: String,
}

/// The signed head of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckpointView {
    /// Which of the tenant's logs it is; it begins anew after a restore.
    pub log: u64,
    /// A signed note: origin, size, root, signature.
    pub checkpoint: String,
}

/// What the log tells of a person is to be erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EraseDetails {
    /// The person's name, as the log has it.
    pub person: String,
    /// Why. It stands in the log, without the person's name.
    pub reason: String,
    /// Where to go on; the beginning of the first log where omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<LogPlaceView>,
}

/// An entry's place in the tenant's logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogPlaceView {
    pub log: u64,
    pub entry: u64,
}

/// What was erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DetailsErased {
    /// Entries whose details went now.
    pub erased: u64,
    /// Where to go on; absent where the logs were looked at to their end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<LogPlaceView>,
}

/// Leaves of the log's tree, from an index on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeafSpanView {
    pub first: u64,
    /// Hexadecimal.
    pub hashes: Vec<String>,
}

/// A page of the log. With neither filter nor `order=desc` it has all that verification needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditPageView {
    pub log: u64,
    pub origin: String,
    /// How many entries the log has.
    pub size: u64,
    /// Each with its place, its salt, and what its hashes stand for as far as the caller may see it.
    pub entries: Vec<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaves: Option<LeafSpanView>,
    /// Signed heads of the blocks that end on this page.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<String>,
    /// Pass it as `from` for the next page; absent on the last one. A page may be empty and still have a next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}
