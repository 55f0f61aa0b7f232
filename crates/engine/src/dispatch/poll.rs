//! Polls: a session asks for work, and waits until some is claimed for it.
//!
//! A poll does not wait for its own claims alone. They go on beside it and are handed over once they are committed, so
//! that what else was handed over meanwhile goes out at once, and what became ready meanwhile is claimed at once. What
//! comes too late for one poll goes out with the session's next one.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::join_all;
use interlock_boxed::boxed;
use interlock_core::decide::Command;
use interlock_core::governance::action::Action;
use interlock_core::governance::judge::Judged;
use interlock_core::ids::{ReceiptId, SessionId, TenantId};
use interlock_core::json::{Hash, Json};
use interlock_core::keys::{EffectScope, effect_key};
use interlock_core::limits::REFUSED_WORKERS_MAX;
use interlock_core::plan::StepSpec;
use interlock_core::planted::{Bug, is_planted};
use interlock_core::rejection::Rejection;
use interlock_core::run::Run;
use interlock_core::run::change::Context;
use interlock_core::run::receipt::{CLAIM_TEMPLATE, Receipt};
use interlock_core::state::{EffectClass, ReceiptState, StepKind};
use interlock_core::time::Timestamp;
use interlock_core::work::offer::RunOffer;
use interlock_core::work::{Assignment, Skills};
use interlock_store::Refusal;

use super::need::{Mismatch, Need};
use super::ready::{Candidate, GroupKey};
use super::refusals::RefusedStep;
use super::session::SessionInfo;
use super::workflow_limits::{LimitedWorkflow, Pass};
use super::{Dispatch, Reserved};
use crate::cells::Streak;
use crate::error::EngineError;
use crate::parts::Workers;
use crate::policy::{KnownRuling, NotJudged};

/// How many steps one poll claims at most.
const CLAIM_BATCH_MAX: usize = 256;

/// How long a worker that others come before waits until it looks again, where all that it came for was passed over.
const PASSED_OVER_PAUSE: Duration = Duration::from_millis(100);

/// A claim of a limited workflow that is being tried.
pub(super) struct TriedClaim {
    pub workflow: LimitedWorkflow,
    pub key: GroupKey,
    pub candidate: Candidate,
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

impl Dispatch {
    /// What is there for a poll: steps that were claimed for its session already, at most `max`, else candidates for as
    /// much room as it has. One look under one lock: between two, claims under way could arrive and be counted as
    /// neither delivered nor on their way.
    fn deliver_or_take(
        &self,
        polling: &Offering<'_>,
        info: &Arc<SessionInfo>,
        max: usize,
        now: Timestamp,
    ) -> (Vec<(Timestamp, Assignment)>, Vec<Candidate>) {
        let (session, poll) = (polling.session, polling.poll);
        let mut state = self.state();
        let deliveries = state.pending.take(session, if is_planted(Bug::PollIgnoresMax) { usize::MAX } else { max });
        if !deliveries.is_empty() {
            return (deliveries, Vec::new());
        }
        let room = if info.takes_work() { state.offers.room(session, poll, max) } else { 0 };
        let candidates = state.take(info, room, now);
        let (left, taken) = (room - candidates.len(), candidates.len());
        state.offers.make(session, poll, info, left, taken);
        (Vec::new(), candidates)
    }
}

impl Workers {
    /// Claims up to `max` steps for a session; waits up to `wait` for the first one. What is claimed beyond that, for
    /// places that became free meanwhile, waits for the session's next poll.
    #[boxed]
    pub async fn poll(&self, session: SessionId, max: usize, wait: Duration) -> Result<Vec<Assignment>, EngineError> {
        self.poll_until(session, max, tokio::time::sleep(wait)).await
    }

