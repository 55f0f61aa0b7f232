use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::{Hash, Json};
use interlock_core::time::Timestamp;

/// A bundle that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct BundleRow {
    pub tenant: TenantId,
    pub run: RunId,
    /// 0 is the bundle itself, the others are addenda.
    pub number: u32,
    /// Of the bundle's bytes.
    pub sha256: Hash,
    pub bytes: u64,
    /// How many entries of the log it has.
    pub entries: u64,
    pub made_at: Timestamp,
    /// The bundle, or the reference to it in the payload store.
    pub body: Json,
}
