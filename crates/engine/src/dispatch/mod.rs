//! Dispatch: ready runs on one side, sessions with room on the other, claimed in batches between them.

mod handed;
pub(crate) mod holds;
mod offers;
mod poll;
pub(crate) mod ready;
mod shares;

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use interlock_core::caps::Held;
use interlock_core::ids::{SessionId, TenantId};
use interlock_core::planted::{Bug, is_planted};
use interlock_core::run::Run;
use interlock_core::time::Timestamp;
use interlock_core::work::Assignment;
use tokio::sync::Notify;

use crate::sessions::SessionInfo;

use self::handed::Handed;
use self::holds::{Freed, Holds, LimitedWorkflow, Pass};
use self::offers::{Asked, Offers};
use self::poll::Tried;
use self::ready::{Candidate, GroupKey, ReadyRuns};
use self::shares::Shares;
pub(crate) use self::shares::kept;

pub struct Dispatch {
    state: Mutex<State>,
    /// Pollers wait here.
    work: Notify,
    /// The scan of the store waits here.
    pub(crate) rescan: Notify,
    /// The same, where only the instant of the next scan has changed.
    pub(crate) repace: Notify,
    /// The earliest instant at which a delayed step becomes eligible, as far as hints told; else the far future.
    scan_at: AtomicI64,
    /// Numbers the polls.
    polls: AtomicU64,
}

impl Default for Dispatch {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            work: Notify::new(),
            rescan: Notify::new(),
            repace: Notify::new(),
            scan_at: AtomicI64::new(i64::MAX),
            polls: AtomicU64::new(0),
        }
    }
}

#[derive(Default)]
struct State {
    ready: ReadyRuns,
    /// Those that the limits of their workflow hold back.
    holds: Holds,
    offers: Offers,
    handed: Handed,
    shares: Shares,
}

impl State {
    /// Takes candidates for a session that has this much room.
    fn take(&mut self, info: &SessionInfo, room: usize, now: Timestamp) -> Vec<Candidate> {
        let State { ready, shares, .. } = self;
        let candidates = ready.take(info, room, now, |tenant| shares.is_over(tenant, now));
        for candidate in &candidates {
            shares.took(candidate.tenant, ready.weight(candidate.tenant), now);
        }
        candidates
    }

    /// Puts runs back among the ready ones; answers whether there are any.
    fn put_back(&mut self, freed: Freed) -> bool {
        let any = !freed.is_empty();
        for (key, candidate) in freed {
            self.ready.push(key, candidate);
        }
        any
    }
}

impl Dispatch {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A hint: the run's step can be claimed, now or later.
    pub(crate) fn became_ready(
        &self,
        key: GroupKey,
        candidate: Candidate,
        limited: Option<&LimitedWorkflow>,
        now: Timestamp,
    ) {
        if candidate.eligible_at > now {
            if self.scan_at.fetch_min(candidate.eligible_at.0, Ordering::Relaxed) > candidate.eligible_at.0 {
                self.rescan.notify_one();
            }
            return;
        }
        if is_planted(Bug::LostWakeUp) {
            return;
        }
        {
            let mut state = self.state();
            if let Some(workflow) = limited.filter(|workflow| state.holds.holds(workflow, now)) {
                state.holds.park(workflow, &key, candidate);
                return;
            }
            state.ready.push(key, candidate);
        }
        self.work.notify_waiters();
    }

    /// What the scan found of one group. `more`: the store holds more than it read.
    pub(crate) fn found(&self, key: &GroupKey, runs: impl Iterator<Item = Candidate>, more: bool) {
        let mut any = false;
        {
            let mut state = self.state();
            for candidate in runs.filter(|_| !is_planted(Bug::LostWakeUp)) {
                any |= !state.holds.is_parked(candidate.run) && state.ready.push(key.clone(), candidate);
            }
            if more {
                state.ready.more_in_store(key);
            }
        }
        if any {
            self.work.notify_waiters();
        }
    }

    /// A claim of this workflow has ended.
    pub(crate) fn released(&self, tenant: TenantId, workflow: &str) {
        let waited = {
            let mut state = self.state();
            let freed = state.holds.released(tenant, workflow);
            state.put_back(freed) | state.ready.released(tenant)
        };
        if waited {
            self.work.notify_waiters();
        }
    }

    /// Whether the limits of a workflow hold its runs back, as far as this server knows.
    pub(crate) fn holds(&self, workflow: &LimitedWorkflow, now: Timestamp) -> bool {
        self.state().holds.holds(workflow, now)
    }

    /// The workflows of which runs of this group are held back.
    pub(crate) fn parked_of(&self, key: &GroupKey) -> Vec<String> {
        self.state().holds.parked_of(key)
    }

    /// Another server has committed something.
    pub(crate) fn nudge(&self, now: Timestamp) {
        self.state().holds.nudge(now);
    }

