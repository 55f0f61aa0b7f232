//! A run as its events tell it. This model knows nothing of how the engine decides: it knows which event may follow
//! which, and says so where one does not.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::ids::{ApprovalId, ReceiptId, SignalId};
use interlock_core::plan::Work;
use interlock_core::run::Run;
use interlock_core::run::approval::Purpose;
use interlock_core::run::event::Event;
use interlock_core::state::{ApprovalState, EffectClass, Reason, ReceiptState, RunState, StepKind, StepState};
use interlock_core::time::{Millis, Timestamp};
use interlock_store::EventRecord;

use super::ballots::Ballots;
use crate::books::ReportKind;

/// Where a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stage {
    /// Pending or ready: no event tells them apart.
    #[default]
    Idle,
    /// Claimed, by this attempt.
    Running(u32),
    Waiting,
    Asking,
    Doubt,
    Done(StepState),
}

#[derive(Debug, Clone, Copy, Default)]
pub struct StepModel {
    pub stage: Stage,
    pub attempt: u32,
    pub iteration: u32,
    /// Failures charged in this iteration.
    pub charged: u32,
    /// Its result comes from an earlier run.
    pub inherited: bool,
}

#[derive(Debug, Clone, Default)]
pub struct RunModel {
    pub seq: u64,
    pub ended: Option<RunState>,
    /// What workers' reports have become.
    pub recorded: BTreeSet<(u32, u32, ReportKind)>,
    /// Signals that woke a task.
    pub signals: Vec<SignalId>,
    /// How many signals its waits have used up, by type and key.
    pub consumed: BTreeMap<(String, String), u64>,
    /// When something of it was first claimed.
    pub first_claim_at: Option<Timestamp>,
    /// Steps that run once more because people have approved that, and what they approved.
    pub reruns: BTreeMap<u32, ApprovalId>,
    /// Approvals that were rejected, or expired, while the run was paused.
    pub refused_while_paused: u64,
    is_paused: bool,
    /// The policy has denied something that one of its steps was about to do.
    is_denied: bool,
    rollback: Vec<u32>,
    at: Timestamp,
    canceling: bool,
    steps: Vec<StepModel>,
    receipts: BTreeMap<ReceiptId, ReceiptState>,
    ballots: Ballots,
    /// Under which approval a guarded step was last started, and in which iteration.
    permits: BTreeMap<u32, (u32, Option<usize>)>,
    /// What waiting steps wait for.
    awaited: BTreeMap<u32, (String, String)>,
}

impl RunModel {
    pub fn step(&self, position: usize) -> StepModel {
        self.steps.get(position).copied().unwrap_or_default()
    }

    fn step_mut(&mut self, position: u32) -> &mut StepModel {
        let index = position as usize;
        if self.steps.len() <= index {
            self.steps.resize_with(index + 1, StepModel::default);
        }
        &mut self.steps[index]
    }

    /// Takes one event in. `skew` is how far the clocks of two servers may be apart.
    pub fn fold(&mut self, run: &Run, record: &EventRecord, skew: Millis) -> Result<(), String> {
        let event: Event = record.event.decode().map_err(|error| format!("an event is no event: {error}"))?;
        let wrong = |what: &str| format!("P4: event {} ({}) {what}", record.seq, record.event.as_str());
        if record.seq != self.seq + 1 {
            return Err(wrong(&format!("follows event {}", self.seq)));
        }
        if record.at + skew < self.at {
            return Err(wrong("happened before the one before it"));
        }
        if let Some(ended) = self.ended {
            return Err(wrong(&format!("comes after the run had ended as {ended}")));
        }
        (self.seq, self.at) = (record.seq, record.at.max(self.at));
        self.take(run, &event).map_err(|what| wrong(&what))
    }

