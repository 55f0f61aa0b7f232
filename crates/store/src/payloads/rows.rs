use interlock_core::ids::{RunId, ServerId, SignalId, TenantId};
use interlock_core::json::Hash;

use crate::value::Value;

/// The row of `meta` that holds the mark of references, and that keepers and sweepers take turns on.
pub(crate) const MARK: &str = "payload_mark";

/// A mark for a new store, drawn from the random id of the server that makes it.
pub(crate) fn fresh_mark(server: ServerId) -> String {
    let mut mark = Hash::of(&[MARK.as_bytes(), server.as_bytes()].concat()).to_string();
    mark.truncate(32);
    mark
}

/// A run or a signal that refers to a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PayloadOwner([u8; 16]);

impl From<RunId> for PayloadOwner {
    fn from(run: RunId) -> Self {
        Self(*run.as_bytes())
    }
}

impl From<SignalId> for PayloadOwner {
    fn from(signal: SignalId) -> Self {
        Self(*signal.as_bytes())
    }
}

impl From<PayloadOwner> for Value {
    fn from(owner: PayloadOwner) -> Self {
        Self::Id(owner.0)
    }
}

/// One reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadRow {
    pub tenant: TenantId,
    pub owner: PayloadOwner,
    pub sha256: Hash,
}

/// The owner of a reference, as it is found now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadHolder {
    Run(RunId),
    Signal(SignalId),
    /// The owner is gone, or is not committed yet.
    NoOwner,
}

impl std::fmt::Display for PayloadHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Run(run) => run.fmt(f),
            Self::Signal(signal) => signal.fmt(f),
            Self::NoOwner => f.write_str("no owner"),
        }
    }
}

/// A reference as it stands on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadRecord {
    pub row: PayloadRow,
    pub bytes: u64,
    pub holder: PayloadHolder,
    /// The object is being removed.
    pub sweeping: bool,
}
