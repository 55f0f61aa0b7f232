//! How far a tenant's log is behind what has happened.

use interlock_boxed::boxed;
use interlock_core::ids::TenantId;
use interlock_core::time::Timestamp;

use crate::error::EngineError;
use crate::parts::Audit;

/// How far a tenant's log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditProgress {
    /// Entries of the present log.
    pub entries: u64,
    /// When the oldest of what is not in the log happened: an event that has its place in the feed, or something apart
    /// from runs. Nothing where the log has all.
    pub missing_since: Option<Timestamp>,
}

impl Audit {
    /// How far the tenant's log is; nothing where this server keeps none. A log that was never begun is behind, too.
    #[boxed]
    pub async fn progress(&self, tenant: TenantId) -> Result<Option<AuditProgress>, EngineError> {
        let store = &self.0.0.store;
        let log = store.audit_log(tenant).await?;
        if log.is_none() && self.0.0.options.audit_key.is_none() {
            return Ok(None);
        }
        let (entries, fed_to) = log.map_or((0, 0), |log| (log.size, log.feed_cursor));
        let event = if fed_to < store.last_cursor(tenant).await? {
            store.tenant_events(tenant, fed_to, 1).await?.events.first().map(|event| event.at)
        } else {
            None
        };
        let note = store.audit_notes(tenant, 1).await?.first().map(|note| note.at);
        Ok(Some(AuditProgress { entries, missing_since: event.into_iter().chain(note).min() }))
    }
}
