use std::collections::BTreeMap;

use interlock_core::ids::{SessionId, TenantId, WorkerIdentityId};
use interlock_core::state::WorkerState;
use interlock_core::time::{Millis, Timestamp};
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

    /// When the worker began this session, where its last one had been lost: it was offline until then. One that was signed off was
    /// not lost. A worker is known by its certificate; without one by its name. The worker inside a server comes and goes with it.
    pub fn came_back_at(&self, registrations: &[Self], lease: Millis) -> Option<Timestamp> {
        let is_earlier = |other: &&Self| {
            other.tenant == self.tenant
                && other.identity == self.identity
                && (self.identity.is_some() || other.worker == self.worker)
                && other.registered_at < self.registered_at
        };
        self.tenant?;
        let last = registrations.iter().filter(is_earlier).max_by_key(|other| other.registered_at)?;
        // Signing off ends a lease before its time.
        let ran_out = last.heartbeat_at + lease <= last.lease_expires_at;
        (ran_out && last.lease_expires_at <= self.registered_at).then_some(self.registered_at)
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

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const LEASE: Millis = Millis(20);

    fn session(number: u128, registered_at: i64, lease_expires_at: i64) -> SessionRow {
        SessionRow {
            id: SessionId(Uuid::from_u128(number)),
            tenant: Some(TenantId(Uuid::from_u128(1))),
            worker: "box".into(),
            build_id: None,
            queues: vec!["default".into()],
            slots: 1,
            state: WorkerState::Online,
            registered_at: Timestamp(registered_at),
            lease_expires_at: Timestamp(lease_expires_at),
            heartbeat_at: Timestamp(registered_at),
            tasks: None,
            capabilities: None,
            identity: None,
            terms: None,
            unlisted: Vec::new(),
            fault: None,
            lost: None,
            maintenance: None,
            labels: BTreeMap::new(),
        }
    }

    #[test]
    fn a_worker_comes_back_where_its_last_session_was_lost() {
        let now = session(3, 1_000, 1_020);
        let came_back = |rows: &[SessionRow]| now.came_back_at(rows, LEASE).is_some();
        assert!(!came_back(std::slice::from_ref(&now)), "it is here for the first time");
        assert!(came_back(&[now.clone(), session(2, 900, 920)]), "its lease ran out");
        assert!(!came_back(&[session(2, 900, 910)]), "it had signed off");
        assert!(!came_back(&[session(2, 995, 1_015)]), "it was started again before anybody missed it");
        assert!(!came_back(&[session(2, 2_000, 2_020), session(1, 900, 910)]), "what comes later does not count");
        assert!(!came_back(&[session(1, 100, 120), session(2, 900, 910)]), "the last one counts");
        let named = |worker: &str| SessionRow { worker: worker.into(), ..session(2, 900, 920) };
        assert!(!came_back(&[named("other")]));
        let certified = |row: SessionRow, number: u128| {
            let identity = Some(WorkerIdentityId(Uuid::from_u128(number)));
            SessionRow { identity, ..row }
        };
        assert!(!came_back(&[certified(named("box"), 7)]), "a name is nothing beside a certificate");
        let own = certified(now.clone(), 7);
        assert_eq!(own.came_back_at(&[certified(named("other"), 7)], LEASE), Some(Timestamp(1_000)));
        assert_eq!(own.came_back_at(&[certified(named("box"), 8)], LEASE), None);
        let embedded = SessionRow { tenant: None, ..now.clone() };
        assert_eq!(embedded.came_back_at(&[SessionRow { tenant: None, ..named("box") }], LEASE), None);
    }
}