    /// The same, waiting for the first one until `ended`. What this poll has begun to claim by then goes out with it.
    pub async fn poll_until(
        &self,
        session: SessionId,
        max: usize,
        ended: impl Future<Output = ()>,
    ) -> Result<Vec<Assignment>, EngineError> {
        if max == 0 {
            let what = "a poll asks for at least one step; a worker without a free slot does not poll".to_owned();
            return Err(Rejection::InvalidInput { what }.into());
        }
        let max = max.min(CLAIM_BATCH_MAX);
        tokio::pin!(ended);
        let info = self.session(session).await?;
        self.follow_flag(&info).await?;
        let dispatch = &self.0.0.dispatch;
        let offering = Offering { dispatch, session, poll: dispatch.polls.fetch_add(1, Ordering::Relaxed) };
        let mut claims = Vec::new();
        loop {
            let work = dispatch.work.notified();
            tokio::pin!(work);
            work.as_mut().enable();
            // Its lease has run out while it waited.
            if self.0.0.sessions.get(session).is_none() {
                return Err(EngineError::SessionGone);
            }
            if dispatch.state().run_offers.has_some(session) {
                return Ok(Vec::new());
            }
            let (deliveries, candidates) = dispatch.deliver_or_take(&offering, &info, max, self.0.now());
            if !deliveries.is_empty() {
                let held = self.deliverable(session, deliveries).await;
                if held.is_empty() {
                    // None of them is the session's any more: look for others.
                    continue;
                }
                dispatch.state().offers.answered(session, offering.poll, self.0.now());
                return Ok(held);
            }
            if dispatch.starved() {
                dispatch.rescan.notify_one();
            }
            if !candidates.is_empty() {
                let (engine, info) = (self.clone(), Arc::clone(&info));
                claims.push(self.0.0.tasks.spawn(async move { engine.claim_all(session, &info, candidates).await }));
            }
            tokio::select! {
                biased;
                () = self.0.0.stopping.cancelled() => return Err(EngineError::Closed),
                () = work => {}
                () = &mut ended => {
                    join_all(claims).await;
                    let deliveries = dispatch.state().pending.take(session, max);
                    return Ok(self.deliverable(session, deliveries).await);
                }
            }
        }
    }

    /// Claims what is still there of these, and hands it over.
    async fn claim_all(&self, session: SessionId, info: &SessionInfo, candidates: Vec<Candidate>) {
        let dispatch = &self.0.0.dispatch;
        let reserved = Reserved { dispatch, session, places: candidates.len() };
        self.preload(&candidates).await;
        let claims = candidates.into_iter().map(|candidate| self.claim(session, info, candidate));
        let claimed: Vec<Assignment> = join_all(claims).await.into_iter().flatten().collect();
        if claimed.is_empty() {
            if info.is_asked_last(self.0.now()) {
                // Others come first for these: a long line of such runs is not gone through again and again without a pause.
                tokio::time::sleep(PASSED_OVER_PAUSE).await;
            }
            // All of these hints were out of date; there may be others that are not, and their places are free again.
            drop(reserved);
            dispatch.work.notify_waiters();
        } else {
            dispatch.hand_over(session, claimed, self.0.now());
        }
    }

    /// Of what was claimed for a session meanwhile, that which it still holds, with its payloads.
    async fn deliverable(&self, session: SessionId, deliveries: Vec<(Timestamp, Assignment)>) -> Vec<Assignment> {
        let held = self.0.still_held(session, deliveries).await;
        self.0.with_payloads(session, held).await
    }

    /// Brings the candidates that are not in memory there with one read, instead of one each.
    async fn preload(&self, candidates: &[Candidate]) {
        let missing: Vec<_> = candidates
            .iter()
            .map(|candidate| (candidate.tenant, candidate.run))
            // What a restore has left is loaded by itself, and parked.
            .filter(|(tenant, run)| !self.0.0.cells.holds(*tenant, *run) && !self.0.0.unparked.holds(*tenant, *run))
            .collect();
        if missing.len() < 2 {
            return;
        }
        match self.0.0.store.load_runs(&missing).await {
            Ok(runs) => {
                runs.into_iter().filter(|run| !run.state.is_terminal()).for_each(|run| self.0.0.cells.offer(run));
            }
            Err(error) => tracing::debug!(%error, "candidates could not be read together; each claim will try"),
        }
    }

