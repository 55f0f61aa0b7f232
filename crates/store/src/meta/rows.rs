use interlock_core::ids::{RunId, TenantId};

/// The key under which `meta` names a run that a restore has not parked.
pub(super) fn unparked_key(tenant: TenantId, run: RunId) -> String {
    format!("unparked/{tenant}/{run}")
}

pub(super) fn unparked_run(key: &str) -> Option<(TenantId, RunId)> {
    let (tenant, run) = key.strip_prefix("unparked/")?.split_once('/')?;
    Some((tenant.parse().ok()?, run.parse().ok()?))
}

/// Where the store stands, for metrics and `doctor`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Change sets and ops that were committed, and the groups they went in, since this store was opened.
    pub committed: u64,
    pub refused: u64,
    pub groups: u64,
    /// How many submissions wait now.
    pub queued: u64,
    pub live_runs: u64,
    pub live_claims: u64,
}

/// A setting of the database that decides whether a commit survives a crash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurableSetting {
    pub name: String,
    pub value: String,
    /// The value with which nothing is lost.
    pub wanted: &'static str,
    pub durable: bool,
}

impl DurableSetting {
    pub(crate) fn new(name: String, value: String, wanted: &'static str) -> Self {
        let durable = value == wanted;
        Self { name, value, wanted, durable }
    }
}
