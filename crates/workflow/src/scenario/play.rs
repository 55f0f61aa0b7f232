//! The run on paper: one action after the other, at the instant when it is due.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use interlock_core::decide::{
    self, Asking, Bound, Command, CommandOrigin, Completion, DecideContext, Outcome, StartRequest, Used,
};
use interlock_core::governance::judge::AllowDeclared;
use interlock_core::ids::{RunId, SessionId, SignalId, TenantId};
use interlock_core::json::HashHex;
use interlock_core::json::Json;
use interlock_core::plan::retry::{ErrorClass, StepError};
use interlock_core::run::approval::Voter;
use interlock_core::run::change::{ChangeSet, Context, LiveChange};
use interlock_core::run::event::Event;
use interlock_core::run::{Header, Phase, Run, Trigger};
use interlock_core::state::{Control, Initiator, StepKind};
use interlock_core::time::{Millis, Timestamp};
use serde_json::Value;

use super::file::{Directive, Scenario, SignalAt, VoteAt};
use crate::Checked;
use crate::bind::{Facts, fixed};
use crate::duration::show;
use crate::expression::budget::Budget;
use crate::expression::{self, Scope};
use crate::inputs::Inputs;

/// Scenarios begin here; the date means nothing.
pub const START: Timestamp = Timestamp(1_800_000_000_000);
/// A scenario with more actions than this goes round in circles.
const ACTIONS_MAX: usize = 20_000;

/// One line of what happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub after: Millis,
    pub text: String,
}

/// A scenario that was played to its end, or until nothing more came.
#[derive(Debug)]
pub struct Played {
    pub run: Run,
    pub after: Millis,
    pub output: Option<Json>,
    pub lines: Vec<Line>,
    /// What could not be done: a vote that was refused, a step without an answer.
    pub troubles: Vec<String>,
}

