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