    /// Claims one step. A candidate that is gone, paused or throttled is no error: the hint was out of date.
    async fn claim(&self, session: SessionId, info: &SessionInfo, candidate: Candidate) -> Option<Assignment> {
        let Candidate { tenant, run, .. } = candidate;
        let dispatch = &self.0.0.dispatch;
        let mut limited: Option<(TriedClaim, Pass)> = None;
        let mut mismatch: Option<Mismatch> = None;
        let mut denied: Option<Mismatch> = None;
        let mut judge: Option<KnownRuling> = None;
        let mut unjudged: Option<Box<NotJudged>> = None;
        // Whose worker is judged: the session's own, or the one that is asked to take the run instead.
        let mut asked: Option<Arc<SessionInfo>> = None;
        let mut judged_for = session;
        // Sessions that are noted as refused, where no more can be noted; and of those that were looked up, which are over.
        let mut crowd: Option<Vec<SessionId>> = None;
        let mut over: Option<BTreeSet<SessionId>> = None;
        // The worker that would be asked was offline a moment ago: it is where no other worker could take the run.
        let mut latecomer: Option<Box<Run>> = None;
        let mut is_alone = false;
        // The tenant whose commands a worker of all tenants runs, once this claim has read it.
        let mut sole: Option<TenantId> = None;
        let (mut is_sole_read, mut asks_tenants) = (false, false);
        let claimed = loop {
            let claimed = self
                .0
                .execute(
                    tenant,
                    run,
                    Context::SYSTEM,
                    |facts| {
                        // An old hint: the run has gone on to a step that this session must not get.
                        let run = facts.run();
                        if !info.queues.contains(&run.spec(run.position).queue) && !is_planted(Bug::AnyQueue) {
                            return Err(Rejection::NotClaimable { run: run.id, control: run.control }.into());
                        }
                        (limited, mismatch, denied, unjudged) = (None, None, None, None);
                        if run.is_offered() {
                            return Err(Rejection::NotClaimable { run: run.id, control: run.control }.into());
                        }
                        let is_command = run.spec(run.position).is_command();
                        if is_command && info.runs_commands_of_all() && !is_sole_read {
                            asks_tenants = true;
                            return Ok(ControlFlow::Break(None));
                        }
                        let is_of_several = is_command && info.tenant.is_none() && sole != Some(tenant);
                        if is_of_several || !info.can_take(run) {
                            if is_planted(Bug::StaleMismatch) {
                                return Ok(ControlFlow::Break(None));
                            }
                            // Another server may have taken the run on to a step that the session can do: refused, the
                            // command is decided again on what stands in the store, and only that is remembered.
                            mismatch = run.is_claimable(self.0.now()).then(|| Mismatch::of(run, &info.skills));
                            return Err(Rejection::NotClaimable { run: run.id, control: run.control }.into());
                        }
                        if let Some(bundle) = self.known_refusal(run, session) {
                            denied = self.denied_now(run, session, bundle);
                            return Err(Rejection::NotClaimable { run: run.id, control: run.control }.into());
                        }
                        if run.seeks_worker() {
                            let better = dispatch.freer_for(run, info, self.0.now());
                            if better.as_ref().is_some_and(|better| better.tenant.is_none()) && !is_sole_read {
                                asks_tenants = true;
                                return Ok(ControlFlow::Break(None));
                            }
                            let better = better.filter(|better| better.tenant.is_some() || sole == Some(tenant));
                            let to = better.as_deref().unwrap_or(info);
                            if to.is_asked_last(self.0.now()) && !is_alone {
                                latecomer = Some(Box::new(run.clone()));
                                return Ok(ControlFlow::Break(None));
                            }
                            let action = Action::of_step(run.spec(run.position), run.position, run.input(run.position));
                            let is_known = |action: &Action| {
                                judged_for == to.id && judge.as_ref().is_some_and(|judge| judge.is_for(action, run))
                            };
                            if let Some(action) = action.as_ref().filter(|action| !is_known(action)) {
                                (judge, judged_for) = (self.0.known_judge(action, run), to.id);
                                if judge.is_none() {
                                    unjudged = Some(Box::new(NotJudged { action: action.clone(), run: run.clone() }));
                                    asked = better;
                                    return Ok(ControlFlow::Break(None));
                                }
                            }
                            let now = self.0.now();
                            let bundle = judge.as_ref().and_then(KnownRuling::refusing_bundle);
                            if let Some(bundle) = bundle {
                                crowd = crowd_of(run, over.as_ref());
                                if crowd.is_some() {
                                    return Ok(ControlFlow::Break(None));
                                }
                                denied = self.denied_now(run, to.id, bundle);
                            }
                            let command = offer_command(run, to, (action, judge.as_ref()), now);
                            return Ok(ControlFlow::Continue(forgetting(command, over.as_ref())));
                        }
                        // The worker may never report the effect that it performs, so the claim counts as the effect:
                        // it needs leave as one does.
                        if let Some(action) = claimed_action(&info.skills, run) {
                            if judged_for != session || judge.as_ref().is_none_or(|judge| !judge.is_for(&action, run)) {
                                (judge, judged_for) = (self.0.known_judge(&action, run), session);
                                if judge.is_none() {
                                    unjudged = Some(Box::new(NotJudged { action, run: run.clone() }));
                                    return Ok(ControlFlow::Break(None));
                                }
                            }
                            if let Some(bundle) = judge.as_ref().and_then(KnownRuling::refusing_bundle)
                                && run.assigned_session().is_none()
                            {
                                crowd = crowd_of(run, over.as_ref());
                                if crowd.is_some() {
                                    return Ok(ControlFlow::Break(None));
                                }
                                denied = self.denied_now(run, session, bundle);
                                let refuses = self.claim_command(session, info, run, judge.as_ref())?;
                                return Ok(ControlFlow::Continue(forgetting(refuses, over.as_ref())));
                            }
                        }
                        if let Some(workflow) = LimitedWorkflow::of(run) {
                            let now = self.0.now();
                            // The pass is for a run that can use it.
                            if !run.is_claimable(now) {
                                dispatch.let_another_try(&workflow);
                                return Err(Rejection::NotClaimable { run: run.id, control: run.control }.into());
                            }
                            let key = GroupKey::of(run);
                            let pass = dispatch.state().limits.pass(&workflow, &key, candidate, now);
                            let Some(pass) = pass else { return Ok(ControlFlow::Break(None)) };
                            limited = Some((TriedClaim { workflow, key, candidate }, pass));
                        }
                        Ok(ControlFlow::Continue(self.claim_command(session, info, run, judge.as_ref())?))
                    },
                    |cell, change| {
                        cell.streak = Streak { steps: 1, since: change.at };
                        let run = cell.run.as_deref()?;
                        if let Some(offer) = RunOffer::of(run, self.0.0.epoch) {
                            let asked = run.offered_session().unwrap_or(session);
                            dispatch.state().run_offers.put(asked, offer);
                            if asked != session {
                                // Its poll takes the question along.
                                dispatch.work.notify_waiters();
                            }
                        }
                        self.0.assignment(run)
                    },
                )
                .await;
            if std::mem::take(&mut asks_tenants) {
                (sole, is_sole_read) = (Box::pin(self.0.sole_tenant_for_claim()).await, true);
                continue;
            }
            if let Some(run) = latecomer.take() {
                if self.others_are_first(&run).await {
                    // The scan offers the run again.
                    return None;
                }
                is_alone = true;
                continue;
            }
            if let Some(noted) = crowd.take() {
                over = Some(Box::pin(self.over_of(noted)).await);
                continue;
            }
            match unjudged.take() {
                Some(unjudged) => {
                    let NotJudged { action, run } = *unjudged;
                    let (spec, asked) = (run.spec(run.position), asked.take());
                    let worker = asked.as_ref().map_or(&*info.skills, |other| &*other.skills);
                    judge = Some(Box::pin(self.0.judge_with(action, spec, &run, worker)).await);
                }
                None => break claimed,
            }
        };
        if let Some(mismatch) = mismatch {
            dispatch.mismatched(candidate, mismatch);
            return None;
        }
        if let Some(denied) = denied
            && matches!(claimed, Ok(_) | Err(EngineError::Rejected(Rejection::NotClaimable { .. })))
        {
            dispatch.mismatched(candidate, denied);
            return None;
        }
        if let Some((tried, pass)) = &limited {
            match &claimed {
                Err(EngineError::Refused(Refusal::WorkflowThrottled { held })) => {
                    dispatch.held(tried, *pass, *held, self.0.now());
                    return None;
                }
                claimed => dispatch.tried(&tried.workflow, claimed.is_ok()),
            }
        }
        match claimed {
            Ok(assignment) => {
                self.0.0.set_aside.worked(tenant, run.into());
                assignment
            }
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
            Err(error) if error.is_outage() => {
                // The next scan offers the step again; to ask for one now would only ask too often.
                tracing::debug!(%run, %error, "a claim failed; the scan will offer the step again");
                None
            }
            Err(error) => {
                self.0.0.set_aside.failed(tenant, run.into(), &error, self.0.now());
                None
            }
        }
    }

