//! Dispatch: ready runs on one side, sessions with room on the other, claimed in batches between them.
//!
//! ```text
//!   commits (hints)        the scan of the store              starts
//!        │ became_ready         │ found                         │ reserve
//!        ▼                      ▼                               │
//!   ┌─────────────────────────────────────────┐                 │
//!   │ ready.rs: ready runs, by group          │                 │
//!   │   (queue, tenant, workspace), in turns; │                 │
//!   │   inside a group by need (need.rs)      │                 │
//!   └───────┬─────────────────────────────────┘                 │
//!           │ take        ▲ released, lifted                     │
//!           │   ┌─────────┴──────────────────────┐              │
//!           │   │ workflow_limits.rs: runs whose │              │
//!           │   │ workflow is at a limit         │              │
//!           │   └────────────────────────────────┘              │
//!           ▼                                                   ▼
//!   ┌───────────────┐   room that is left over    ┌────────────────────────┐
//!   │ poll.rs: the  │ ──────────────────────────► │ offers.rs: room that   │
//!   │ poll claims   │                             │ polls offer to starts  │
//!   └───────┬───────┘                             └───────────┬────────────┘
//!           │ claimed, committed                              │ claimed with the start
//!           ▼                                                 ▼
//!   ┌──────────────────────────────────────────────────────────────────────┐
//!   │ pending.rs: deliveries that wait for the session's poll, or its next │
//!   └──────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! - A **group** is what takes turns: one queue of one workspace of one tenant. A turn is as long as the tenant's weight.
//! - A **need** is what a step asks of a worker: its task, or its kind where it is no task. A session takes what it named
//!   when it registered; what no session can do waits where it is, unclaimed. A worker that the policy has kept from a
//!   step is not given it again under the same bundle.
//! - A **place** is room for one step. A poll has as many as it asks for; an **offer** is what is left of them, which a
//!   start may take to claim its first step in its own commit. The last places of a session that serves all tenants are
//!   **kept** for tenants below their **share** (shares.rs) of what was taken lately.
//! - A tenant at its cap is **throttled**: its groups are left alone for a moment, or until one of its claims ends. Runs
//!   of a workflow at its limit are **parked** apart, out of the way of the tenant's others.
//! - A run whose commands share a directory is **offered** to the session that would have claimed its step, or to one whose
//!   poll waits and that has more room (run_offers.rs). The answer is a call of its own; once a session has taken the run, its steps are for that one alone.
//!   One whose worker was offline a moment ago is passed over while another connected worker could take the run.
//! - A **pending delivery** is a step that is claimed and has not gone out. A poll delivers at most as many as it asks for.
//!
//! All of it is memory, behind one lock, and none of it is the truth: a claim is decided by the store's guard, and what is
//! lost here is found by the scan. Dispatch knows sessions by what they can take ([`session::SessionInfo`]); how they
//! live and die is told in `sessions`, which calls dispatch and is not called by it.

pub(crate) mod need;
mod offers;
mod pending;
mod poll;
pub(crate) mod ready;
mod refusals;
mod run_offers;
pub mod session;
pub(crate) mod shares;
pub(crate) mod workflow_limits;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use interlock_core::ids::{RunId, SessionId, TenantId};
use interlock_core::json::Hash;
use interlock_core::plan::StepSpec;
use interlock_core::planted::{Bug, is_planted};
use interlock_core::run::Run;
use interlock_core::tenant::caps::ReachedCap;
use interlock_core::time::Timestamp;
use interlock_core::work::offer::RunOffer;
use interlock_core::work::{Assignment, AttemptRef, Claimer};
use tokio::sync::Notify;

use self::need::{Mismatch, Need};
use self::offers::{Offers, PlaceRequest};
use self::pending::PendingDeliveries;
use self::poll::TriedClaim;
pub use self::ready::Pressure;
use self::ready::{Candidate, GroupKey, ReadyRuns};
use self::refusals::{Refusals, RefusedStep};
use self::run_offers::RunOffers;
use self::session::SessionInfo;
use self::shares::Shares;
use self::workflow_limits::{Freed, LimitedWorkflow, Pass, WorkflowLimits};

pub struct Dispatch {
    state: Mutex<State>,
    /// Pollers wait here.
    work: Notify,
    /// The scan of the store waits here.
    pub(crate) rescan: Notify,
    /// The same, where only the instant has changed at which it has something to do.
    pub(crate) repace: Notify,
    /// The earliest instant at which a delayed step becomes eligible, as far as hints told; else the far future.
    scan_at: AtomicI64,
    /// Numbers the polls.
    polls: AtomicU64,
}