    fn take(&mut self, run: &Run, event: &Event) -> Result<(), String> {
        let created = matches!(event, Event::RunCreated { .. });
        if created != (self.seq == 1) {
            return Err("is not where a run begins".into());
        }
        if let Some(step) = event.step()
            && step as usize >= run.steps.len()
        {
            return Err("is about a step that does not exist".into());
        }
        self.ballots.take(run, event)?;
        match event {
            Event::RunCanceled { done: false, .. } => self.canceling = true,
            Event::RunCanceled { done: true, .. } => self.ended = Some(RunState::Canceled),
            Event::RunFailed { reason, .. } => {
                self.ended = Some(RunState::Failed);
                return self.has_cause(*reason);
            }
            Event::RunCompleted {} => return self.completed(run),
            Event::StepStarted { step, attempt, .. } => return self.started(run, *step, *attempt),
            Event::StepCompleted { step, attempt, .. } => return self.succeeded(run, *step, *attempt),
            Event::StepFailed { step, attempt, error, .. } => {
                self.ended_by(*step, *attempt, &error.message)?;
                return self.leave(*step, Stage::Done(StepState::Failed), |stage| !matches!(stage, Stage::Done(_)));
            }
            Event::StepRetrying { step, attempt, error, .. } => {
                self.ended_by(*step, *attempt, &error.message)?;
                return self.retrying(run, *step, *attempt);
            }
            Event::StepReady { step, why, signal } => return self.ready(run, *step, why, *signal),
            Event::StepWaiting { step, signal, key, .. } => {
                match signal.clone().zip(key.clone()) {
                    Some(awaited) => self.awaited.insert(*step, awaited),
                    None => self.awaited.remove(step),
                };
                return self.waits(run, *step);
            }
            Event::StepInDoubt { step, attempt, .. } => {
                self.recorded.insert((*step, *attempt, ReportKind::Failed));
                self.step_mut(*step).charged += 1;
                return self.leave(*step, Stage::Doubt, |stage| stage == Stage::Running(*attempt));
            }
            Event::StepSkipped { step, .. } => {
                let asked = self.step(*step as usize).stage != Stage::Idle && self.ballots.is_asked(*step);
                if asked && self.is_refused(run, *step) && !self.ballots.is_approved(*step, Purpose::Skip) {
                    return Err("P5: skips what people have not approved".into());
                }
                let stages = |stage| matches!(stage, Stage::Idle | Stage::Asking | Stage::Done(StepState::Failed));
                return self.leave(*step, Stage::Done(StepState::Skipped), stages);
            }
            Event::StepCanceled { step } => {
                // A live attempt must have been given the time to end.
                if matches!(self.step(*step as usize).stage, Stage::Running(_)) && !self.canceling {
                    return Err("cancels an attempt that is running".into());
                }
                let to = Stage::Done(StepState::Canceled);
                return self.leave(*step, to, |stage| !matches!(stage, Stage::Done(_)));
            }
            Event::RollbackStarted { steps } => return self.roll_back(run, steps),
            Event::ApprovalRequested { step, .. } => {
                let stages = |stage| matches!(stage, Stage::Idle | Stage::Asking | Stage::Done(StepState::Failed));
                return self.leave(*step, Stage::Asking, stages);
            }
            Event::RunPaused { .. } => self.is_paused = true,
            Event::RunResumed {} => return self.resumed(),
            Event::PolicyDecided { verdict, .. } => self.is_denied |= verdict == "deny",
            Event::ApprovalVoted { step, .. }
            | Event::ApprovalEscalated { step, .. }
            | Event::ApprovalResolved { step, .. } => {
                let is_refusal = matches!(
                    event,
                    Event::ApprovalResolved { status: ApprovalState::Rejected | ApprovalState::Expired, .. }
                );
                self.refused_while_paused += u64::from(self.is_paused && is_refusal);
                return self.leave(*step, Stage::Asking, |stage| stage == Stage::Asking);
            }
            Event::ReceiptRecorded { step, attempt, receipt, state, .. } => {
                return self.receipt(run, (*step, *attempt), *receipt, *state);
            }
            Event::RunCreated { .. }
            | Event::EffectDeduplicated { .. }
            | Event::RunAssigned { .. }
            | Event::RunOffered { .. }
            | Event::RunUnassigned { .. }
            | Event::RollbackCompleted {} => {}
        }
        Ok(())
    }

