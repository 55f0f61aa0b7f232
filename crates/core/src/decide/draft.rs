//! A draft of a run's next state: reads fall through to the run, writes stay in the draft. [`Draft::finish`] projects
//! the run's state and turns the draft into rows.

use std::sync::Arc;

use smallvec::SmallVec;

use super::ask::{Need, Occasion};
use super::{CommandOrigin, UnfitWorker, assign, claim};
use crate::cost::Cost;
use crate::governance::action::Action;
use crate::governance::judge::Ruling;
use crate::ids::{self, DecisionId};
use crate::json::{HashHex, Json};
use crate::limits;
use crate::machine;
use crate::machine::step::StepEvent;
use crate::plan::{StepSpec, Work};
use crate::planted::{Bug, is_planted};
use crate::rejection::Rejection;
use crate::run::approval::Met;
use crate::run::assignment::AssignmentTimes;
use crate::run::change::{
    ChangeSet, ClaimChange, Delta, Done, End, JournalRow, LiveChange, LiveParts, SideWrite, Start,
};
use crate::run::decision::DecisionRecord;
use crate::run::event::Event;
use crate::run::metrics::RunMetrics;
use crate::run::project::{View, project};
use crate::run::receipt::Receipt;
use crate::run::{self, Agreed, Notes, Phase, Run, Step, StepIteration};
use crate::state::{Control, Detail, EffectClass, Initiator, Reason, RunState, StepKind, StepState};
use crate::time::{Millis, Timestamp};
use crate::work::Claimer;
use uuid::Uuid;

pub(super) struct Draft<'a> {
    pub run: &'a Run,
    pub asked: CommandOrigin,
    pub control: Control,
    pub reason: Option<Reason>,
    pub position: u32,
    pub side: Vec<SideWrite>,
    steps: SmallVec<[(u32, Step); 2]>,
    added: Option<Vec<StepSpec>>,
    notes: Option<Notes>,
    events: Vec<Event>,
    done: Option<Box<Done>>,
    rows: SmallVec<[JournalRow; 1]>,
    seq: u64,
    claims: i32,
    derived: u32,
    /// The step that cannot begin before something is found out about it.
    pub need: Option<Need>,
    /// A session that takes the step which the run comes to stand at.
    pub claimer: Option<Claimer>,
    /// The bundle that allows the step which this command has begun, in every run of the workflow version.
    pub standing: Option<HashHex>,
    /// The bundle that an event of this change names.
    named_bundle: Option<HashHex>,
    /// What makes the run, where this is its first change.
    pub start: Option<Box<Start>>,
    /// The receipt of the effect that is open.
    pub receipt: Option<Box<Receipt>>,
    /// The server ended the attempt; its worker may not know it yet.
    pub attempt_lives: bool,
    /// What the attempt that ends now has cost, until an event says so.
    pub cost: Option<Box<Cost>>,
    /// The lease of the session that holds it.
    pub lease: Millis,
    /// The command carries out what people have voted for: the person who gives it does not direct the run.
    pub decided_by_vote: bool,
    /// How long after the end of that lease an effect may still happen.
    pub settles_after: Millis,
    /// How long the search for a worker may take, where that is not the default.
    pub times: Option<Arc<AssignmentTimes>>,
    /// How many connected sessions may take the run, of those that were not asked.
    pub assignable: u32,
    /// Where there are none: connected workers, each with what keeps it from the run.
    pub unfit: Vec<UnfitWorker>,
    /// Where there are none: what an operator has switched off or taken out of service that keeps workers from the run.
    pub held: Option<String>,
}

impl<'a> Draft<'a> {
    pub fn of(run: &'a Run, asked: CommandOrigin) -> Self {
        Self {
            run,
            asked,
            control: run.control,
            reason: run.reason,
            position: run.position,
            side: Vec::new(),
            steps: SmallVec::new(),
            added: None,
            notes: None,
            events: Vec::with_capacity(2),
            done: None,
            rows: SmallVec::new(),
            seq: run.version,
            claims: 0,
            derived: 0,
            need: None,
            claimer: None,
            standing: None,
            named_bundle: None,
            start: None,
            receipt: None,
            attempt_lives: false,
            cost: None,
            lease: limits::SESSION_LEASE,
            decided_by_vote: false,
            settles_after: limits::EFFECT_SETTLES_AFTER,
            times: None,
            assignable: 0,
            unfit: Vec::new(),
            held: None,
        }
    }

