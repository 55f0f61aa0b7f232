//! A run, its clock and the rows that stand for it.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use uuid::Uuid;

use super::arrows::{self, Arrow};
use super::fold::Rows;
use super::invariants;
use crate::decide::{
    Asking, Bound, Command, CommandOrigin, Completion, DecideContext, Later, Outcome, Queued, Rendered, StartRequest,
    Undoes, Used, decide, open, start,
};
use crate::governance::action::Action;
use crate::governance::judge::{AllowDeclared, Decision, Judge, Judged, Ruling};
use crate::ids::{ReceiptId, RunId, SessionId, SignalId, TenantId};
use crate::json::{Hash, HashHex, Json};
use crate::machine::step::Resolution;
use crate::plan::retry::{ErrorClass, StepError};
use crate::plan::{OnDenial, Plan, Work};
use crate::rejection::Rejection;
use crate::run::approval::Voter;
use crate::run::change::{ChangeSet, Context, LiveRow, SideWrite};
use crate::run::decision::Basis;
use crate::run::event::Event;
use crate::run::receipt::Receipt;
use crate::run::{Header, Lineage, Run, Step, StepIteration, Trigger, UNDO_TRIGGER};
use crate::state::{EffectClass, ReceiptState, RunState, StepState};
use crate::time::{Millis, Timestamp};
use crate::work::Claimer;

pub const START: Timestamp = Timestamp(1_000_000);
pub const STARTER: &str = "starter@example.com";

#[derive(Clone)]
pub struct Case {
    pub run: Run,
    pub now: Timestamp,
    pub answers: Answers,
    pub judge: Arc<dyn Judge>,
    /// The last change that was accepted.
    pub change: Box<ChangeSet>,
    /// The arrows that it walked.
    pub walked: Vec<Arrow>,
    pub receipts: BTreeMap<ReceiptId, Receipt>,
    pub rows: Rows,
    /// Every attempt that was ever started, by position.
    pub attempts: BTreeSet<(u32, u32)>,
    /// What an operator has switched off that keeps workers from the run.
    pub held: Option<String>,
    ids: Cell<u128>,
}

/// What a case starts from, where it is not the default.
pub struct Opening {
    pub plan: Plan,
    pub answers: Answers,
    pub judge: Arc<dyn Judge>,
    pub inherited: Vec<(u32, Step)>,
    pub lineage: Option<Lineage>,
    pub starters: Vec<String>,
    pub named: Vec<StepIteration>,
    pub used: Used,
    pub claim: Option<Claimer>,
    pub queued: Option<Queued>,
    pub undoes: Option<Undoes>,
    pub by: Context,
    pub run: u128,
}

impl Opening {
    pub fn of(plan: Plan) -> Self {
        Self {
            plan,
            answers: Answers::new(),
            judge: Arc::new(AllowDeclared),
            inherited: Vec::new(),
            lineage: None,
            starters: Vec::new(),
            named: Vec::new(),
            used: Used::default(),
            claim: None,
            queued: None,
            undoes: None,
            by: Context::SYSTEM,
            run: 1,
        }
    }

