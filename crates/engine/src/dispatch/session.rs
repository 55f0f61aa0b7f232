//! What dispatch knows of a worker session: whose steps it takes, from which queues, how many, and what it can do.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use interlock_core::ids::{SessionId, TenantId, WorkerIdentityId};
use interlock_core::plan::{StepSpec, commanded_profile};
use interlock_core::run::Run;
use interlock_core::state::WorkerState;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::work::Skills;
use interlock_store::SessionRow;

use super::need::Need;
use super::ready::GroupKey;
use super::shares;
use crate::sole_tenant::{SEVERAL_TENANTS, SoleTenant};

/// Workers whose heartbeats take about as long are as near as each other.
const ALIKE_WITHIN: Millis = Millis(10);

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
    /// Its tenant gives no steps to workers elsewhere: it goes on with the runs that it has as a whole, and stays.
    held_back: AtomicBool,
    /// It has a fault, and is given no command and no run for a while.
    errored: AtomicBool,
    /// An operator keeps new work from it: it goes on with the runs that it has as a whole.
    in_maintenance: AtomicBool,
    /// Its row has a fault or lost assignments, which are forgotten once it shows that it is well.
    blemished: AtomicBool,
    /// It was offline before it began the session: until this instant others are asked to take a run before it.
    asked_last_until: AtomicI64,
    /// When this server last heard of it.
    heard_at: AtomicI64,
    /// How long its last measured call took, in milliseconds; the greatest number where that is not known.
    round_trip: AtomicU64,
    /// Whose commands it may run where it is of all tenants.
    sole_tenant: Arc<SoleTenant>,
}

/// Stands for a round trip that is not known.
const UNMEASURED: u64 = u64::MAX;

impl SessionInfo {
    /// The session that a row describes. One that is over takes nothing new.
    pub(crate) fn of(row: SessionRow, now: Timestamp, fault_pause: Millis, sole_tenant: Arc<SoleTenant>) -> Arc<Self> {
        let hindrance = Hindrance::of(&row, now, fault_pause);
        // The worker inside a server is as near as can be; of the others it is measured.
        let round_trip = if row.tenant.is_none() { 0 } else { UNMEASURED };
        Arc::new(Self {
            id: row.id,
            worker: row.worker,
            tenant: row.tenant,
            queues: row.queues,
            skills: Skills::labeled(
                Skills::within(Skills::new(row.tasks, row.capabilities), row.terms, row.identity.is_some()),
                row.labels,
            ),
            identity: row.identity,
            slots: row.slots,
            draining: matches!(row.state, WorkerState::Draining | WorkerState::Offline).into(),
            drained: (row.state == WorkerState::Draining).into(),
            held_back: false.into(),
            errored: hindrance.errored.into(),
            in_maintenance: hindrance.in_maintenance.into(),
            blemished: hindrance.blemished.into(),
            asked_last_until: AtomicI64::new(0),
            heard_at: now.0.into(),
            round_trip: round_trip.into(),
            sole_tenant,
        })
    }

    /// Takes over what the session's row says of its faults and maintenance, whichever server was told. Answers whether
    /// something ended that kept work from it.
    pub(crate) fn follow(&self, row: &SessionRow, now: Timestamp, fault_pause: Millis) -> bool {
        let Hindrance { errored, in_maintenance, blemished } = Hindrance::of(row, now, fault_pause);
        let was_errored = self.errored.swap(errored, Ordering::Relaxed);
        let was_in_maintenance = self.in_maintenance.swap(in_maintenance, Ordering::Relaxed);
        self.blemished.store(blemished, Ordering::Relaxed);
        (was_errored && !errored) || (was_in_maintenance && !in_maintenance)
    }

    /// Whether it is given no command and no run, for a fault of its own.
    pub fn is_errored(&self) -> bool {
        self.errored.load(Ordering::Relaxed)
    }

    pub fn is_in_maintenance(&self) -> bool {
        self.in_maintenance.load(Ordering::Relaxed)
    }

    pub(crate) fn is_blemished(&self) -> bool {
        self.blemished.load(Ordering::Relaxed)
    }

    /// How many of its places are for tenants below their share only.
    pub(crate) fn kept(&self) -> usize {
        if self.tenant.is_some() { 0 } else { shares::kept(self.slots as usize) }
    }

    /// How well it stands to be asked to take a run, with so many places free: whether it was there all the while, then the share
    /// that is free, then how near it is, then whether it has no fault behind it.
    pub(crate) fn rank(&self, room: usize, now: Timestamp) -> (bool, usize, Reverse<u64>, bool) {
        let free = room.saturating_mul(1_000) / self.slots.max(1) as usize;
        let distance = self.round_trip.load(Ordering::Relaxed) / ALIKE_WITHIN.0;
        (!self.is_asked_last(now), free, Reverse(distance), !self.is_blemished())
    }

    /// Whether it was offline a moment ago: others are asked to take a run before it.
    pub(crate) fn is_asked_last(&self, now: Timestamp) -> bool {
        self.asked_last_until.load(Ordering::Relaxed) > now.0
    }

    /// Others are asked to take a run before it, until then.
    pub(crate) fn ask_last_until(&self, until: Timestamp) {
        self.asked_last_until.store(until.0, Ordering::Relaxed);
    }

    /// Answers whether it was not known before.
    pub(crate) fn set_round_trip(&self, round_trip: Millis) -> bool {
        self.round_trip.swap(round_trip.0.min(UNMEASURED - 1), Ordering::Relaxed) == UNMEASURED
    }

