use interlock_core::ids::{TenantId, WorkerIdentityId};
use interlock_core::json::Hash;
use interlock_core::time::Timestamp;
use interlock_core::work::WorkerTerms;

/// A worker that may enrol, or has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerIdentityRow {
    pub tenant: TenantId,
    pub id: WorkerIdentityId,
    pub name: String,
    pub terms: WorkerTerms,
    pub token_lookup: String,
    pub token_hash: Hash,
    pub token_expires_at: Timestamp,
    pub created_at: Timestamp,
    pub created_by: Option<String>,
    /// When its token was used, and by which key.
    pub enrolled_at: Option<Timestamp>,
    pub key_hash: Option<Hash>,
    pub renewed_at: Option<Timestamp>,
    pub certificate_expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    pub revoked_by: Option<String>,
}