    pub fn now(&self) -> Timestamp {
        self.asked.now
    }

    /// When the worker of the attempt that ends now knows so for certain.
    pub fn given_up_at(&self) -> Timestamp {
        if self.attempt_lives { self.now() + self.lease } else { self.now() }
    }

    /// When an effect that the attempt left open can no longer happen: its worker has ended what it ran, and what was on
    /// its way then has arrived or is lost.
    pub fn settled_at(&self) -> Timestamp {
        if is_planted(Bug::NotHappenedTooEarly) {
            return self.now();
        }
        self.given_up_at() + self.settles_after
    }

    /// The attempt of a step ends, and what it has sent may arrive after that: its worker has said nothing, or has dropped what it
    /// ran. That is waited for before anything is undone, or done again that was undone.
    pub fn may_still_arrive(&mut self, position: u32) {
        if self.spec(position).effect_class() == EffectClass::Read {
            return;
        }
        let settled_at = Some(self.settled_at());
        let is_rollback = self.spec(position).kind() == StepKind::Rollback;
        let noted = if is_rollback { self.notes().undone_at } else { self.notes().settled_at };
        if noted < settled_at {
            let notes = self.notes_mut();
            *(if is_rollback { &mut notes.undone_at } else { &mut notes.settled_at }) = settled_at;
        }
    }

    /// From when on a step may begin that is ready now: what undoes another, or does again what an earlier run has undone, not
    /// before all has arrived that attempts may have sent which ended before their answer.
    pub fn begins_at(&self, position: u32, ready_at: Timestamp) -> Timestamp {
        let spec = self.spec(position);
        let arrived_at = match spec.kind() {
            StepKind::Rollback => self.notes().settled_at,
            _ if spec.effect_class() == EffectClass::Read || self.step(position).iteration == 0 => None,
            _ => self.notes().undone_at,
        };
        arrived_at.map_or(ready_at, |arrived_at| ready_at.max(arrived_at))
    }

    /// Who asks for it, for people to read: a person, or a key by its name.
    pub fn who(&self) -> Option<String> {
        self.asked.by.who()
    }

    /// A fresh id for something that this change makes.
    pub fn fresh_id(&mut self) -> Uuid {
        self.derived += 1;
        ids::derived(self.run.id, self.run.version, self.derived, self.asked.now)
    }

    pub fn len(&self) -> usize {
        self.run.forward_len() + self.added.as_ref().map_or(self.run.added.len(), Vec::len)
    }

    pub fn spec(&self, position: u32) -> &StepSpec {
        let index = position as usize;
        match &self.added {
            Some(added) if index >= self.run.forward_len() => &added[index - self.run.forward_len()],
            _ => self.run.spec(position),
        }
    }

    /// The step's key, for a message; its position where the run has no such step.
    pub fn key(&self, position: u32) -> String {
        let is_known = (position as usize) < self.len();
        if is_known { self.spec(position).key.clone() } else { position.to_string() }
    }

    pub fn step(&self, position: u32) -> &Step {
        static UNTOUCHED: std::sync::LazyLock<Step> = std::sync::LazyLock::new(Step::default);
        match self.steps.iter().rev().find(|(at, _)| *at == position) {
            Some((_, step)) => step,
            None => self.run.steps.get(position as usize).unwrap_or(&UNTOUCHED),
        }
    }

    pub fn step_mut(&mut self, position: u32) -> &mut Step {
        let known = self.steps.iter().position(|(at, _)| *at == position);
        let index = known.unwrap_or_else(|| {
            let step = self.step(position).clone();
            self.steps.push((position, step));
            self.steps.len() - 1
        });
        &mut self.steps[index].1
    }

    pub fn current(&self) -> &Step {
        self.step(self.position)
    }

    /// The input that a step has, were it given this one.
    pub fn input(&self, position: u32, given: Option<&Json>) -> Json {
        let own = |position| self.step(position).input.clone();
        let undoes = match &self.spec(position).work {
            Work::Rollback { undoes, .. } if given.is_none() => {
                let undone = own(*undoes).unwrap_or_else(|| self.run.header.inputs.clone());
                Some((undone, self.step(*undoes).output.as_ref()))
            }
            _ => None,
        };
        run::input(&self.run.header, self.spec(position), given, undoes)
    }

    /// Stops before a step begins until something has been found out about it.
    pub fn needs(&mut self, position: u32, occasion: Occasion) {
        assert!(self.need.is_none(), "one step begins at a time");
        self.need = Some(Need { position, occasion });
    }

