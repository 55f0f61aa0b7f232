//! Dispatch: ready runs on one side, sessions with room on the other, claimed in batches between them.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use interlock_core::caps::Held;
use interlock_core::change::Context;
use interlock_core::decide::Command;
use interlock_core::ids::{SessionId, TenantId};
use interlock_core::planted::{Bug, is_planted};
use interlock_core::rejection::Rejection;
use interlock_core::run::Run;
use interlock_core::time::Timestamp;
use interlock_core::work::Assignment;
use interlock_store::Refusal;
use std::ops::ControlFlow;
use tokio::sync::Notify;

use crate::Engine;
use crate::cells::Streak;
use crate::commands::assignment;
use crate::error::EngineError;
use crate::handed::Handed;
use crate::holds::{Freed, Holds, LimitedWorkflow, Pass};
use crate::offers::Offers;
use crate::ready::{Candidate, GroupKey, ReadyRuns};

/// How many steps one poll claims at most.
pub const CLAIM_BATCH_MAX: usize = 256;

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
}

impl State {
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
        let ahead = state.ready.ahead_of(queue, tenant, now)?;
        let session = state.offers.take(queue, tenant, ahead, now)?;
        Some(Reserved { dispatch: self, session })
    }

    /// Gives a step that was claimed for a session to its poll, the one that waits or the next one.
    pub(crate) fn hand_over(&self, session: SessionId, assignment: Assignment, now: Timestamp) {
        self.state().handed.put(session, assignment, now);
        self.work.notify_waiters();
    }

    /// The session has finished a step and got no other for it.
    pub(crate) fn freed(&self, session: SessionId) {
        self.state().offers.freed(session);
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

/// A claim of a limited workflow that is being tried.
struct Tried {
    workflow: LimitedWorkflow,
    key: GroupKey,
    candidate: Candidate,
}

/// A place that a start has taken for its first step, until that is handed over or comes to nothing.
pub(crate) struct Reserved<'a> {
    dispatch: &'a Dispatch,
    pub session: SessionId,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.dispatch.state().offers.settle(self.session);
    }
}

/// A poll under way, and the room it offers.
struct Offering<'a> {
    dispatch: &'a Dispatch,
    session: SessionId,
    poll: u64,
}

impl Drop for Offering<'_> {
    fn drop(&mut self) {
        self.dispatch.state().offers.ended(self.session, self.poll);
    }
}

impl Engine {
    /// Claims up to `max` steps for a session; waits up to `wait` for the first one.
    pub async fn poll(&self, session: SessionId, max: usize, wait: Duration) -> Result<Vec<Assignment>, EngineError> {
        let max = max.clamp(1, CLAIM_BATCH_MAX);
        let expired = tokio::time::sleep(wait);
        tokio::pin!(expired);
        let info = self.session(session).await?;
        let dispatch = &self.0.dispatch;
        let offering = Offering { dispatch, session, poll: dispatch.polls.fetch_add(1, Ordering::Relaxed) };
        loop {
            let work = dispatch.work.notified();
            tokio::pin!(work);
            work.as_mut().enable();
            let (handed, candidates) = {
                let now = self.now();
                let mut state = dispatch.state();
                let handed = state.handed.take(session);
                let room = if info.takes_work() { max.saturating_sub(handed.len()) } else { 0 };
                let room = state.offers.room(session, room);
                let candidates = state.ready.take(&info.queues, info.tenant, room, now);
                state.offers.make(session, offering.poll, &info, room - candidates.len());
                (handed, candidates)
            };
            if dispatch.starved() {
                dispatch.rescan.notify_one();
            }
            self.preload(&candidates).await;
            let tried = !candidates.is_empty();
            let mut assignments = self.still_held(session, handed).await;
            let claims = candidates.into_iter().map(|candidate| self.claim(session, &info.queues, candidate));
            assignments.extend(join_all(claims).await.into_iter().flatten());
            let tried = tried || !assignments.is_empty();
            if tried {
                assignments.extend(self.handed(session).await);
            }
            let assignments = self.with_payloads(session, assignments).await;
            if !assignments.is_empty() {
                dispatch.state().offers.answered(session, offering.poll, self.now());
                return Ok(assignments);
            }
            if tried {
                // All of these hints were out of date; there may be others that are not.
                continue;
            }
            tokio::select! {
                biased;
                () = self.0.stopping.cancelled() => return Err(EngineError::Closed),
                () = work => {}
                () = &mut expired => {
                    return Ok(self.with_payloads(session, self.handed(session).await).await);
                }
            }
        }
    }

