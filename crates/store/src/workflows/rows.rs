use interlock_core::json::{Hash, Json};
use interlock_core::time::Timestamp;

/// A workflow as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowRow {
    pub name: String,
    /// Rises with every change.
    pub revision: u64,
    pub latest_version: u32,
    /// Takes no starts.
    pub disabled: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Of the latest version, like the two that follow.
    pub source_hash: Hash,
    pub plan_hash: Hash,
    pub created_by: Option<String>,
}

/// One version of a workflow, which never changes.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowVersionRow {
    pub name: String,
    pub version: u32,
    /// The file as it was applied.
    pub source: String,
    pub source_hash: Hash,
    /// What the file says, as JSON.
    pub definition: Json,
    pub plan_hash: Hash,
    pub created_at: Timestamp,
    pub created_by: Option<String>,
}

/// A version without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowVersionSummary {
    pub name: String,
    pub version: u32,
    pub source_hash: Hash,
    pub plan_hash: Hash,
    pub created_at: Timestamp,
    pub created_by: Option<String>,
}
