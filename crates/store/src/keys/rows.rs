use interlock_core::ids::{KeyId, TenantId};
use interlock_core::json::Hash;
use interlock_core::tenant::identity::Roles;
use interlock_core::time::Timestamp;

/// One API key. The key itself is nowhere: `lookup` finds the row, `hash` proves the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    pub tenant: TenantId,
    pub id: KeyId,
    pub lookup: String,
    pub hash: Hash,
    pub name: String,
    /// The client that idempotency keys of its requests belong to; a rotated key keeps it.
    pub client: String,
    /// The person who answers for it.
    pub owner: Option<String>,
    pub roles: Roles,
    /// Only runs of this workspace.
    pub workspace: Option<String>,
    /// Has charge of the installation: makes tenants.
    pub installation: bool,
    pub requests_per_min: Option<u32>,
    pub created_at: Timestamp,
    pub created_by: Option<String>,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    /// To the minute.
    pub last_used_at: Option<Timestamp>,
}