    pub fn notes(&self) -> &Notes {
        self.notes.as_ref().unwrap_or(&self.run.notes)
    }

    /// Whether a person or a program has asked for the change, and not a clock or a worker.
    pub fn is_directed(&self) -> bool {
        matches!(self.asked.by.initiator, Initiator::User | Initiator::Operator)
    }

    /// Whether the step has named an effect that must not be repeated.
    pub fn has_named_effects(&self, position: u32) -> bool {
        let iteration = self.step(position).iteration;
        self.notes().named.contains(&StepIteration { step: position, iteration })
    }

    /// Whether another run has had the effect of the step, or may have it, so that there is nothing of this one to undo.
    pub fn has_left_it_to_others(&self, position: u32) -> bool {
        self.notes().has_left_it_to_others(self.spec(position), position)
    }

    pub fn notes_mut(&mut self) -> &mut Notes {
        self.notes.get_or_insert_with(|| self.run.notes.clone())
    }

    /// Ends a pause that something else has overtaken.
    pub fn unpause(&mut self) {
        if self.control == Control::Paused {
            self.control = Control::Active;
        }
        if self.notes().pause.is_some() {
            self.notes_mut().pause = None;
        }
    }

    /// An operator has looked at what a restored run may have done.
    pub fn looked_at(&mut self) {
        if self.notes().restored {
            self.notes_mut().restored = false;
        }
    }

    /// Appends a step behind all others and answers its position.
    pub fn add_step(&mut self, spec: StepSpec, step: Step) -> u32 {
        let position = self.len() as u32;
        self.side.push(SideWrite::AddStep { position, spec: Box::new(spec.clone()) });
        self.added.get_or_insert_with(|| self.run.added.as_ref().clone()).push(spec);
        self.steps.push((position, step));
        position
    }

    /// Moves a step along an arrow of the machine into a phase; refuses where the arrow does not exist.
    pub fn go(&mut self, position: u32, event: StepEvent, phase: Phase) -> Result<(), Rejection> {
        let from = self.step(position).state();
        let to = phase.state();
        if machine::step::next(from, self.spec(position).kind(), event) != Some(to) {
            return Err(Rejection::InvalidTransition { run: self.run.id, step: self.key(position), from, event });
        }
        #[cfg(test)]
        super::tests::arrows::walk(super::tests::arrows::Arrow {
            position,
            kind: self.spec(position).kind(),
            from,
            event,
            to,
        });
        // What was asked about a step that has gone another way meanwhile is of no interest any more.
        self.need.take_if(|need| need.position == position);
        self.claims += i32::from(to == StepState::Running) - i32::from(from == StepState::Running);
        self.step_mut(position).phase = phase;
        Ok(())
    }

    pub fn emit(&mut self, event: Event) {
        let now = self.asked.now;
        match event {
            Event::ApprovalRequested { .. } => self.notes_mut().approvals.asked(now),
            Event::ApprovalResolved { .. } => self.notes_mut().approvals.answered(now),
            _ => {}
        }
        self.events.push(event);
    }

    /// How an event names the bundle that allows its step in every run of the version: by its hash, or as the same one (`true`) where
    /// an event of the run is known to have named it last. The hash would be a good part of what a plain step writes.
    pub fn name_bundle(&mut self, standing: Option<HashHex>) -> (Option<HashHex>, bool) {
        let is_same = standing.is_some() && standing == self.named_bundle.or(self.run.named_bundle);
        let bundle = standing.filter(|_| !is_same);
        self.named_bundle = bundle.or(self.named_bundle);
        (bundle, is_same)
    }

    /// Keeps a decision with what it rests on, unless it stands for every run of the version.
    pub fn record_decision(&mut self, action: &Action, ruling: &Ruling) {
        self.record_ruling(action, ruling, None);
    }

    /// The same for a decision that denies a step to the worker that came to take it.
    pub fn record_refusal(&mut self, action: &Action, ruling: &Ruling, worker: String) {
        self.record_ruling(action, ruling, Some(worker));
    }

