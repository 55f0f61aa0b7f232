//! What dispatch knows of a worker session: whose steps it takes, from which queues, how many, and what it can do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use interlock_core::ids::{SessionId, TenantId, WorkerIdentityId};
use interlock_core::plan::StepSpec;
use interlock_core::run::Run;
use interlock_core::state::WorkerState;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::work::Skills;
use interlock_store::SessionRow;

use super::need::Need;
use super::ready::GroupKey;
use super::shares;

#[derive(Debug)]
pub struct SessionInfo {
    pub id: SessionId,
    /// The worker's own name.
    pub worker: String,
    pub tenant: Option<TenantId>,
    pub queues: Vec<String>,
    pub skills: Arc<Skills>,
    /// Whose certificate it was registered with.
    pub identity: Option<WorkerIdentityId>,
    slots: u32,
    draining: AtomicBool,
    /// An operator has taken it out of service: it finishes what it has, and leaves.
    drained: AtomicBool,
    /// Its tenant gives no steps to workers elsewhere: it finishes what it has, and stays.
    held_back: AtomicBool,
    /// When this server last heard of it.
    heard_at: AtomicI64,
}

impl SessionInfo {
    /// The session that a row describes. One that is over takes nothing new.
    pub(crate) fn of(row: SessionRow, now: Timestamp) -> Arc<Self> {
        Arc::new(Self {
            id: row.id,
            worker: row.worker,
            tenant: row.tenant,
            queues: row.queues,
            skills: Skills::within(Skills::new(row.tasks, row.capabilities), row.terms),
            identity: row.identity,
            slots: row.slots,
            draining: (row.state != WorkerState::Online).into(),
            drained: (row.state == WorkerState::Draining).into(),
            held_back: false.into(),
            heard_at: now.0.into(),
        })
    }

    /// How many of its places are for tenants below their share only.
    pub(crate) fn kept(&self) -> usize {
        if self.tenant.is_some() { 0 } else { shares::kept(self.slots as usize) }
    }

    pub fn takes_work(&self) -> bool {
        !self.draining.load(Ordering::Relaxed) && !self.is_drained() && !self.is_held_back()
    }

    pub fn is_held_back(&self) -> bool {
        self.held_back.load(Ordering::Relaxed)
    }

    /// Answers whether that is news.
    pub(crate) fn set_held_back(&self, held_back: bool) -> bool {
        self.held_back.swap(held_back, Ordering::Relaxed) != held_back
    }

    pub fn is_drained(&self) -> bool {
        self.drained.load(Ordering::Relaxed)
    }

    pub(crate) fn set_drained(&self, drained: bool) {
        self.drained.store(drained, Ordering::Relaxed);
    }

    pub(crate) fn set_draining(&self, draining: bool) {
        self.draining.store(draining, Ordering::Relaxed);
    }

    pub(crate) fn heard(&self, now: Timestamp) {
        self.heard_at.fetch_max(now.0, Ordering::Relaxed);
    }

    pub(crate) fn is_silent(&self, now: Timestamp, silence: Millis) -> bool {
        Timestamp(self.heard_at.load(Ordering::Relaxed)) + silence < now
    }

    /// Whether it serves the tenant and the step's queue.
    pub(crate) fn serves(&self, tenant: TenantId, queue: &str) -> bool {
        self.tenant.is_none_or(|only| only == tenant) && self.queues.iter().any(|name| name == queue)
    }

    /// Whether it can take runs of this group that need this.
    pub(crate) fn meets(&self, key: &GroupKey, need: &Need) -> bool {
        self.serves(key.tenant, &key.queue) && need.is_met_by(self)
    }

    /// Whether the step that a run stands at is for it: it can do it, the run is not another session's, and it has not said
    /// already that it could not.
    pub(crate) fn can_take(&self, run: &Run) -> bool {
        let is_its_own = run.assigned_session().is_none_or(|session| session == self.id);
        is_its_own && !(run.seeks_worker() && run.was_refused_by(self.id)) && self.skills.can_take(run)
    }

    /// Whether a step may be claimed for it in the commit that makes the step ready.
    pub(crate) fn takes_at_once(&self, tenant: TenantId, spec: &StepSpec) -> bool {
        // The run's environment is not looked at here, so who may not act in all of them waits for its next poll.
        let anywhere = self.skills.terms.is_none();
        anywhere && self.serves(tenant, &spec.queue) && self.skills.can_do(spec) && !self.skills.needs_intent(spec)
    }
}

#[cfg(test)]
impl SessionInfo {
    pub(crate) fn with_tasks(queues: &[&str], tasks: &[&str]) -> Arc<Self> {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let skills = Skills::new(Some(names(tasks)), None);
        let (queues, heard_at) = (names(queues), AtomicI64::new(0));
        Arc::new(Self {
            id: SessionId(uuid::Uuid::nil()),
            worker: String::new(),
            tenant: None,
            queues,
            skills,
            identity: None,
            slots: 1,
            draining: false.into(),
            drained: false.into(),
            held_back: false.into(),
            heard_at,
        })
    }

    pub(crate) fn new(tenant: Option<TenantId>, queues: Vec<String>, slots: u32, draining: bool) -> Arc<Self> {
        let skills = Arc::default();
        let (identity, heard_at, drained, held_back) = (None, AtomicI64::new(0), false.into(), false.into());
        let draining = draining.into();
        let (id, worker) = (SessionId(uuid::Uuid::nil()), String::new());
        Arc::new(Self { id, worker, tenant, queues, skills, identity, slots, draining, drained, held_back, heard_at })
    }
}