    /// A run that was let through is no longer there to be claimed.
    fn let_another_try(&self, workflow: &LimitedWorkflow) {
        let freed = {
            let mut state = self.state();
            let freed = state.holds.another(workflow);
            state.put_back(freed)
        };
        if freed {
            self.work.notify_waiters();
        }
    }

    /// A claim of a limited workflow was taken, or the leave for it was of no use.
    fn tried(&self, workflow: &LimitedWorkflow, claimed: bool) {
        let freed = {
            let mut state = self.state();
            let freed = if claimed { state.holds.claimed(workflow) } else { state.holds.unused(workflow) };
            state.put_back(freed)
        };
        if freed {
            self.work.notify_waiters();
        }
    }

    /// The limits of a workflow do not admit the claim: it waits apart, so that others do not wait for it.
    fn held(&self, tried: &Tried, pass: Pass, held: Held, now: Timestamp) {
        let Tried { workflow, key, candidate } = tried;
        let mut state = self.state();
        if state.holds.refused(workflow, pass, held, (key, *candidate), now) {
            drop(state);
            self.repace.notify_one();
        } else {
            state.ready.push(key.clone(), *candidate);
            drop(state);
            self.work.notify_waiters();
        }
    }

    pub(crate) fn set_weight(&self, tenant: TenantId, weight: u32) {
        self.state().ready.set_weight(tenant, weight);
    }

    /// Whether others could be claimed if a worker of these queues let go of this run: then it must not go on with it
    /// for long.
    pub(crate) fn wait_behind(&self, run: &Run, queues: &[String], now: Timestamp) -> bool {
        let state = self.state();
        state.ready.wait_behind(run.tenant, queues, now) || state.holds.wait_behind(run, queues)
    }

    /// When the scan should look again: a delayed step, or the end of a throttle.
    pub(crate) fn next_scan_at(&self) -> Option<Timestamp> {
        let delayed = Some(self.scan_at.load(Ordering::Relaxed)).filter(|at| *at < i64::MAX).map(Timestamp);
        let state = self.state();
        [delayed, state.ready.next_unthrottled(), state.holds.next_lift()].into_iter().flatten().min()
    }

    pub(crate) fn scanned(&self, next_eligible: Option<Timestamp>, now: Timestamp) {
        self.scan_at.store(next_eligible.map_or(i64::MAX, |at| at.0), Ordering::Relaxed);
        {
            let mut state = self.state();
            let freed = state.holds.lift(now);
            state.put_back(freed);
        }
        // Throttles that ended open their groups: whoever waits should look again.
        self.work.notify_waiters();
    }

    /// Memory has run low while the store holds more.
    pub(crate) fn starved(&self) -> bool {
        let mut state = self.state();
        state.ready.starved() | state.holds.starved()
    }

    /// Room for one more step of this queue and tenant, where those who wait already leave some.
    pub(crate) fn reserve(&self, queue: &str, tenant: TenantId, now: Timestamp) -> Option<Reserved<'_>> {
        let mut state = self.state();
        let State { ready, offers, shares, .. } = &mut *state;
        let over = shares.is_over(tenant, now);
        // Those over their share leave places that this one may take, unless it is over its own.
        let ahead = ready.ahead_of(queue, tenant, now, |other| over || !shares.is_over(other, now))?;
        let session = offers.take(queue, tenant, Asked { ahead, over, now })?;
        shares.took(tenant, ready.weight(tenant), now);
        Some(Reserved { dispatch: self, session, places: 1 })
    }

    /// Whether the tenant takes little while others take much.
    pub(crate) fn is_quiet(&self, tenant: TenantId, now: Timestamp) -> bool {
        self.state().shares.is_quiet(tenant, now)
    }

    /// Gives steps that were claimed for a session to its poll, the one that waits or the next one.
    pub(crate) fn hand_over(
        &self,
        session: SessionId,
        assignments: impl IntoIterator<Item = Assignment>,
        now: Timestamp,
    ) {
        self.state().handed.put(session, assignments, now);
        self.work.notify_waiters();
    }

    /// The session has finished a step and got no other for it.
    pub(crate) fn freed(&self, session: SessionId) {
        let wait = {
            let mut state = self.state();
            state.offers.freed(session);
            !state.ready.is_empty()
        };
        // Those that must not take the last places of a session may fit now.
        if wait {
            self.work.notify_waiters();
        }
    }

    pub(crate) fn forget_session(&self, session: SessionId) {
        let mut state = self.state();
        state.handed.forget(session);
        state.offers.forget(session);
    }

    pub fn ready_len(&self) -> usize {
        let state = self.state();
        state.ready.len() + state.holds.len()
    }
}

/// Places that a start has taken for its first step, or a poll for its claims, until those are handed over or come to
/// nothing.
pub(crate) struct Reserved<'a> {
    dispatch: &'a Dispatch,
    pub session: SessionId,
    places: usize,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.dispatch.state().offers.settle(self.session, self.places);
    }
}