    fn leave(&mut self, step: u32, to: Stage, allowed: impl Fn(Stage) -> bool) -> Result<(), String> {
        let stage = self.step(step as usize).stage;
        if !allowed(stage) {
            return Err(format!("does not follow from {stage:?}"));
        }
        self.step_mut(step).stage = to;
        Ok(())
    }

    /// What stands at an approval that was refused, or that a skip asks for, goes on by a directive and not by being resumed.
    fn resumed(&mut self) -> Result<(), String> {
        self.is_paused = false;
        let mut asking = (0..).zip(&self.steps).filter(|(_, step)| step.stage == Stage::Asking);
        match asking.find(|(step, _)| !self.ballots.is_question(*step)) {
            Some((step, _)) => Err(format!("P5: although step {step} stands at an approval that was not given")),
            None => Ok(()),
        }
    }

    /// Only a decision denies, only a vote rejects, and only an approval expires: what a run says of why it has stopped must
    /// have happened to it.
    pub fn has_cause(&self, reason: Option<Reason>) -> Result<(), String> {
        let has_happened = match reason {
            Some(Reason::PolicyDenied) => self.is_denied,
            Some(Reason::ApprovalRejected) => self.ballots.has_any(ApprovalState::Rejected),
            Some(Reason::ApprovalExpired) => self.ballots.has_any(ApprovalState::Expired),
            _ => true,
        };
        match reason.filter(|_| !has_happened) {
            Some(reason) => Err(format!("has the reason {reason}, and nothing of the kind has happened to the run")),
            None => Ok(()),
        }
    }

    fn completed(&mut self, run: &Run) -> Result<(), String> {
        self.ended = Some(RunState::Succeeded);
        let good = |stage| matches!(stage, Stage::Done(StepState::Succeeded | StepState::Skipped));
        match (0..run.forward_len()).find(|position| !good(self.step(*position).stage)) {
            Some(position) => Err(format!("although step {position} is {:?}", self.step(position).stage)),
            None => Ok(()),
        }
    }

    fn started(&mut self, run: &Run, step: u32, attempt: u32) -> Result<(), String> {
        let known = self.step(step as usize);
        if attempt != known.attempt + 1 {
            return Err(format!("follows attempt {}", known.attempt));
        }
        let forward = run.forward_len() as u32;
        if self.canceling && step < forward {
            return Err("starts while the run is being canceled".into());
        }
        let first = if step < forward { 0 } else { forward };
        let behind = |stage| matches!(stage, Stage::Done(_));
        if let Some(before) = (first..step).find(|before| !behind(self.step(*before as usize).stage)) {
            return Err(format!("overtakes step {before}"));
        }
        if step < forward {
            self.permitted(run, step)?;
        }
        self.first_claim_at.get_or_insert(self.at);
        self.leave(step, Stage::Running(attempt), |stage| stage == Stage::Idle)?;
        self.step_mut(step).attempt = attempt;
        Ok(())
    }

    /// Whether the step waits for an approval, or is a gate that has failed.
    fn is_refused(&self, run: &Run, step: u32) -> bool {
        let stage = self.step(step as usize).stage;
        stage == Stage::Asking || matches!(run.spec(step).work, Work::Approval(_))
    }

    /// Whether a task stands behind a gate that was passed.
    fn is_guarded(&self, run: &Run, step: u32) -> bool {
        let passed = |at: u32| self.step(at as usize).stage == Stage::Done(StepState::Succeeded);
        matches!(run.spec(step).work, Work::Task { .. })
            && (0..step).any(|at| matches!(run.spec(at).work, Work::Approval(_)) && passed(at))
    }

