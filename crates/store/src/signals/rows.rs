use interlock_core::ids::{RunId, SignalId, TenantId};
use interlock_core::json::{Hash, Json};
use interlock_core::time::Timestamp;

/// Among which signals of the tenant a name is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignalScope {
    /// Those by their key, which reach the runs of every workspace.
    Tenant,
    /// Those for this run alone.
    Run(RunId),
    /// Those that are named by the idempotency key of their request.
    Request,
    /// Messages that tasks send to runs.
    Message,
}

impl SignalScope {
    /// As it stands in a row.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Tenant => "tenant".to_owned(),
            Self::Run(run) => format!("run:{run}"),
            Self::Request => "request".to_owned(),
            Self::Message => "message".to_owned(),
        }
    }
}

/// The name that its sender has given a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceId {
    pub scope: SignalScope,
    pub name: String,
}

impl SourceId {
    /// The name of a signal by key.
    pub fn of_tenant(name: impl Into<String>) -> Self {
        Self { scope: SignalScope::Tenant, name: name.into() }
    }

    /// The name of a signal for this run alone, unless it is one of a scope of its own.
    #[must_use]
    pub fn for_run(self, run: RunId) -> Self {
        match self.scope {
            SignalScope::Tenant => Self { scope: SignalScope::Run(run), ..self },
            SignalScope::Run(_) | SignalScope::Request | SignalScope::Message => self,
        }
    }
}

/// What tells a signal from others: under its name no other one is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalIdentity {
    pub source: SourceId,
    /// Of what it says. The same name with another fingerprint is another signal.
    pub fingerprint: Hash,
}

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
    /// Where its sender has named it: the same one again is dropped.
    pub source_id: Option<SignalIdentity>,
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