    fn record_ruling(&mut self, action: &Action, ruling: &Ruling, worker: Option<String>) {
        let Some(basis) = &ruling.basis else {
            self.standing = ruling.standing;
            return;
        };
        // Rules that look at the run may look at its worker, too: a worker that would take the step in this commit was not known to
        // them, and is judged when it comes for the step.
        self.claimer = None;
        let id = DecisionId(self.fresh_id());
        let step = self.step(action.step);
        let record = DecisionRecord {
            id,
            position: action.step,
            iteration: step.iteration,
            attempt: step.attempt,
            operation: action.operation.clone(),
            verdict: ruling.decision.name().to_owned(),
            action: HashHex(action.digest()),
            basis: Arc::clone(basis),
        };
        let (step, decision, verdict) = (record.position, record.id, record.verdict.clone());
        let (tier, bundle) = (basis.tier.clone(), basis.bundle);
        self.emit(Event::PolicyDecided { step, decision, verdict, tier, bundle, worker });
        self.side.push(SideWrite::PutDecision(Box::new(record)));
    }

    /// What people agree to who let this step begin; nothing where it changes nothing.
    pub fn agreed_step(&self, position: u32) -> Option<Agreed> {
        let step = self.step(position);
        let action = Action::of_step(self.spec(position), position, self.input(position, step.input.as_ref()))?;
        let action = HashHex(action.digest());
        let (at, met) = (self.now(), Met::default());
        Some(Agreed { step: position, iteration: step.iteration, action, at, met, acted: 0, only_claimed: false })
    }

    /// Whether people have agreed to the step too long ago, so that it must be judged anew.
    pub fn has_lapsed(&self, position: u32) -> bool {
        if !self.spec(position).is_governed() {
            return false;
        }
        let (now, iteration) = (self.now(), self.step(position).iteration);
        let is_own = |agreed: &&Agreed| (agreed.step, agreed.iteration) == (position, iteration);
        self.notes().agreed.iter().filter(is_own).any(|agreed| agreed.has_lapsed(now))
    }

    pub fn drop_lapsed(&mut self, position: u32) {
        if self.has_lapsed(position) {
            let now = self.now();
            self.notes_mut().agreed.retain(|agreed| agreed.step != position || !agreed.has_lapsed(now));
        }
    }

    /// Records that a step has finished as it stands in the draft, with the event that was emitted last. A row holds
    /// one such record, so a second one closes the row of the first.
    pub fn record_done(&mut self, position: u32) {
        // What people agreed to was for this.
        if self.notes().agreed.iter().any(|agreed| agreed.step == position) {
            self.notes_mut().agreed.retain(|agreed| agreed.step != position);
        }
        if self.notes().foreseen.iter().any(|foreseen| foreseen.step == position) {
            self.notes_mut().foreseen.retain(|foreseen| foreseen.step != position);
        }
        if self.done.is_some() {
            let own = self.events.pop().expect("the event of this step");
            self.close_row();
            self.events.push(own);
        }
        let step = self.step(position);
        self.done = Some(Box::new(Done {
            position,
            state: step.state(),
            attempt: step.attempt,
            failures: step.failures,
            iteration: step.iteration,
            claimed_at: step.claimed_at,
            input: step.input.clone(),
            output: match step.state() {
                // What a skipped step has done before stands, also where another run did it.
                StepState::Succeeded | StepState::RolledBack | StepState::Skipped => step.output.clone(),
                _ => None,
            },
            error: match step.state() {
                StepState::Failed | StepState::RolledBack => step.last_error.clone(),
                _ => None,
            },
            why: match &step.phase {
                Phase::Skipped { why } => Some(why.clone()),
                Phase::Succeeded => step.last_error.as_ref().map(|error| error.message.clone()),
                _ => None,
            },
        }));
    }

    fn close_row(&mut self) {
        assert!(!self.events.is_empty(), "a journal row without an event has no seq of its own");
        let first_seq = self.seq + 1;
        self.seq += self.events.len() as u64;
        self.rows.push(JournalRow {
            first_seq,
            seq: self.seq,
            events: Json::of(&self.events).expect("events are plain data"),
            context: self.asked.by.clone(),
            done: self.done.take(),
        });
        self.events.clear();
    }

    fn project(&self) -> RunState {
        project(&View {
            control: self.control,
            steps: &|index| self.step(index as u32),
            forward: self.run.forward_len(),
            len: self.len(),
            position: self.position as usize,
            undo: self.run.header.is_undo(),
        })
    }

    fn detail(&self) -> Option<Detail> {
        if self.control == Control::Canceling {
            return Some(Detail::Canceling);
        }
        if assign::seeks(self) {
            return Some(Detail::AssigningWorker);
        }
        match self.current() {
            Step { phase: Phase::Pending, .. } => Some(Detail::SubjectBusy),
            Step { phase: Phase::Ready { .. }, failures: 1.., .. } => Some(Detail::Retrying),
            _ => None,
        }
    }