    /// An approval permits a guarded step once: another iteration of it, or another run, needs another one.
    fn permitted(&mut self, run: &Run, step: u32) -> Result<(), String> {
        let acts = matches!(run.spec(step).work, Work::Task { .. });
        let is_gate = |at: &u32| matches!(run.spec(*at).work, Work::Approval(_));
        let stage = |at: u32| self.step(at as usize).stage;
        let gate = (0..step).rev().find(|at| is_gate(at) && stage(*at) == Stage::Done(StepState::Succeeded));
        let Some(gate) = gate.filter(|_| acts) else { return Ok(()) };
        // A gate guards what comes behind it up to the next one. Where people have agreed to skip that, they have agreed to
        // what it guards.
        let is_skipped = |at: u32| is_gate(&at) && self.ballots.is_approved(at, Purpose::Skip);
        if self.step(gate as usize).inherited && !(gate + 1..step).any(is_skipped) {
            return Err(format!("P5: starts behind gate {gate}, which only an earlier run was granted"));
        }
        let given = self.ballots.last_given(|at| (gate..=step).contains(&at) && (at == step || is_gate(&at)));
        let iteration = self.step(step as usize).iteration;
        match self.permits.insert(step, (iteration, given)) {
            Some((before, used)) if before != iteration && used == given => {
                Err(format!("P5: starts again, in iteration {iteration}, on the approval of iteration {before}"))
            }
            _ => Ok(()),
        }
    }

    fn succeeded(&mut self, run: &Run, step: u32, attempt: u32) -> Result<(), String> {
        let kind = run.spec(step).kind();
        self.recorded.insert((step, attempt, ReportKind::Completed));
        if run.header.lineage.is_some() && attempt == 0 && self.step(step as usize).stage == Stage::Idle {
            self.step_mut(step).inherited = true;
        }
        let known = self.step(step as usize);
        if kind == StepKind::Approval && !known.inherited && !self.ballots.is_approved(step, Purpose::Gate) {
            return Err("P5: passes a gate that was not approved".into());
        }
        if known.stage == Stage::Waiting {
            self.consume(step);
        }
        self.leave(step, Stage::Done(StepState::Succeeded), |stage| match stage {
            Stage::Running(running) => running == attempt,
            Stage::Waiting => kind == StepKind::Wait,
            Stage::Asking => kind == StepKind::Approval,
            Stage::Doubt => known.attempt == attempt,
            Stage::Idle => known.inherited,
            Stage::Done(_) => false,
        })
    }

    /// The error of a simulated attempt names it: an error of another one was let in.
    fn ended_by(&mut self, step: u32, attempt: u32, message: &str) -> Result<(), String> {
        self.recorded.insert((step, attempt, ReportKind::Failed));
        match message.strip_prefix("attempt ") {
            Some(by) if by != attempt.to_string() => Err(format!("P2: tells of attempt {by}")),
            _ => Ok(()),
        }
    }

    fn retrying(&mut self, run: &Run, step: u32, attempt: u32) -> Result<(), String> {
        let budget = run.spec(step).retry_policy().max_attempts;
        let charged = self.step(step as usize).charged;
        if charged + 1 >= budget {
            return Err(format!("is failure {} of a budget of {budget}", charged + 1));
        }
        self.step_mut(step).charged += 1;
        self.leave(step, Stage::Idle, |stage| stage == Stage::Running(attempt))
    }