    /// Takes what was claimed for a session meanwhile.
    async fn handed(&self, session: SessionId) -> Vec<Assignment> {
        let handed = self.0.dispatch.state().handed.take(session);
        self.still_held(session, handed).await
    }

    /// Brings the candidates that are not in memory there with one read, instead of one each.
    async fn preload(&self, candidates: &[Candidate]) {
        let missing: Vec<_> = candidates
            .iter()
            .map(|candidate| (candidate.tenant, candidate.run))
            .filter(|(tenant, run)| !self.0.cells.holds(*tenant, *run))
            .collect();
        if missing.len() < 2 {
            return;
        }
        match self.0.store.load_runs(&missing).await {
            Ok(runs) => runs.into_iter().filter(|run| !run.state.is_terminal()).for_each(|run| self.0.cells.offer(run)),
            Err(error) => tracing::debug!(%error, "candidates could not be read together; each claim will try"),
        }
    }

    /// Claims one step. A candidate that is gone, paused or throttled is no error: the hint was out of date.
    async fn claim(&self, session: SessionId, queues: &[String], candidate: Candidate) -> Option<Assignment> {
        let Candidate { tenant, run, .. } = candidate;
        let epoch = self.0.epoch;
        let dispatch = &self.0.dispatch;
        let mut limited: Option<(Tried, Pass)> = None;
        let claimed = self
            .execute(
                tenant,
                run,
                Context::SYSTEM,
                |facts| {
                    // An old hint: the run has gone on to a step that this session must not get.
                    let run = facts.run();
                    if !queues.contains(&run.spec(run.position).queue) && !is_planted(Bug::AnyQueue) {
                        return Err(Rejection::NotClaimable { run: run.id, control: run.control }.into());
                    }
                    limited = None;
                    if let Some(workflow) = LimitedWorkflow::of(run) {
                        let now = self.now();
                        // The leave is for somebody who can use it.
                        if !run.is_claimable(now) {
                            dispatch.let_another_try(&workflow);
                            return Err(Rejection::NotClaimable { run: run.id, control: run.control }.into());
                        }
                        let key = GroupKey::of(run);
                        let pass = dispatch.state().holds.pass(&workflow, &key, candidate, now);
                        let Some(pass) = pass else { return Ok(ControlFlow::Break(None)) };
                        limited = Some((Tried { workflow, key, candidate }, pass));
                    }
                    Ok(ControlFlow::Continue(Command::Claim { session }))
                },
                |cell, change| {
                    cell.streak = Streak { steps: 1, since: change.at };
                    cell.run.as_deref().and_then(|run| assignment(run, epoch))
                },
            )
            .await;
        if let Some((tried, pass)) = &limited {
            match &claimed {
                Err(EngineError::Refused(Refusal::WorkflowThrottled { held })) => {
                    dispatch.held(tried, *pass, *held, self.now());
                    return None;
                }
                claimed => dispatch.tried(&tried.workflow, claimed.is_ok()),
            }
        }
        match claimed {
            Ok(assignment) => assignment,
            Err(EngineError::Refused(Refusal::Throttled)) => {
                self.throttled(candidate).await;
                None
            }
            Err(EngineError::Rejected(
                Rejection::NotClaimable { .. }
                | Rejection::InvalidTransition { .. }
                | Rejection::Terminal { .. }
                | Rejection::UnknownRun { .. },
            )) => None,
            Err(error) => {
                tracing::warn!(%run, %error, "a claim failed; the scan will offer the step again");
                self.0.dispatch.rescan.notify_one();
                None
            }
        }
    }

    /// The tenant is at its cap: the candidate goes back, and the tenant is left alone for a moment.
    async fn throttled(&self, candidate: Candidate) {
        let cell = self.0.cells.get(candidate.tenant, candidate.run);
        let mut cell = cell.lock().await;
        if self.load(&mut cell, candidate.tenant, candidate.run).await.is_err() {
            return;
        }
        let run = cell.run.as_deref().expect("it was loaded above");
        let key = GroupKey::of(run);
        {
            let mut state = self.0.dispatch.state();
            state.ready.push(key, candidate);
            state.ready.throttle(candidate.tenant, self.now());
        }
        // The scan loop sleeps until the throttle ends.
        self.0.dispatch.rescan.notify_one();
    }
}