    /// How long its calls take to be answered, as it last said to this server.
    pub fn round_trip(&self) -> Option<Millis> {
        Some(self.round_trip.load(Ordering::Relaxed)).filter(|millis| *millis != UNMEASURED).map(Millis)
    }

    /// Whether it may be given steps at all. One that leaves is given none, also of runs that it has.
    pub fn takes_work(&self) -> bool {
        !self.draining.load(Ordering::Relaxed) && !self.is_drained()
    }

    /// Whether it may be given what is not its own yet. Otherwise it goes on with the runs that it has as a whole, to their end.
    pub fn takes_new(&self) -> bool {
        self.takes_work() && !self.is_kept_from_new()
    }

    /// Whether an operator keeps new work from it: by maintenance, or by the flag of its tenant.
    pub(crate) fn is_kept_from_new(&self) -> bool {
        self.is_in_maintenance() || self.is_held_back()
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

    /// Whether it runs commands, and serves all tenants.
    pub(crate) fn runs_commands_of_all(&self) -> bool {
        let mut names = self.skills.capabilities.iter().flatten();
        self.tenant.is_none() && names.any(|name| commanded_profile(name).is_some())
    }

    /// Whether it may run the tenant's commands, as was last read: one that serves all tenants runs those of the only one.
    pub(crate) fn may_run_commands_of(&self, tenant: TenantId) -> bool {
        self.tenant.is_some() || self.sole_tenant.is(tenant)
    }

    /// The bound that keeps it from the command which the run stands at, in words. Nothing where it merely lacks something.
    pub(crate) fn kept_from(&self, run: &Run) -> Option<String> {
        let distance = self.round_trip();
        if let Some((_, why)) = self.skills.kept_by_bound(run, distance) {
            return Some(why);
        }
        let is_several = !self.may_run_commands_of(run.tenant) && self.skills.can_take(run, distance);
        is_several.then(|| SEVERAL_TENANTS.to_owned())
    }

    /// Whether it can take runs of this group that need this.
    pub(crate) fn meets(&self, key: &GroupKey, need: &Need) -> bool {
        self.serves(key.tenant, &key.queue) && need.is_met_by(self)
    }

    /// Whether the step that a run stands at is for it: it can do it, the run is not another session's, and it has not said
    /// already that it could not. How far away it is counts when the run is given to it, and not again for what it has.
    pub(crate) fn can_take(&self, run: &Run) -> bool {
        let assigned = run.assigned_session();
        let is_its_own = assigned.is_none_or(|session| session == self.id);
        let is_new = assigned.is_none();
        let is_command = run.spec(run.position).is_command();
        is_its_own && !(is_new && self.is_kept_from_new()) && !(is_command && self.is_errored()) && self.could_take(run)
    }

    /// The same, if no operator kept new work from it and it had no fault.
    pub(crate) fn could_take(&self, run: &Run) -> bool {
        let is_new = run.assigned_session().is_none();
        let is_command = run.spec(run.position).is_command();
        let has_refused = run.seeks_worker() && run.was_refused_by(self.id);
        !has_refused
            && (!is_command || self.may_run_commands_of(run.tenant))
            && self.skills.can_take(run, if is_new { self.round_trip() } else { Some(Millis(0)) })
    }

    /// Whether a step may be claimed for it in the commit that makes the step ready.
    pub(crate) fn takes_at_once(&self, tenant: TenantId, spec: &StepSpec) -> bool {
        // The run's environment is not looked at here, so who may not act in all of them waits for its next poll. Neither are the
        // profile that a command needs and whose commands it may run: `can_do` says of every command that it cannot.
        let anywhere = self.skills.terms.is_none() && !self.is_kept_from_new();
        anywhere && self.serves(tenant, &spec.queue) && self.skills.can_do(spec) && !self.skills.needs_intent(spec)
    }
}

/// What keeps work from a session, as its row says.
struct Hindrance {
    errored: bool,
    in_maintenance: bool,
    blemished: bool,
}

impl Hindrance {
    fn of(row: &SessionRow, now: Timestamp, fault_pause: Millis) -> Self {
        Self {
            errored: row.fault.as_ref().is_some_and(|fault| fault.pauses_until(fault_pause) > now),
            in_maintenance: row.maintenance_at(now).is_some(),
            blemished: row.fault.is_some() || row.lost.is_some(),
        }
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
            errored: false.into(),
            in_maintenance: false.into(),
            blemished: false.into(),
            asked_last_until: AtomicI64::new(0),
            heard_at,
            round_trip: UNMEASURED.into(),
            sole_tenant: Arc::default(),
        })
    }

    pub(crate) fn new(tenant: Option<TenantId>, queues: Vec<String>, slots: u32, draining: bool) -> Arc<Self> {
        Arc::new(Self {
            id: SessionId(uuid::Uuid::nil()),
            worker: String::new(),
            tenant,
            queues,
            skills: Arc::default(),
            identity: None,
            slots,
            draining: draining.into(),
            drained: false.into(),
            held_back: false.into(),
            errored: false.into(),
            in_maintenance: false.into(),
            blemished: false.into(),
            asked_last_until: AtomicI64::new(0),
            heard_at: AtomicI64::new(0),
            round_trip: UNMEASURED.into(),
            sole_tenant: Arc::default(),
        })
    }
}
