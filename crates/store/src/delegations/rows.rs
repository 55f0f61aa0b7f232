use interlock_core::ids::{DelegationId, TenantId};
use interlock_core::time::Timestamp;

/// A person's right to decide, lent to another for a time. People stand in it by their names, which never change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelegationRow {
    pub tenant: TenantId,
    pub id: DelegationId,
    pub delegator: String,
    pub delegate: String,
    pub from_at: Timestamp,
    pub until_at: Timestamp,
    pub reason: String,
    pub created_at: Timestamp,
    pub created_by: String,
    pub revoked_at: Option<Timestamp>,
    pub revoked_by: Option<String>,
}

/// Which delegations to list, newest first; `after` is the last one of the page before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DelegationPage {
    /// Those that were over by then are left out.
    pub over_by: Timestamp,
    pub after: Option<DelegationId>,
    pub limit: usize,
}