/// What comes from outside.
enum Outside<'a> {
    Signal(&'a SignalAt),
    Vote(&'a VoteAt),
    Operator(&'a Directive),
}

struct Stage<'a> {
    scenario: &'a Scenario,
    run: Run,
    now: Timestamp,
    /// When the core wants to be asked again.
    wake_at: Option<Timestamp>,
    /// Signals that came and that no wait has taken.
    signals: VecDeque<(SignalId, String, String, Timestamp, Json)>,
    attempts: BTreeMap<u32, usize>,
    output: Option<Json>,
    lines: Vec<Line>,
    troubles: Vec<String>,
}

/// Plays a scenario; the words of a refused start are the error.
pub fn play(workflow: &Checked, scenario: &Scenario) -> Result<Played, String> {
    let (run, change) = start(workflow, scenario)?;
    let mut stage = Stage {
        scenario,
        run,
        now: START,
        wake_at: None,
        signals: VecDeque::new(),
        attempts: BTreeMap::new(),
        output: None,
        lines: Vec::new(),
        troubles: Vec::new(),
    };
    stage.take(&change);
    let mut outside: Vec<(Millis, Outside<'_>)> = Vec::new();
    outside.extend(scenario.signals.iter().map(|signal| (signal.at, Outside::Signal(signal))));
    outside.extend(scenario.votes.iter().map(|vote| (vote.at, Outside::Vote(vote))));
    outside.extend(scenario.operator.iter().map(|directive| (directive.at, Outside::Operator(directive))));
    outside.sort_by_key(|(at, _)| *at);
    let mut outside: VecDeque<_> = outside.into();
    for _ in 0..ACTIONS_MAX {
        if stage.run.state.is_terminal() {
            break;
        }
        let inner = stage.next();
        let next_outside = outside.front().map(|(at, _)| START + *at);
        match (inner, next_outside) {
            (Some((at, command)), next) if next.is_none_or(|next| at < next) => {
                stage.now = stage.now.max(at);
                stage.act(command);
            }
            (_, Some(next)) => {
                stage.now = stage.now.max(next);
                if let Some((_, event)) = outside.pop_front() {
                    stage.meet(event);
                }
            }
            _ => break,
        }
        if !stage.troubles.is_empty() {
            break;
        }
    }
    let after = stage.now.since(START);
    Ok(Played { run: stage.run, after, output: stage.output, lines: stage.lines, troubles: stage.troubles })
}

fn start(workflow: &Checked, scenario: &Scenario) -> Result<(Run, Box<ChangeSet>), String> {
    let definition = &workflow.definition;
    let given = scenario.inputs.as_ref().map_or(Value::Null, crate::shape::Template::to_json);
    let budget = Budget::default();
    let declared = Inputs::of(definition, &budget).map_err(|error| error.to_string())?;
    let inputs = declared.bind(&given, &budget).map_err(|error| error.to_string())?;
    let scope = Scope::new([("inputs".to_owned(), inputs.clone())].into_iter().collect(), &budget);
    let text = |template: &str| match expression::render_text(template, &scope) {
        Ok(Value::String(text)) => Ok(text),
        Ok(Value::Null) => Ok(String::new()),
        Ok(other) => Ok(other.to_string()),
        Err(error) => Err(error.message),
    };
    let mut labels = BTreeMap::new();
    for (key, label) in &definition.labels.0 {
        labels.insert(key.name.clone(), text(&label.0)?);
    }
    let subject = match (&scenario.subject, &definition.subject) {
        (Some(subject), _) => Some(subject.clone()),
        (None, Some(subject)) => Some(text(&subject.key.0)?),
        (None, None) => None,
    };
    let plan = definition.plan(1);
    let (plan_hash, plan_text) = plan.encode();
    let plan = Arc::new(plan);
    let header = Header {
        workspace: "default".into(),
        plan_hash: HashHex(plan_hash),
        inputs: Json::trusted(inputs.to_string()),
        subject: subject.filter(|subject| !subject.is_empty()),
        labels,
        trigger: Trigger { kind: "test".into(), reference: None },
        priority: definition.priority.unwrap_or(0),
        created_at: START,
        deadline_at: plan.timeout.map(|timeout| START + timeout),
        lineage: None,
        started_by: scenario.started_by.clone(),
    };
    let id = RunId::from_bytes([7; 16]);
    let request = StartRequest {
        tenant: TenantId::from_bytes([1; 16]),
        run: id,
        header,
        plan,
        plan_hash,
        plan_text,
        idempotency: None,
        inherited: Vec::new(),
        claim: None,
        starters: Vec::new(),
        used: Used::default(),
        named: Vec::new(),
        queued: None,
        undoes: None,
    };
    let (run, opening) = decide::open(request).map_err(|error| error.to_string())?;
    let decided = decide::start(&run, opening, CommandOrigin::system(START)).map_err(|error| error.to_string())?;
    let change = decided.settle(|asking| bound(asking, &budget)).map_err(|error| error.to_string())?;
    Ok((run, change))
}

/// What the expressions of a step come to. A scenario shows what a workflow does where everything is allowed.
fn bound(asking: &Asking<'_>, budget: &Budget) -> Bound {
    let rendered = match fixed(asking) {
        Some(rendered) => Ok(Some(rendered)),
        None => Facts::of(asking).render(budget),
    };
    match rendered {
        Ok(Some(rendered)) => asking.bind(rendered, &AllowDeclared),
        Ok(None) => Bound::condition_false(),
        Err(error) => Bound::broken(error),
    }
}

impl Stage<'_> {
    /// What the run would do next by itself, and when.
    fn next(&self) -> Option<(Timestamp, Command)> {
        let position = self.run.position;
        let step = self.run.current();
        let own = match &step.phase {
            Phase::Ready { eligible_at, .. } if self.run.control == Control::Active => {
                Some((*eligible_at, self.taken()))
            }
            Phase::Running { timeout_at, .. } => {
                let ends_at = step.claimed_at.unwrap_or(self.now) + self.stub_takes(position);
                match timeout_at.filter(|timeout_at| *timeout_at < ends_at) {
                    Some(at) => Some((at, Command::StepTimeout { position, attempt: step.attempt })),
                    None => Some((ends_at, self.completion(position))),
                }
            }
            Phase::WaitingSignal(wait) => wait.signal.as_ref().and_then(|awaited| {
                let found = self.signals.iter().find(|(_, kind, key, at, _)| {
                    *kind == awaited.signal && *key == awaited.key && *at >= awaited.accept_from
                });
                let wake =
                    |signal: SignalId, payload: Json| Command::Wake { position, signal, payload, broadcast: false };
                found.map(|(id, .., payload)| (self.now, wake(*id, payload.clone())))
            }),
            _ => None,
        };
        let timer = self.wake_at.map(|at| (at, Command::Tick));
        match (own, timer) {
            (Some(own), Some(timer)) => Some(if timer.0 < own.0 { timer } else { own }),
            (own, timer) => own.or(timer),
        }
    }

    /// A worker takes the step; where the run is for one as a whole, first that.
    fn taken(&self) -> Command {
        let session = SessionId::from_bytes([2; 16]);
        match self.run.notes.assignment.as_deref().filter(|_| self.run.seeks_worker()) {
            Some(assignment) if self.run.is_offered() => Command::AckRun { session, number: assignment.number },
            Some(_) => Command::OfferRun { session, worker: "scenario".to_owned() },
            None => Command::Claim { session },
        }
    }

    fn stubs(&self, position: u32) -> Option<&super::file::Stub> {
        let stubs = &self.scenario.steps.get(&self.run.spec(position).key)?.0;
        let attempt = self.attempts.get(&position).copied().unwrap_or(1);
        stubs.get(attempt - 1).or(stubs.last())
    }

    fn stub_takes(&self, position: u32) -> Millis {
        self.stubs(position).and_then(|stub| stub.takes).unwrap_or(Millis::ZERO)
    }

    fn completion(&self, position: u32) -> Command {
        let outcome = match (self.run.spec(position).kind(), self.stubs(position)) {
            // A transform's output is its rendered value.
            (StepKind::Transform, _) => Outcome::Completed { output: self.run.input(position) },
            (_, Some(stub)) => {
                if let Some(error) = &stub.error {
                    let class = error.class.unwrap_or(ErrorClass::Unclassified);
                    let code = error.code.as_deref().unwrap_or("STUB_FAILED");
                    let message = error.message.clone().unwrap_or_else(|| "the scenario says so".to_owned());
                    Outcome::Retry { error: StepError::new(class, code, message), backoff: None }
                } else {
                    let output = stub.output.as_ref().map_or(Value::Null, crate::shape::Template::to_json);
                    Outcome::Completed { output: Json::trusted(output.to_string()) }
                }
            }
            (_, None) => Outcome::Completed { output: Json::null() },
        };
        let attempt = self.run.steps[position as usize].attempt;
        Command::Complete(Completion { position, attempt, outcome, claim_next: None, cost: None })
    }

    /// Carries out what was due.
    fn act(&mut self, command: Command) {
        if let Command::Claim { .. } = command {
            let position = self.run.position;
            let spec = self.run.spec(position);
            if spec.kind() != StepKind::Transform && self.scenario.steps.get(&spec.key).is_none() {
                let key = spec.key.clone();
                self.troubles
                    .push(format!("the step `{key}` is reached and has no answer: give it one under `steps:`"));
                return;
            }
            *self.attempts.entry(position).or_default() += 1;
        }
        if let Command::Wake { signal, .. } = &command {
            self.signals.retain(|(id, ..)| id != signal);
        }
        let by = if matches!(command, Command::Tick) { Context::TIMEOUT } else { Context::SYSTEM };
        if let Err(why) = self.decide(command, by) {
            self.troubles.push(why);
        }
    }

    fn decide(&mut self, command: Command, by: Context) -> Result<(), String> {
        let asked = CommandOrigin { by, now: self.now };
        let budget = Budget::default();
        let decided = decide::decide(&self.run, command, DecideContext::default(), asked);
        let change = decided.and_then(|decided| decided.settle(|asking| bound(asking, &budget)));
        let change = change.map_err(|error| error.to_string())?;
        self.take(&change);
        Ok(())
    }

    fn take(&mut self, change: &ChangeSet) {
        self.run.apply(change);
        self.wake_at = match &change.live {
            LiveChange::Put(row) | LiveChange::Advance(row) => row.wake_at,
            LiveChange::Gone => None,
        };
        if let Some(end) = &change.end {
            self.output.clone_from(&end.output);
        }
        for row in &change.journal {
            let events: Vec<Event> = row.events.decode().unwrap_or_default();
            for event in events {
                if let Some(text) = told(&self.run, &event, self.now) {
                    self.lines.push(Line { after: self.now.since(START), text });
                }
            }
        }
    }

    fn meet(&mut self, event: Outside<'_>) {
        let met = match event {
            Outside::Signal(signal) => {
                let own = || self.run.header.subject.clone().unwrap_or_else(|| self.run.id.to_string());
                let key = signal.key.clone().unwrap_or_else(own);
                let payload = signal.payload.as_ref().map_or(Value::Null, crate::shape::Template::to_json);
                let mut id = [9u8; 16];
                id[..8].copy_from_slice(&(self.lines.len() as u64 + self.signals.len() as u64).to_be_bytes());
                let kind = signal.kind.0.clone();
                self.tell(format!("signal {kind} for {key}"));
                let payload = Json::trusted(payload.to_string());
                self.signals.push_back((SignalId::from_bytes(id), kind, key, self.now, payload));
                Ok(())
            }
            Outside::Vote(vote) => {
                let word = if vote.approve { "approves" } else { "rejects" };
                self.tell(format!("{} {word}", vote.person));
                let voter = Voter::new(&vote.person, vote.groups.clone());
                let position = self.run.position;
                let command = Command::Vote { position, voter, approve: vote.approve, notes: vote.notes.clone() };
                let by = Context::of(Initiator::Approval, vote.person.clone());
                self.decide(command, by).map_err(|why| format!("{}'s vote: {why}", vote.person))
            }
            Outside::Operator(directive) => self.directive(directive),
        };
        if let Err(why) = met {
            self.troubles.push(why);
        }
    }

    fn directive(&mut self, directive: &Directive) -> Result<(), String> {
        let person = directive.person.clone().unwrap_or_else(|| "operator".to_owned());
        let (word, command) = match directive {
            Directive { pause: Some(reason), .. } => ("pause", Command::Pause { reason: reason.clone() }),
            Directive { resume: Some(_), .. } => ("resume", Command::Resume),
            Directive { retry: Some(_), .. } => ("retry", Command::Retry { input: None }),
            Directive { skip: Some(reason), .. } => {
                let voter = Some(Box::new(Voter::new(&person, directive.groups.clone())));
                ("skip", Command::Skip { reason: reason.clone(), voter })
            }
            Directive { rollback: Some(reason), .. } => {
                ("rollback", Command::Rollback { reason: reason.clone(), from: None })
            }
            Directive { cancel: reason, .. } => {
                ("cancel", Command::Cancel { reason: reason.clone().unwrap_or_default(), rollback: false })
            }
        };
        self.tell(format!("{person}: {word}"));
        let by = Context::of(Initiator::Operator, person.clone());
        self.decide(command, by).map_err(|why| format!("{person}'s `{word}`: {why}"))
    }

    fn tell(&mut self, text: String) {
        self.lines.push(Line { after: self.now.since(START), text });
    }
}

/// An event in a few words; those that only repeat what another says are left out.
fn told(run: &Run, event: &Event, now: Timestamp) -> Option<String> {
    let key = |step: &u32| run.spec(*step).key.clone();
    Some(match event {
        Event::RunCreated { .. } => "started".to_owned(),
        Event::RunPaused { reason } => format!("paused: {reason}"),
        Event::RunResumed {} => "resumed".to_owned(),
        Event::RunCanceled { reason, done: true } => format!("canceled: {reason}"),
        Event::RunCompleted {} => "succeeded".to_owned(),
        Event::RunFailed { reason, .. } => {
            reason.map_or_else(|| "failed".to_owned(), |reason| format!("failed: {reason}"))
        }
        Event::StepStarted { step, attempt, .. } if *attempt > 1 => format!("{} runs (attempt {attempt})", key(step)),
        Event::StepStarted { step, .. } => format!("{} runs", key(step)),
        Event::StepCompleted { step, .. } => format!("{} succeeded", key(step)),
        Event::StepFailed { step, error, .. } => format!("{} failed: {error}", key(step)),
        Event::StepRetrying { step, error, eligible_at, .. } => {
            format!("{} failed, again in {}: {error}", key(step), show(eligible_at.since(now)))
        }
        Event::StepWaiting { step, signal: Some(signal), key: Some(for_key), .. } => {
            format!("{} waits for {signal} for {for_key}", key(step))
        }
        Event::StepWaiting { step, deadline_at: Some(at), .. } => {
            format!("{} waits {}", key(step), show(at.since(now)))
        }
        Event::StepSkipped { step, why } => format!("{} skipped: {why}", key(step)),
        Event::StepCanceled { step } => format!("{} canceled", key(step)),
        Event::RollbackStarted { steps } => format!("rollback of {} steps", steps.len()),
        Event::RollbackCompleted {} => "rolled back".to_owned(),
        Event::ApprovalRequested { step, .. } => format!("{} asks for approval", key(step)),
        Event::ApprovalEscalated { step, .. } => format!("{} reminds", key(step)),
        Event::ApprovalResolved { step, status, .. } => format!("{} is {status}", key(step)),
        _ => return None,
    })
}