    fn ready(&mut self, run: &Run, step: u32, why: &str, signal: Option<SignalId>) -> Result<(), String> {
        let attempt = self.step(step as usize).attempt;
        match why {
            "signal" | "timeout" => {
                if why == "signal" {
                    self.consume(step);
                }
                self.signals.extend(signal);
                self.leave(step, Stage::Idle, |stage| stage == Stage::Waiting)
            }
            // The subject has become free, or an earlier run has left it for a later iteration: it waits as before.
            "subject_free" | "resumed" => self.leave(step, Stage::Idle, |stage| stage == Stage::Idle),
            "approved" => {
                if !self.ballots.is_approved(step, Purpose::Retry) {
                    return Err("P5: runs again, and nobody has approved it".into());
                }
                self.reruns.extend(self.ballots.last(step).map(|approval| (step, approval)));
                self.leave(step, Stage::Idle, |stage| stage == Stage::Asking)
            }
            "released" => self.leave(step, Stage::Idle, |stage| stage == Stage::Running(attempt)),
            "late_outcome" => self.leave(step, Stage::Idle, |stage| stage == Stage::Doubt),
            "rolled_back" => {
                let undone = |stage| matches!(stage, Stage::Done(StepState::Succeeded | StepState::Failed));
                self.leave(step, Stage::Done(StepState::RolledBack), undone)
            }
            "operator_retry" => {
                self.reruns.remove(&step);
                if self.is_guarded(run, step) && self.step(step as usize).stage != Stage::Asking {
                    return Err("P5: lets a guarded step run again, and asks nobody".into());
                }
                let known = self.step_mut(step);
                (known.iteration, known.charged) = (known.iteration + 1, 0);
                if known.stage == Stage::Done(StepState::Failed) {
                    known.stage = Stage::Idle;
                }
                self.leave(step, self.step(step as usize).stage, |stage| {
                    matches!(stage, Stage::Idle | Stage::Asking | Stage::Waiting)
                })
            }
            "restart" => {
                self.reruns.remove(&step);
                let known = self.step_mut(step);
                (known.iteration, known.charged, known.inherited) = (known.iteration + 1, 0, false);
                self.leave(step, Stage::Idle, |stage| !matches!(stage, Stage::Running(_) | Stage::Doubt))
            }
            _ if why.starts_with("resolved") => self.leave(step, Stage::Idle, |stage| stage == Stage::Doubt),
            _ => Err("has a cause that nobody knows".into()),
        }
    }

    fn consume(&mut self, step: u32) {
        if let Some(awaited) = self.awaited.get(&step) {
            *self.consumed.entry(awaited.clone()).or_default() += 1;
        }
    }

    fn waits(&mut self, run: &Run, step: u32) -> Result<(), String> {
        let known = self.step(step as usize);
        if let Stage::Running(attempt) = known.stage {
            self.recorded.insert((step, attempt, ReportKind::Waiting));
        }
        let is_wait = run.spec(step).kind() == StepKind::Wait;
        self.leave(step, Stage::Waiting, |stage| match stage {
            Stage::Running(_) => !is_wait,
            Stage::Idle | Stage::Done(StepState::Failed) => is_wait,
            _ => false,
        })
    }

    fn roll_back(&mut self, run: &Run, steps: &[u32]) -> Result<(), String> {
        if !self.rollback.is_empty() {
            return Err("is a second rollback".into());
        }
        let forward = run.forward_len() as u32;
        if !steps.iter().copied().eq(forward..forward + steps.len() as u32) {
            return Err("does not name the steps behind the plan".into());
        }
        self.rollback = steps.to_vec();
        Ok(())
    }

    fn receipt(
        &mut self,
        run: &Run,
        (step, attempt): (u32, u32),
        id: ReceiptId,
        state: ReceiptState,
    ) -> Result<(), String> {
        let before = self.receipts.insert(id, state);
        let stage = self.step(step as usize).stage;
        match state {
            ReceiptState::Intent => {
                if stage != Stage::Running(attempt) {
                    return Err(format!("P2: is an intent of attempt {attempt} while the step is {stage:?}"));
                }
                if self.canceling && self.rollback.is_empty() {
                    return Err("begins an effect while the run is being canceled".into());
                }
                // A later attempt asks anew where a repeat does no harm.
                let is_harmless = run.spec(step).effect_class() != EffectClass::Unsafe;
                let again = matches!(before, Some(ReceiptState::Intent | ReceiptState::InDoubt)) && is_harmless;
                if !again && !matches!(before, None | Some(ReceiptState::Failed)) {
                    return Err(format!("is an intent after {before:?}"));
                }
            }
            ReceiptState::Succeeded | ReceiptState::Failed => {
                if !matches!(before, Some(ReceiptState::Intent | ReceiptState::InDoubt)) {
                    return Err(format!("is an outcome after {before:?}"));
                }
            }
            ReceiptState::InDoubt => {}
        }
        Ok(())
    }
}
