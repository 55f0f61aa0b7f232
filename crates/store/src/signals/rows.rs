use interlock_core::ids::{RunId, SignalId, TenantId};
use interlock_core::json::{Hash, Json};
use interlock_core::time::Timestamp;

/// A signal that came in.
#[derive(Debug, Clone, PartialEq)]
pub struct SignalRow {
    pub tenant: TenantId,
    pub id: SignalId,
    pub signal_type: String,
    pub key: String,
    pub received_at: Timestamp,
    pub expires_at: Timestamp,
    pub payload: Json,
    /// The sender's own id: the same one again is dropped.
    pub source_id: Option<String>,
    /// For every run that waits for it, each once.
    pub broadcast: bool,
    /// For this run alone.
    pub run: Option<RunId>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredSignal {
    pub id: SignalId,
    pub received_at: Timestamp,
    pub payload: Json,
    pub broadcast: bool,
    pub run: Option<RunId>,
}

/// A (type, key) that has both a signal and a wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmatchedSignal {
    pub tenant: TenantId,
    pub signal_type: String,
    pub key: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenWait {
    pub run: RunId,
    pub position: u32,
    pub accept_from: Timestamp,
    pub opened_at: Timestamp,
}

/// A wait, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitRow {
    pub run: RunId,
    /// The plan of the run, in which the step has its key.
    pub plan: Option<Hash>,
    pub position: u32,
    pub signal_type: String,
    pub key: String,
    /// Signals received before this instant do not count.
    pub accept_from: Timestamp,
    pub opened_at: Timestamp,
}

/// Which waits to list. A key needs a type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitFilter {
    pub workspace: Option<String>,
    pub signal_type: Option<String>,
    pub key: Option<String>,
}
