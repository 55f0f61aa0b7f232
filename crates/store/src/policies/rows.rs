use interlock_core::json::Hash;
use interlock_core::time::Timestamp;

/// Which rules a tenant has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRow {
    /// Rises with every change.
    pub revision: u64,
    /// The version in force; none means the shipped policy.
    pub active: Option<u32>,
    /// The version that is tried beside it.
    pub shadow: Option<u32>,
    pub latest: u32,
    pub updated_at: Timestamp,
    pub updated_by: Option<String>,
}

/// One version, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyBundleSummary {
    pub version: u32,
    pub hash: Hash,
    /// Why it was made.
    pub note: Option<String>,
    pub created_at: Timestamp,
    pub created_by: Option<String>,
}

/// One version with its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyBundleRow {
    pub summary: PolicyBundleSummary,
    /// A JSON object: names of files and their texts.
    pub files: String,
}
