//! The rows of a run, folded back into a run the way a store would: the plan and the appended specs, the latest
//! record of each step, and the live row for the step that the run stands at. Whatever is in memory but not in the
//! rows would be lost with the process; the comparison at the end finds it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ids::{ApprovalId, SignalId};
use crate::json::Json;
use crate::plan::{Plan, StepSpec};
use crate::run::change::{ChangeSet, Done, End, LiveChange, LiveRow, SideWrite, StepData};
use crate::run::{Phase, Run, Step};
use crate::state::{ApprovalState, Reason, RunState, StepState};

#[derive(Clone)]
pub struct Rows {
    start: Run,
    /// Read back from its text once: it stays as it is, and is compared after every change.
    plan: Arc<Plan>,
    live: Option<LiveRow>,
    end: Option<End>,
    version: u64,
    done: BTreeMap<u32, Done>,
    added: BTreeMap<u32, StepSpec>,
    waits: BTreeSet<u32>,
    approvals: BTreeMap<ApprovalId, ApprovalState>,
    votes: BTreeSet<(ApprovalId, String)>,
    signals: BTreeSet<SignalId>,
}

/// The way through a column of JSON.
fn stored<T: Serialize + DeserializeOwned>(value: &T) -> T {
    Json::of(value).unwrap().decode().unwrap()
}

impl Rows {
    pub fn of(run: &Run) -> Self {
        let plan: Plan = run.plan.encode().1.decode().unwrap();
        Self {
            start: run.clone(),
            plan: Arc::new(plan),
            live: None,
            end: None,
            version: 0,
            done: BTreeMap::new(),
            added: BTreeMap::new(),
            waits: BTreeSet::new(),
            approvals: BTreeMap::new(),
            votes: BTreeSet::new(),
            signals: BTreeSet::new(),
        }
    }

    pub fn open_waits(&self) -> usize {
        self.waits.len()
    }

    pub fn open_approvals(&self) -> usize {
        self.approvals.values().filter(|state| **state == ApprovalState::Requested).count()
    }

    pub fn write(&mut self, change: &ChangeSet) {
        self.version = change.version();
        match &change.live {
            LiveChange::Put(row) | LiveChange::Advance(row) => {
                let mut row = (**row).clone();
                row.step_data = row.step_data.as_ref().map(stored);
                row.notes = row.notes.as_ref().map(stored);
                self.live = Some(row);
            }
            LiveChange::Gone => self.live = None,
        }
        self.end = change.end.as_deref().cloned();
        for done in change.journal.iter().filter_map(|row| row.done.as_deref()) {
            let mut done = done.clone();
            if let Some(earlier) = self.done.remove(&done.position) {
                // What was answered before stands until a later record says otherwise.
                done.output = done.output.or(earlier.output);
            }
            self.done.insert(done.position, done);
        }
        for side in &change.side {
            self.write_side(side);
        }
    }

    /// With the guards that a store has.
    fn write_side(&mut self, side: &SideWrite) {
        let held = match side {
            SideWrite::AddStep { position, spec } => self.added.insert(*position, stored(&**spec)).is_none(),
            SideWrite::OpenWait { position, .. } => self.waits.insert(*position),
            SideWrite::CloseWait { position } => self.waits.remove(position),
            SideWrite::ConsumeSignal { signal, .. } => self.signals.insert(*signal),
            SideWrite::Vote { approval, vote } => self.votes.insert((*approval, vote.person.clone())),
            SideWrite::DropVote { approval, person } => self.votes.remove(&(*approval, person.clone())),
            SideWrite::PutApproval { approval, .. } => {
                let earlier = self.approvals.insert(approval.id, approval.state);
                // A closed approval is not written again.
                earlier.is_none_or(|state| state == ApprovalState::Requested)
            }
            _ => true,
        };
        assert!(held, "{side:?} breaks a guard");
    }