    /// The bundle in force, where its rules have kept the session from the step that the run stands at before: as the run has noted,
    /// or as this server remembers.
    fn known_refusal(&self, run: &Run, session: SessionId) -> Option<Hash> {
        let noted = self.0.known_refusal(run, session);
        noted.or_else(|| {
            // Only where the run has no room left to note it.
            let is_full = run.refused_workers().len() >= REFUSED_WORKERS_MAX;
            let bundle = is_full.then(|| self.0.known_rules(run.tenant))??.active.hash();
            let remembered = self.0.0.dispatch.state().refusals.of(&RefusedStep::of(run, bundle));
            remembered.contains(&session).then_some(bundle)
        })
    }

    /// The rules of this bundle deny the step to the session's worker: this server remembers it, and the run waits for another one.
    /// Nothing where the step cannot be had now.
    fn denied_now(&self, run: &Run, session: SessionId, bundle: Hash) -> Option<Mismatch> {
        run.is_claimable(self.0.now()).then(|| {
            self.0.0.dispatch.state().refusals.note(RefusedStep::of(run, bundle), session);
            self.mismatch_of_denied(run, session, bundle)
        })
    }

    /// What a run needs that the rules of this bundle deny to the session's worker, and have denied to others before. Only sessions
    /// that this server knows come to it for work.
    fn mismatch_of_denied(&self, run: &Run, session: SessionId, bundle: Hash) -> Mismatch {
        let remembered = self.0.0.dispatch.state().refusals.of(&RefusedStep::of(run, bundle));
        let noted = run.refused_workers().iter().filter(|refused| refused.bundle.0 == bundle);
        let earlier = noted.map(|refused| refused.session).chain(remembered);
        let living = earlier.filter(|session| self.0.0.sessions.get(*session).is_some());
        Mismatch::denied(run, living.chain([session]).collect(), bundle)
    }