impl Dispatch {
    /// With so many ready runs of one group in memory, and quiet tenants where so many places were taken lately.
    pub(crate) fn new(ready_max: usize, busy_from_places: u64) -> Self {
        let (ready, shares) = (ReadyRuns::new(ready_max), Shares::new(busy_from_places));
        Self {
            state: Mutex::new(State { ready, shares, ..State::default() }),
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
    limits: WorkflowLimits,
    offers: Offers,
    /// Steps that were claimed for a session and have not gone out to it.
    pending: PendingDeliveries,
    /// Runs that sessions are asked to take as a whole, until their poll takes the question along.
    run_offers: RunOffers,
    /// Whom the policy keeps from which steps, as this server has heard.
    refusals: Refusals,
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
            self.ready.push(key, candidate, Need::Unknown);
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
        (key, candidate): (GroupKey, Candidate),
        spec: &StepSpec,
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
            if let Some(workflow) = limited.filter(|workflow| state.limits.holds(workflow, now)) {
                state.limits.park(workflow, &key, candidate);
                return;
            }
            state.ready.push(key, candidate, Need::of(spec));
        }
        self.work.notify_waiters();
    }

    /// What the scan found of one group. `more`: the store holds more than it read.
    pub(crate) fn found(&self, key: &GroupKey, runs: impl Iterator<Item = Candidate>, more: bool) {
        let mut any = false;
        {
            let mut state = self.state();
            for candidate in runs.filter(|_| !is_planted(Bug::LostWakeUp)) {
                any |=
                    !state.limits.is_parked(candidate.run) && state.ready.push(key.clone(), candidate, Need::Unknown);
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
            let freed = state.limits.released(tenant, workflow);
            state.put_back(freed) | state.ready.released(tenant)
        };
        if waited {
            self.work.notify_waiters();
        }
    }

    /// Whether the limits of a workflow hold its runs back, as far as this server knows.
    pub(crate) fn holds(&self, workflow: &LimitedWorkflow, now: Timestamp) -> bool {
        self.state().limits.holds(workflow, now)
    }

    /// The workflows of which runs of this group are held back, or wait for a worker that has their task.
    pub(crate) fn parked_of(&self, key: &GroupKey) -> Vec<String> {
        let state = self.state();
        let mut workflows = state.limits.parked_of(key);
        workflows.extend(state.ready.unserved_of(key));
        workflows
    }

    /// A session was given a run whose step it cannot do: another one may.
    fn mismatched(&self, candidate: Candidate, mismatch: Mismatch) {
        let Mismatch { key, need, workflow } = mismatch;
        self.state().ready.mismatched(key, candidate, need, &workflow);
        self.work.notify_waiters();
    }

    /// What the scan has found, by group, of the groups that it has read to their end.
    pub(crate) fn compare(
        &self,
        found: &HashMap<GroupKey, HashSet<RunId>>,
        is_served: impl Fn(&GroupKey, &Need) -> bool,
    ) {
        self.state().ready.compare(found, is_served);
    }

    /// Tenants whose policy keeps workers from steps, as far as this server knows.
    pub(crate) fn denying_tenants(&self) -> HashSet<TenantId> {
        self.state().ready.denying_tenants()
    }

    /// The tenant has these rules now: whom others kept from a step is judged anew.
    pub(crate) fn judge_anew(&self, tenant: TenantId, in_force: Hash) {
        if self.state().ready.judge_anew(tenant, in_force) {
            self.work.notify_waiters();
        }
    }

    /// Another server has committed something.
    pub(crate) fn nudge(&self, now: Timestamp) {
        self.state().limits.nudge(now);
    }

    /// A run that was let through is no longer there to be claimed.
    fn let_another_try(&self, workflow: &LimitedWorkflow) {
        let freed = {
            let mut state = self.state();
            let freed = state.limits.another(workflow);
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
            let freed = if claimed { state.limits.claimed(workflow) } else { state.limits.unused(workflow) };
            state.put_back(freed)
        };
        if freed {
            self.work.notify_waiters();
        }
    }

    /// The limits of a workflow do not admit the claim: it waits apart, so that others do not wait for it.
    fn held(&self, tried: &TriedClaim, pass: Pass, held: ReachedCap, now: Timestamp) {
        let TriedClaim { workflow, key, candidate } = tried;
        let mut state = self.state();
        if state.limits.refused(workflow, pass, held, (key, *candidate), now) {
            drop(state);
            self.repace.notify_one();
        } else {
            state.ready.push(key.clone(), *candidate, Need::Unknown);
            drop(state);
            self.work.notify_waiters();
        }
    }

    pub(crate) fn set_weight(&self, tenant: TenantId, weight: u32) {
        self.state().ready.set_weight(tenant, weight);
    }

    /// Whether others could be claimed if the session let go of this run: then it must not go on with it for long.
    pub(crate) fn wait_behind(&self, run: &Run, info: &SessionInfo, now: Timestamp) -> bool {
        let state = self.state();
        state.ready.wait_behind(run.tenant, info, now) || state.limits.wait_behind(run, &info.queues)
    }

    /// When the scan should read the store again: a delayed step becomes eligible.
    pub(crate) fn next_scan_at(&self) -> Option<Timestamp> {
        Some(self.scan_at.load(Ordering::Relaxed)).filter(|at| *at < i64::MAX).map(Timestamp)
    }

    /// When a throttle or the pause of a workflow at its limit ends, which takes no look at the store.
    pub(crate) fn next_lift_at(&self) -> Option<Timestamp> {
        let state = self.state();
        [state.ready.next_unthrottled(), state.limits.next_lift()].into_iter().flatten().min()
    }

    pub(crate) fn scanned(&self, next_eligible: Option<Timestamp>, now: Timestamp) {
        self.scan_at.store(next_eligible.map_or(i64::MAX, |at| at.0), Ordering::Relaxed);
        self.lift(now);
    }

    /// Ends the throttles and pauses that are over.
    pub(crate) fn lift(&self, now: Timestamp) {
        {
            let mut state = self.state();
            if !is_planted(Bug::ScanSpins) {
                state.ready.lift_throttles(now);
            }
            let freed = state.limits.lift(now);
            state.put_back(freed);
        }
        // Throttles that ended open their groups: waiting polls look again.
        self.work.notify_waiters();
    }

    /// Memory has run low while the store holds more.
    pub(crate) fn starved(&self) -> bool {
        let mut state = self.state();
        state.ready.starved() | state.limits.starved()
    }

    /// Room for one more step of this tenant, where those who wait already leave some.
    pub(crate) fn reserve(&self, spec: &StepSpec, tenant: TenantId, now: Timestamp) -> Option<(Reserved<'_>, Claimer)> {
        let mut state = self.state();
        let State { ready, offers, shares, .. } = &mut *state;
        let over = shares.is_over(tenant, now);
        // Those over their share leave places that this one may take, unless it is over its own.
        let ahead = ready.ahead_of(spec, tenant, now, |other| over || !shares.is_over(other, now))?;
        let (session, skills) = offers.take(spec, tenant, PlaceRequest { ahead, over, now })?;
        shares.took(tenant, ready.weight(tenant), now);
        Some((Reserved { dispatch: self, session, places: 1 }, Claimer { session, skills }))
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
        self.state().pending.put(session, assignments, now);
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

    /// Sessions that were held back may take work again: waiting polls look once more.
    pub(crate) fn let_in(&self) {
        self.rescan.notify_one();
        self.work.notify_waiters();
    }

    /// Nothing more is claimed for the session.
    pub(crate) fn withdraw_offer(&self, session: SessionId) {
        self.state().offers.forget(session);
    }

    /// Takes back a step that was claimed for a session and has not gone out to it. Answers whether there was one.
    pub(crate) fn take_undelivered(&self, session: SessionId, at: AttemptRef) -> bool {
        self.state().pending.remove(session, at)
    }

    /// The same for all that were claimed for a session.
    pub(crate) fn take_all_undelivered(&self, session: SessionId) -> Vec<AttemptRef> {
        let waiting = self.state().pending.take(session, usize::MAX);
        waiting.into_iter().map(|(_, assignment)| assignment.at).collect()
    }

    /// Drops what is there for sessions other than these.
    pub(crate) fn keep_sessions(&self, sessions: &HashSet<SessionId>) {
        let mut state = self.state();
        state.pending.keep(sessions);
        state.run_offers.keep(sessions);
        state.refusals.keep(sessions);
        state.offers.keep(sessions);
    }

    pub(crate) fn forget_session(&self, session: SessionId) {
        let mut state = self.state();
        state.pending.forget(session);
        state.run_offers.take(session);
        state.refusals.forget(session);
        state.offers.forget(session);
        drop(state);
        // Its poll, if one is open, ends.
        self.work.notify_waiters();
    }

    /// How often the bounds of dispatch have mattered since the engine was opened.
    pub fn pressure(&self) -> Pressure {
        self.state().ready.pressure()
    }

    /// A session that would rather be asked to take the run than the one that came for it: its poll waits too, and it has more
    /// room, or was there while the one that came was offline.
    fn freer_for(&self, run: &Run, info: &SessionInfo, now: Timestamp) -> Option<Arc<SessionInfo>> {
        let queue = &run.spec(run.position).queue;
        let remembered = self.state().refusals.under_any_rules(run);
        let is_noted = |other: &SessionInfo| run.refused_workers().iter().any(|refused| refused.session == other.id);
        let is_refused = |other: &SessionInfo| remembered.contains(&other.id) || is_noted(other);
        let can_take =
            |other: &SessionInfo| other.serves(run.tenant, queue) && other.can_take(run) && !is_refused(other);
        self.state().offers.freer(info, now, can_take)
    }

    /// Whether this server remembers that the rules of this bundle keep the session from the step that the run stands at.
    pub(crate) fn remembers_refusal(&self, run: &Run, session: SessionId, bundle: Hash) -> bool {
        self.state().refusals.of(&RefusedStep::of(run, bundle)).contains(&session)
    }

    /// The runs that a session is asked to take, for its poll.
    pub(crate) fn take_run_offers(&self, session: SessionId) -> Vec<RunOffer> {
        self.state().run_offers.take(session)
    }

    pub fn ready_len(&self) -> usize {
        let state = self.state();
        state.ready.len() + state.limits.len()
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