    pub fn request(self) -> StartRequest {
        let (plan_hash, plan_text) = self.plan.encode();
        let deadline_at = self.plan.timeout.map(|timeout| START + timeout);
        let header = Header {
            workspace: "main".into(),
            plan_hash: HashHex(plan_hash),
            inputs: json(r#"{"order":7}"#),
            subject: Some("INC-1".into()),
            labels: BTreeMap::new(),
            trigger: Trigger { kind: if self.undoes.is_some() { UNDO_TRIGGER } else { "api" }.into(), reference: None },
            priority: 0,
            created_at: START,
            deadline_at,
            lineage: self.lineage,
            started_by: Some(STARTER.into()),
        };
        StartRequest {
            tenant: TenantId(Uuid::from_u128(9)),
            run: RunId(Uuid::from_u128(self.run)),
            header,
            plan: Arc::new(self.plan),
            plan_hash,
            plan_text,
            idempotency: None,
            inherited: self.inherited,
            starters: self.starters,
            used: self.used,
            named: self.named,
            claim: self.claim,
            queued: self.queued,
            undoes: self.undoes,
        }
    }

    pub fn start(self) -> Case {
        let (answers, judge, by) = (self.answers.clone(), Arc::clone(&self.judge), self.by.clone());
        arrows::take();
        let (mut run, opening) = open(self.request()).expect("opens");
        let decided = start(&run, opening, CommandOrigin { by, now: START }).expect("starts");
        let change = decided.settle(|asking| bound(&answers, &*judge, asking)).expect("starts");
        let before = run.clone();
        run.apply(&change);
        let mut case = Case {
            rows: Rows::of(&run),
            run,
            now: START,
            answers,
            judge,
            change,
            walked: arrows::take(),
            receipts: BTreeMap::new(),
            attempts: BTreeSet::new(),
            held: None,
            ids: Cell::new(0),
        };
        case.settle(&before);
        case
    }
}

/// Decides everything alike.
#[derive(Debug, Clone)]
pub struct Always(pub Decision);

impl Judge for Always {
    fn judge(&self, _: &Action, _: &Run) -> Ruling {
        self.0.clone().into()
    }
}

/// Decides everything alike, by rules that looked at the run.
#[derive(Debug, Clone)]
pub struct Ruled {
    pub decision: Decision,
    /// Every byte of the bundle's hash.
    pub bundle: u8,
}

impl Judge for Ruled {
    fn judge(&self, _: &Action, _: &Run) -> Ruling {
        let basis = Basis {
            bundle: HashHex(Hash([self.bundle; 32])),
            evaluator: "test".into(),
            input: json("{}"),
            answer: None,
            shadow: None,
            tier: "low".into(),
        };
        Ruling { decision: self.decision.clone(), basis: Some(Arc::new(basis)), standing: None }
    }
}

pub fn denied() -> Decision {
    Decision::Deny { reasons: vec!["not on a Friday".into()] }
}

pub fn asks() -> Decision {
    let Work::Approval(gate) = super::plans::gate("g", OnDenial::Pause).work else { unreachable!() };
    Decision::NeedsApproval { reasons: vec!["it reaches far".into()], terms: Box::new(gate.into()) }
}

/// What an engine would find out about a step.
#[derive(Debug, Clone)]
pub enum Answer {
    Broken,
    ConditionFalse,
    Renders(Rendered),
}

impl Answer {
    pub fn input(text: &str) -> Self {
        Self::Renders(Rendered { input: Some(json(text)), ..Rendered::default() })
    }
}

/// By position. A step that is not listed has a condition that holds, and an input like any other.
pub type Answers = BTreeMap<u32, Answer>;

pub fn bound(answers: &Answers, judge: &dyn Judge, asking: &Asking<'_>) -> Bound {
    let bound = bound_alone(answers, judge, asking);
    if !matches!(asking.spec().work, Work::Approval(_)) {
        return bound;
    }
    let later = asking.asked_along().into_iter();
    let later = later.map(|step| Later { step, action: foreseen(answers, asking, step) }).collect();
    asking.along(bound, later)
}

/// What is known of a step behind a gate: what it would be answered by now.
fn foreseen(answers: &Answers, asking: &Asking<'_>, step: u32) -> Result<Action, String> {
    let input = match answers.get(&step) {
        Some(Answer::Broken) => return Err("it cannot be told".into()),
        Some(Answer::Renders(rendered)) => rendered.input.clone(),
        _ => asking.run().spec(step).is_rendered().then(|| json(r#"{"rendered":0}"#)),
    };
    asking.later_action(step, input.as_ref()).ok_or_else(|| "it proposes nothing".to_owned())
}

fn bound_alone(answers: &Answers, judge: &dyn Judge, asking: &Asking<'_>) -> Bound {
    match answers.get(&asking.position()) {
        Some(Answer::Broken) if asking.has_expressions() => Bound::broken(error(ErrorClass::Invalid)),
        Some(Answer::ConditionFalse) if asking.has_condition() => Bound::condition_false(),
        Some(Answer::Renders(rendered)) if asking.has_expressions() => asking.bind(rendered.clone(), judge),
        _ => {
            let renders_input = asking.has_expressions() && asking.spec().is_rendered();
            let input = renders_input.then(|| json(r#"{"rendered":0}"#));
            asking.bind(Rendered { input, ..Rendered::default() }, judge)
        }
    }
}

pub fn json(text: &str) -> Json {
    Json::parse(text, 1 << 24).unwrap()
}

pub fn claimer(number: u128) -> Claimer {
    Claimer::of_all_trades(session(number))
}

pub const fn session(number: u128) -> SessionId {
    SessionId(Uuid::from_u128(number))
}

pub fn error(class: ErrorClass) -> StepError {
    StepError::new(class, "E", "it went wrong")
}

pub fn voter(person: &str) -> Voter {
    Voter::new(person, vec!["sre".into()])
}

impl Case {
    pub fn of(plan: Plan) -> Self {
        Opening::of(plan).start()
    }

    pub fn asked(&self) -> CommandOrigin {
        CommandOrigin { by: Context::operator("ann@example.com"), now: self.now }
    }

    /// Decides, and answers as an engine would.
    pub fn decide(&self, command: Command, asked: CommandOrigin) -> Result<Box<ChangeSet>, Rejection> {
        let (receipt, held) = (self.open_receipt(), self.held.clone());
        let known = DecideContext { receipt, held, ..DecideContext::default() };
        decide(&self.run, command, known, asked)?.settle(|asking| bound(&self.answers, &*self.judge, asking))
    }

    /// Decides; applies and checks what was accepted.
    pub fn ask_by(&mut self, command: Command, asked: CommandOrigin) -> Result<&mut Self, Rejection> {
        arrows::take();
        let change = self.decide(command, asked)?;
        self.walked = arrows::take();
        let before = self.run.clone();
        self.run.apply(&change);
        self.change = change;
        self.settle(&before);
        Ok(self)
    }

    pub fn ask(&mut self, command: Command) -> Result<&mut Self, Rejection> {
        self.ask_by(command, self.asked())
    }

    #[track_caller]
    pub fn tell(&mut self, command: Command) -> &mut Self {
        let text = format!("{command:?}");
        self.ask(command).unwrap_or_else(|no| panic!("{text}: {no}"))
    }

    /// Tells what the case itself knows how to say.
    #[track_caller]
    pub fn tells(&mut self, say: impl FnOnce(&Self) -> Command) -> &mut Self {
        self.tell(say(self))
    }

    #[track_caller]
    pub fn refuse(&mut self, command: Command) -> Rejection {
        let text = format!("{command:?}");
        match self.ask(command) {
            Ok(case) => panic!("{text} was accepted: {:?}", case.change),
            Err(no) => no,
        }
    }

    fn settle(&mut self, before: &Run) {
        self.rows.write(&self.change);
        for side in &self.change.side {
            if let SideWrite::PutReceipt(receipt) = side {
                self.receipts.insert(receipt.id, (**receipt).clone());
            }
        }
        invariants::check(self, before);
        self.rows.assert_rebuild(&self.run);
    }

    pub fn is_accepted(&self, command: Command) -> bool {
        let answer = self.decide(command, self.asked());
        arrows::take();
        answer.is_ok()
    }

    pub fn would_accept(&self, command: Command, at: Timestamp) {
        let text = format!("{command:?}");
        let asked = CommandOrigin::timeout(self.now.max(at));
        let answer = self.decide(command, asked);
        arrows::take();
        if let Err(no) = answer {
            panic!("{text} is due at {at:?} and is refused: {no}\n{:?}", self.run);
        }
    }

    /// What an operator can say to a run that has stopped.
    pub fn directives(&self) -> Vec<Command> {
        let resolve = Command::Resolve {
            position: self.run.position,
            resolution: Resolution::Happened,
            output: None,
            reason: "looked".into(),
        };
        vec![Command::Resume, retry(), skip(), resolve]
    }

    pub fn events(&self) -> Vec<Event> {
        self.change.journal.iter().flat_map(|row| row.events.decode::<Vec<Event>>().unwrap()).collect()
    }

    pub fn names(&self) -> Vec<&'static str> {
        self.events().iter().map(Event::name).collect()
    }

    pub fn row(&self) -> LiveRow {
        LiveRow::of(&self.run)
    }

    pub fn state(&self) -> RunState {
        self.run.state
    }

    pub fn step(&self, position: u32) -> &Step {
        &self.run.steps[position as usize]
    }

    /// The states of all steps, in order.
    pub fn steps(&self) -> Vec<StepState> {
        self.run.steps.iter().map(Step::state).collect()
    }

    pub fn after(&mut self, span: Millis) -> &mut Self {
        self.now = self.now + span;
        self
    }

    /// Waits until the current step may be claimed.
    pub fn until_eligible(&mut self) -> &mut Self {
        let at = self.row().eligible_at.expect("the step is claimable");
        self.now = self.now.max(at);
        self
    }

    pub fn until_wake(&mut self) -> &mut Self {
        let at = self.row().wake_at.expect("a timer is set");
        self.now = self.now.max(at);
        self
    }

    #[track_caller]
    pub fn claim(&mut self) -> &mut Self {
        self.until_eligible().tells(|case| case.claim_at(session(1), case.now))
    }

    pub fn completion(&self, outcome: Outcome) -> Completion {
        Completion {
            position: self.run.position,
            attempt: self.run.current().attempt,
            outcome,
            claim_next: None,
            cost: None,
        }
    }

    pub fn reports(&self, outcome: Outcome) -> Command {
        Command::Complete(self.completion(outcome))
    }

    #[track_caller]
    pub fn complete(&mut self) -> &mut Self {
        self.tell(self.reports(Outcome::Completed { output: json(r#"{"ok":true}"#) }))
    }

    #[track_caller]
    pub fn fails(&mut self, class: ErrorClass) -> &mut Self {
        self.tell(self.reports(Outcome::Retry { error: error(class), backoff: None }))
    }

    #[track_caller]
    pub fn dies(&mut self) -> &mut Self {
        self.tell(self.reports(Outcome::Dead { error: error(ErrorClass::Terminal) }))
    }

    #[track_caller]
    pub fn run_step(&mut self) -> &mut Self {
        self.claim().complete()
    }

    pub fn lease_expired(&self) -> Command {
        Command::LeaseExpired { position: self.run.position, attempt: self.run.current().attempt }
    }

    pub fn step_timeout(&self) -> Command {
        Command::StepTimeout { position: self.run.position, attempt: self.run.current().attempt }
    }

    pub fn release(&self) -> Command {
        Command::Release { position: self.run.position, attempt: self.run.current().attempt, cost: None }
    }

    pub fn left_out(&self) -> Command {
        Command::LeftOut { position: self.run.position, attempt: self.run.current().attempt }
    }

    pub fn fresh_id(&self) -> Uuid {
        self.ids.set(self.ids.get() + 1);
        Uuid::from_u128(self.ids.get())
    }

    pub fn wake(&self, payload: &str) -> Command {
        Command::Wake {
            position: self.run.position,
            signal: SignalId(self.fresh_id()),
            payload: json(payload),
            broadcast: false,
        }
    }

    pub fn vote(&self, person: &str, approve: bool) -> Command {
        Command::Vote { position: self.run.position, voter: voter(person), approve, notes: None }
    }

    pub fn intent(&self, effect: EffectClass) -> Command {
        let (position, attempt) = (self.run.position, self.run.current().attempt);
        let id = ReceiptId(self.fresh_id());
        let receipt = Box::new(Receipt {
            id,
            position,
            iteration: self.run.current().iteration,
            attempt,
            key: format!("pay:{id}"),
            effect,
            state: ReceiptState::Intent,
            request: json("{}"),
            response: None,
            intent_at: self.now,
            outcome_at: None,
            late: false,
            unsettled: false,
            bundle: None,
        });
        let spec = self.run.spec(position);
        let action = Action::of_effect(spec, position, "pay".into(), receipt.request.clone(), effect);
        match Judged::by(&*self.judge, action, &self.run).grant(&self.run, self.now) {
            Ok(grant) => {
                Command::RecordIntent { position, attempt, receipt, grant: Box::new(grant), again: false, hold: None }
            }
            Err(withheld) => Command::WithholdEffect { position, attempt, withheld },
        }
    }

    /// A claim as an engine makes it: what people have agreed to too long ago is judged anew.
    pub fn claim_at(&self, session: SessionId, at: Timestamp) -> Command {
        let (run, position) = (&self.run, self.run.position);
        let lapsed = run.notes.agreed.iter().any(|agreed| agreed.step == position && agreed.has_lapsed(at));
        let action = Action::of_step(run.spec(position), position, run.input(position)).filter(|_| lapsed);
        let Some(action) = action else { return Command::Claim { session } };
        match Judged::by(&*self.judge, action, run).grant(run, at) {
            Ok(grant) => Command::ClaimWithGrant { session, grant: Box::new(grant), names_effects: false },
            Err(withheld) => Command::WithholdStep { withheld },
        }
    }

    /// A claim as an engine makes it of a step that changes something: it is judged once more.
    pub fn claim_judged(&self) -> Command {
        let (run, position) = (&self.run, self.run.position);
        let action = Action::of_step(run.spec(position), position, run.input(position)).expect("it acts");
        let grant = Judged::by(&*self.judge, action, run).grant(run, self.now).expect("it is allowed");
        Command::ClaimWithGrant { session: session(1), grant: Box::new(grant), names_effects: true }
    }

    /// A worker comes to take the step, and the policy no longer allows it.
    pub fn withhold_step(&self, decision: Decision) -> Option<Command> {
        let position = self.run.position;
        let action = Action::of_step(self.run.spec(position), position, self.run.input(position))?;
        let withheld = Judged::by(&Always(decision), action, &self.run).grant(&self.run, self.now).err()?;
        Some(Command::WithholdStep { withheld })
    }

    /// A worker comes to take the step, and the rules deny it to this worker.
    pub fn refuse_worker(&self, number: u128, bundle: u8) -> Command {
        let decision = Decision::Deny { reasons: vec!["by_worker: it has no certificate".into()] };
        let judge = Ruled { decision, bundle };
        let position = self.run.position;
        let action = Action::of_step(self.run.spec(position), position, self.run.input(position)).expect("it acts");
        let withheld = Judged::by(&judge, action, &self.run).grant(&self.run, self.now).expect_err("it is denied");
        let (session, worker) = (session(number), format!("worker-{number}"));
        Command::RefuseWorker { session, worker, withheld, over: BTreeSet::new() }
    }

    /// The worker that runs the step asks to perform an effect, and the rules deny it to this worker.
    pub fn refuse_effect(&self, number: u128, bundle: u8) -> Command {
        let decision = Decision::Deny { reasons: vec!["by_worker: it has no certificate".into()] };
        let judge = Ruled { decision, bundle };
        let (position, attempt) = (self.run.position, self.run.current().attempt);
        let spec = self.run.spec(position);
        let action = Action::of_effect(spec, position, "pay".into(), json("{}"), EffectClass::Keyed);
        let withheld = Judged::by(&judge, action, &self.run).grant(&self.run, self.now).expect_err("it is denied");
        Command::RefuseEffect { position, attempt, worker: format!("worker-{number}"), withheld }
    }

    /// The receipt that the current step's open intent, or doubt, is about.
    pub fn open_receipt(&self) -> Option<Box<Receipt>> {
        let id = self.run.current().open_intent?;
        Some(Box::new(self.receipts[&id].clone()))
    }

    pub fn outcome(&self, state: ReceiptState) -> Command {
        let mut receipt = self.open_receipt().expect("an open intent");
        receipt.state = state;
        receipt.outcome_at = Some(self.now);
        Command::RecordOutcome { position: self.run.position, attempt: self.run.current().attempt, receipt }
    }
}

pub fn cancel(rollback: bool) -> Command {
    Command::Cancel { reason: "not needed".into(), rollback }
}

pub fn pause() -> Command {
    Command::Pause { reason: "look first".into() }
}

/// By a person who could have approved.
pub fn skip() -> Command {
    skip_by("zoe@example.com")
}

pub fn skip_by(person: &str) -> Command {
    Command::Skip { reason: "done by hand".into(), voter: Some(Box::new(voter(person))) }
}

pub fn retry() -> Command {
    Command::Retry { input: None }
}

pub fn reassign() -> Command {
    Command::Reassign { reason: "the machine is gone".into() }
}

pub fn roll_back() -> Command {
    Command::Rollback { reason: "wrong order".into(), from: None }
}