    /// Whether a worker that was not offline a moment ago has room and could take the run. Where the store does not say, the run waits.
    async fn others_are_first(&self, run: &Run) -> bool {
        let others = Box::pin(self.0.others_come_first(run)).await;
        others.unwrap_or_else(|error| {
            tracing::debug!(run = %run.id, %error, "who else could take the run could not be read");
            true
        })
    }

    /// Of these sessions, those that are over. Where the store does not say, none is.
    async fn over_of(&self, sessions: Vec<SessionId>) -> BTreeSet<SessionId> {
        let now = self.0.now();
        match self.0.0.store.sessions().await {
            Ok(rows) => {
                let living: BTreeSet<SessionId> =
                    rows.iter().filter(|row| !row.is_over(now)).map(|row| row.id).collect();
                sessions.into_iter().filter(|session| !living.contains(session)).collect()
            }
            Err(error) => {
                tracing::debug!(%error, "which refused workers are over could not be read");
                BTreeSet::new()
            }
        }
    }

    /// The claim of the run's current step. Where a repeat would do harm and the worker does not name its effects, the
    /// intent comes with it.
    fn claim_command(
        &self,
        session: SessionId,
        info: &SessionInfo,
        run: &Run,
        judge: Option<&KnownRuling>,
    ) -> Result<Command, EngineError> {
        let skills = &*info.skills;
        let (step, spec) = (run.current(), run.spec(run.position));
        let now = self.0.now();
        let Some(action) = claimed_action(skills, run) else { return Ok(Command::Claim { session }) };
        // What has to be judged and was not is not handed out.
        let Some(judge) = judge else {
            return Err(Rejection::NotClaimable { run: run.id, control: run.control }.into());
        };
        let grant = match Judged::by(judge, action, run).grant(run, now) {
            Ok(grant) => Box::new(grant),
            // A run that this worker has as a whole can go to no other one.
            Err(withheld) if judge.refusing_bundle().is_some() && run.assigned_session().is_none() => {
                let (worker, over) = (info.worker.clone(), BTreeSet::new());
                return Ok(Command::RefuseWorker { session, worker, withheld, over });
            }
            Err(withheld) => return Ok(Command::WithholdStep { withheld }),
        };
        if !skills.needs_intent(spec) {
            return Ok(Command::ClaimWithGrant { session, grant, names_effects: skills.names_effects });
        }
        let (iteration, attempt) = (step.iteration, step.attempt + 1);
        let scope = EffectScope { root: run.id, step_path: &spec.key, iteration, number: attempt };
        let receipt = Receipt {
            id: ReceiptId(self.0.0.options.ids.fresh()),
            position: run.position,
            iteration,
            attempt,
            key: effect_key(CLAIM_TEMPLATE, scope)?,
            effect: EffectClass::Unsafe,
            state: ReceiptState::Intent,
            request: Json::null(),
            response: None,
            intent_at: now,
            outcome_at: None,
            late: false,
            unsettled: false,
            bundle: None,
        };
        Ok(Command::ClaimWithIntent { session, receipt: Box::new(receipt), grant })
    }

