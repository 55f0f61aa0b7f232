use std::collections::BTreeMap;

use interlock_core::ids::{SessionId, TenantId, WorkerIdentityId};
use interlock_core::state::WorkerState;
use interlock_core::time::Timestamp;
use interlock_core::work::fault::{LostAssignments, WorkerFault, WorkerMaintenance};
use interlock_core::work::{AttemptRef, WorkerTerms};
use serde::{Deserialize, Serialize};

/// One registration of a worker process.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRow {
    pub id: SessionId,
    /// `None` serves all tenants: the embedded worker.
    pub tenant: Option<TenantId>,
    pub worker: String,
    pub build_id: Option<String>,
    pub queues: Vec<String>,
    pub slots: u32,
    pub state: WorkerState,
    pub registered_at: Timestamp,
    pub lease_expires_at: Timestamp,
    pub heartbeat_at: Timestamp,
    /// The tasks and capabilities that the worker named; `None` where it did not say.
    pub tasks: Option<Vec<String>>,
    pub capabilities: Option<Vec<String>>,
    /// Whose certificate it was registered with, and within which bounds; neither for one with an API key.
    pub identity: Option<WorkerIdentityId>,
    pub terms: Option<WorkerTerms>,
    /// Claims that its last heartbeat did not list.
    pub unlisted: Vec<UnlistedClaim>,
    /// Why it is `errored`.
    pub fault: Option<WorkerFault>,
    /// The assignments that it has lost since it last took a run.
    pub lost: Option<LostAssignments>,
    /// Set by an operator; it may be over.
    pub maintenance: Option<WorkerMaintenance>,
    /// What people tell it apart by.
    pub labels: BTreeMap<String, String>,
}

impl SessionRow {
    /// Whether the session has signed off, or its lease has run out.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.state == WorkerState::Offline || self.lease_expires_at <= now
    }

    /// The maintenance that keeps new work from it now.
    pub fn maintenance_at(&self, now: Timestamp) -> Option<&WorkerMaintenance> {
        self.maintenance.as_ref().filter(|maintenance| maintenance.is_on(now))
    }

    /// The state that people are told: what weighs most comes first.
    pub fn state_at(&self, now: Timestamp) -> WorkerState {
        if self.is_over(now) {
            WorkerState::Offline
        } else if self.state == WorkerState::Draining {
            WorkerState::Draining
        } else if self.maintenance_at(now).is_some() {
            WorkerState::Maintenance
        } else {
            self.state
        }
    }
}

/// A claim that the heartbeats of its session have not listed since an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnlistedClaim {
    #[serde(flatten)]
    pub at: AttemptRef,
    pub since: Timestamp,
}