    fn rebuild(&self) -> Run {
        let mut run = self.start.clone();
        run.plan = Arc::clone(&self.plan);
        run.added = Arc::new(self.added.values().cloned().collect());
        run.version = self.version;
        run.steps = vec![Step::default(); run.forward_len() + self.added.len()];
        for (position, done) in &self.done {
            run.steps[*position as usize] = finished(done);
        }
        if let Some(end) = &self.end {
            run.state = end.state;
            run.reason = end.reason;
            run.detail = None;
            run.position = end.position;
            run.finished_at = Some(end.finished_at);
            run.notes = end.notes.clone().unwrap_or_default();
        }
        if let Some(live) = &self.live {
            run.control = live.control;
            run.state = live.state;
            run.detail = live.detail;
            run.reason = live.reason;
            run.position = live.position;
            run.notes = live.notes.clone().unwrap_or_default();
            current(&mut run.steps[live.position as usize], live);
        }
        cancel_untouched(&mut run);
        run
    }

    pub fn assert_rebuild(&self, run: &Run) {
        let (rebuilt, mut memory) = (self.rebuild(), run.clone());
        if memory.state.is_terminal() {
            // The control of a terminal run is never read.
            memory.control = rebuilt.control;
        }
        // Known to the process alone: it spares events a hash.
        memory.named_bundle = rebuilt.named_bundle;
        for step in &mut memory.steps {
            forget(step);
        }
        for (at, (row, step)) in rebuilt.steps.iter().zip(&memory.steps).enumerate() {
            assert_eq!(row, step, "the rows of step {at} and the memory differ");
        }
        assert_eq!(rebuilt, memory, "the rows and the memory differ");
    }
}

fn finished(done: &Done) -> Step {
    Step {
        attempt: done.attempt,
        failures: done.failures,
        iteration: done.iteration,
        input: done.input.clone(),
        output: done.output.clone(),
        last_error: done.error.clone(),
        open_intent: None,
        interrupted: None,
        claimed_at: done.claimed_at,
        phase: match done.state {
            StepState::Pending => Phase::Pending,
            StepState::Succeeded => Phase::Succeeded,
            StepState::Skipped => Phase::Skipped { why: done.why.clone().unwrap() },
            StepState::Failed => Phase::Failed,
            StepState::Canceled => Phase::Canceled,
            StepState::RolledBack => Phase::RolledBack,
            other => panic!("a record of a step that is {other}"),
        },
    }
}

fn current(step: &mut Step, live: &LiveRow) {
    let data = live.step_data.clone().unwrap_or_default();
    let StepData { input, wake, wait, approval, open_intent, last_error, ready_at } = data;
    let stopped = matches!(live.step_state, StepState::InDoubt | StepState::WaitingApproval);
    let interrupted = wake.clone().filter(|_| stopped);
    let phase = match live.step_state {
        StepState::Pending => Phase::Pending,
        StepState::Ready => Phase::Ready { eligible_at: live.eligible_at.or(ready_at).unwrap(), wake },
        StepState::Running => Phase::Running { session: live.session.unwrap(), timeout_at: live.step_timeout_at, wake },
        StepState::WaitingApproval => Phase::WaitingApproval(Box::new(approval.unwrap())),
        StepState::WaitingSignal => Phase::WaitingSignal(Box::new(wait.unwrap())),
        StepState::InDoubt => Phase::InDoubt { receipt: open_intent.unwrap(), known_at: ready_at.unwrap() },
        // The record says the rest.
        _ => {
            assert_eq!(step.state(), live.step_state);
            step.phase.clone()
        }
    };
    *step = Step {
        attempt: live.attempt,
        failures: live.failures,
        iteration: live.iteration,
        input,
        output: step.output.take(),
        last_error,
        open_intent,
        interrupted,
        claimed_at: live.claimed_at,
        phase,
    };
}

/// A cancel writes no record for steps that were never activated: they follow from the run.
fn cancel_untouched(run: &mut Run) {
    let ended = run.state == RunState::Canceled;
    let canceled = ended || run.notes.after_rollback == Some(Reason::Requested);
    let forward = run.forward_len();
    for (at, step) in run.steps.iter_mut().enumerate() {
        let cancels = if at < forward { canceled } else { ended };
        if cancels && step.state() == StepState::Pending {
            step.phase = Phase::Canceled;
        }
    }
}

/// What a finished step has in memory and is never read again.
fn forget(step: &mut Step) {
    if step.state().is_finished() {
        step.open_intent = None;
        step.interrupted = None;
        if !matches!(step.state(), StepState::Failed | StepState::RolledBack) {
            step.last_error = None;
        }
    }
}