    /// The tenant is at its cap: the candidate goes back, and the tenant is left alone for a moment.
    async fn throttled(&self, candidate: Candidate) {
        let cell = self.0.0.cells.get(candidate.tenant, candidate.run);
        let mut cell = cell.lock().await;
        if self.0.load(&mut cell, candidate.tenant, candidate.run).await.is_err() {
            return;
        }
        let run = cell.run.as_deref().expect("it was loaded above");
        let key = GroupKey::of(run);
        {
            let mut state = self.0.0.dispatch.state();
            state.ready.push(key, candidate, Need::of_run(run));
            state.ready.throttle(candidate.tenant, self.0.now());
        }
        // The scan loop sleeps until the throttle ends.
        self.0.0.dispatch.repace.notify_one();
    }
}

/// The sessions that are noted as refused on the run, where no more can be noted and nobody has looked up which of them live.
fn crowd_of(run: &Run, over: Option<&BTreeSet<SessionId>>) -> Option<Vec<SessionId>> {
    let noted = run.refused_workers();
    let is_full = over.is_none() && noted.len() >= REFUSED_WORKERS_MAX;
    is_full.then(|| noted.iter().map(|refused| refused.session).collect())
}

/// A refusal with the sessions that it finds to be over; any other command as it is.
fn forgetting(mut command: Command, over: Option<&BTreeSet<SessionId>>) -> Command {
    if let (Command::RefuseWorker { over: gone, .. }, Some(over)) = (&mut command, over) {
        gone.clone_from(over);
    }
    command
}

/// Asks a worker whether it takes the run, unless the rules deny it the step that it would begin with.
fn offer_command(
    run: &Run,
    to: &SessionInfo,
    (action, judge): (Option<Action>, Option<&KnownRuling>),
    now: Timestamp,
) -> Command {
    let (session, worker) = (to.id, to.worker.clone());
    if let (Some(action), Some(judge)) = (action, judge)
        && judge.refusing_bundle().is_some()
        && let Err(withheld) = Judged::by(judge, action, run).grant(run, now)
    {
        return Command::RefuseWorker { session, worker, withheld, over: BTreeSet::new() };
    }
    Command::OfferRun { session, worker }
}

/// What is to be judged once more before a step is handed out: rules that came into force since it became ready are heard
/// before it goes, and what people have agreed to may have lapsed. Only a step whose one effect is judged when its worker asks
/// for leave waits until then, unless a worker was refused there; of a task it is not known whether it will ask.
fn claimed_action(skills: &Skills, run: &Run) -> Option<Action> {
    let spec = run.spec(run.position);
    let is_agreed = run.notes.agreed.iter().any(|agreed| agreed.step == run.position);
    if asks_before(skills, spec) && !is_agreed && !run.is_denied_to_workers() {
        return None;
    }
    Action::of_step(spec, run.position, run.input(run.position))
}

/// Whether the worker surely asks for leave before it acts. A task may be a program, or code that names no effect.
fn asks_before(skills: &Skills, spec: &StepSpec) -> bool {
    skills.names_effects && matches!(spec.kind(), StepKind::Connector | StepKind::Model | StepKind::Command)
}