    /// Projects the run's state and turns the draft into rows.
    pub fn finish(mut self) -> Box<ChangeSet> {
        if let Some(claimer) = self.claimer.take() {
            claim::continue_with(&mut self, &claimer);
        }
        let state = self.project();
        let ended = state.is_terminal();
        assign::settle(&mut self, state);
        match state {
            RunState::Succeeded => {
                self.reason = None;
                self.emit(Event::RunCompleted {});
            }
            RunState::Failed => self.emit(Event::RunFailed { state, reason: self.reason }),
            RunState::Canceled => {
                let reason = self.notes().cancellation.as_ref().map_or_else(String::new, |c| c.reason.clone());
                self.reason = self.reason.or(Some(Reason::Requested));
                self.emit(Event::RunCanceled { reason, done: true });
            }
            RunState::Paused | RunState::RollingBack => {}
            // A reason says why a run stopped; one that goes on has none.
            _ => self.reason = None,
        }
        if !self.events.is_empty() || self.done.is_some() {
            self.close_row();
        }
        assert!(
            self.run.version == 0 || state == self.run.state || machine::run::allowed(self.run.state, state),
            "{} -> {state} is no arrow",
            self.run.state
        );

        if ended {
            let metrics = self.metrics();
            self.notes_mut().metrics = Some(Box::new(metrics));
        }
        let detail = if ended { None } else { self.detail() };
        let parts = LiveParts {
            version: self.seq,
            control: self.control,
            state,
            detail,
            reason: self.reason,
            position: self.position,
            header: &self.run.header,
            spec: self.spec(self.position),
            step: self.current(),
            notes: self.notes(),
        };
        let live = if ended {
            LiveChange::Gone
        } else if self.run.version > 0
            && self.control == self.run.control
            && LiveParts::of(self.run).indexed() == parts.indexed()
        {
            LiveChange::Advance(Box::new(parts.row()))
        } else {
            LiveChange::Put(Box::new(parts.row()))
        };
        let end = ended.then(|| Box::new(self.end(state)));
        if ended && let Some(subject) = self.run.header.subject.clone() {
            let takes = |write: &SideWrite| matches!(write, SideWrite::TakeSubject { .. });
            let waited = self.run.is_queued() && !self.side.iter().any(takes);
            let free = if waited { SideWrite::LeaveQueue { subject } } else { SideWrite::FreeSubject { subject } };
            self.side.push(free);
        }
        let claim = match self.claims {
            0 => ClaimChange::None,
            1 => ClaimChange::Take { first: self.run.is_unclaimed() },
            _ => ClaimChange::Release,
        };
        let takes = matches!(claim, ClaimChange::Take { .. });
        Box::new(ChangeSet {
            tenant: self.run.tenant,
            run: self.run.id,
            expected: (self.run.version > 0).then_some(self.run.version),
            at: self.asked.now,
            start: self.start,
            live,
            end,
            journal: self.rows,
            claim,
            workflow_caps: if takes { self.run.plan.workflow_caps().map(Box::new) } else { None },
            side: self.side,
            delta: Delta {
                control: self.control,
                state,
                detail,
                reason: self.reason,
                position: self.position,
                steps: self.steps,
                added: self.added.map(Arc::new),
                notes: self.notes,
                finished_at: ended.then_some(self.asked.now),
                named_bundle: self.named_bundle,
            },
        })
    }

    fn metrics(&self) -> RunMetrics {
        let steps = (0..self.len() as u32).map(|position| self.step(position));
        RunMetrics::of(steps, self.notes().approvals, self.asked.now.since(self.run.header.created_at))
    }

    fn end(&self, state: RunState) -> End {
        let last = (self.run.forward_len() - 1) as u32;
        let failed = (0..=self.position).rev().map(|position| self.step(position)).find(|step| {
            let failed = matches!(step.state(), StepState::Failed | StepState::RolledBack);
            failed && step.last_error.is_some()
        });
        End {
            state,
            reason: self.reason,
            position: self.position,
            finished_at: self.asked.now,
            duration_ms: self.asked.now.since(self.run.header.created_at).0,
            output: if state == RunState::Succeeded { self.step(last).result().cloned() } else { None },
            error: failed.and_then(|step| step.last_error.clone()),
            notes: (!self.notes().is_empty()).then(|| self.notes().clone()),
        }
    }
}
