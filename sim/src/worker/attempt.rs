//! One attempt: does what the handler's name says, and reports it until a server answers.

use std::sync::Arc;
use std::time::Duration;

use interlock_core::ids::SessionId;
use interlock_core::json::Hash;
use interlock_core::plan::retry::{ErrorClass, StepError};
use interlock_core::state::{StepKind, TaskType};
use interlock_core::time::Millis;
use interlock_core::work::{Assignment, AttemptRef, OutboundMessage, Report, ReportedOutcome};
use interlock_engine::commands::complete::Completed;
use interlock_engine::{Engine, EngineError};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Worker;
use super::effect::{self, AttemptFailure};
use super::session::Session;
use crate::books::ReportKind;
use crate::given::is_marked;
use crate::host::INLINE_MAX;
use crate::network::{CallError, Caller, PATIENCE};
use crate::plans::{Behaviour, DESTINATION, REPLY, json_of};
use crate::sim::Sim;
use crate::trace::say;

/// A step in a worker's hands, and the world it was given out in: a restore makes another one.
#[derive(Clone)]
pub struct HandedStep {
    pub assignment: Assignment,
    pub world: u64,
}

/// What must hold of every assignment.
pub fn check(worker: &Worker, session: SessionId, handed: &HandedStep) -> Result<(), String> {
    let HandedStep { assignment, world } = handed;
    let at = assignment.at;
    let sim = &worker.caller.sim;
    sim.tally.count("assignments");
    if worker.tenant.is_some_and(|tenant| tenant != at.tenant) {
        return Err(format!("P6: a worker of another tenant got {at:?}"));
    }
    if !matches!(assignment.kind, StepKind::Task | StepKind::Rollback) {
        return Err(format!("a worker got a {} step: {at:?}", assignment.kind));
    }
    let queue = sim.queue_of(&assignment.workflow, &assignment.step);
    if !queue.is_some_and(|queue| worker.queues.contains(queue)) {
        return Err(format!("a worker that does not serve {queue:?} got {at:?}"));
    }
    // One from before a restore is worthless, and its number may be given out again.
    if *world == sim.archive.restores() {
        let first = sim.books(|books| *books.handed.entry(at).or_insert(session));
        if first != session {
            return Err(format!("P2: {at:?} was handed to {first} and to {session}"));
        }
    }
    if at.attempt > 1 {
        sim.tally.count("steps taken over or tried again");
    }
    check_input(sim, assignment).map_err(|what| format!("{at:?} ({}) got a wrong input: {what}", assignment.step))
}

/// The input is what the plan says, also after a crash, a retry, a rollback; or exactly what an operator gave instead.
fn check_input(sim: &Sim, assignment: &Assignment) -> Result<(), String> {
    let input: Value = assignment.input.decode().map_err(|error| error.to_string())?;
    let behaviour =
        Behaviour::parse(&assignment.handler).ok_or_else(|| format!("no handler {}", assignment.handler))?;
    let text = || input.to_string();
    let at = assignment.at;
    if is_marked(&input) {
        return sim.given.is_of_run(at.tenant, at.run, &input).then_some(()).ok_or_else(text);
    }
    let given = |input: &Value| match behaviour.bound {
        _ if is_marked(input) => sim.given.is_of_chain(at.tenant, assignment.root_run, input),
        true => input["bound"].is_string(),
        false => input["until"].is_i64(),
    };
    let verified = assignment.step.strip_prefix("verify:");
    if verified.is_some() {
        sim.tally.count("verifications of rollbacks");
    }
    // What verifies a rollback is given what the rollback is given.
    let Some(undone) = assignment.step.strip_prefix("rollback:").or(verified) else {
        return given(&input).then_some(()).ok_or_else(text);
    };
    let output = &input["output"];
    // A step that had no output may have been rewound, and its input with it.
    let fits = input["with"]["undo"] == undone
        && (output.is_null() || given(&input["input"]))
        && (output.is_null() || output["step"] == undone || output["resolved"] == true);
    fits.then_some(()).ok_or_else(text)
}

/// Works on an attempt, and on the steps that come with the answers to its reports.
pub(super) async fn work(worker: Arc<Worker>, session: Arc<Session>, mut handed: HandedStep) {
    loop {
        let at = handed.assignment.at;
        let next = one(&worker, &session, &handed).await;
        session.let_go(at);
        let Some(next) = next else { return };
        if let Err(what) = check(&worker, session.id, &next) {
            return worker.caller.sim.broken(what);
        }
        if !session.hold(next.assignment.at) {
            return;
        }
        worker.caller.sim.tally.count("steps handed on");
        handed = next;
    }
}

async fn one(worker: &Arc<Worker>, session: &Arc<Session>, handed: &HandedStep) -> Option<HandedStep> {
    let assignment = &handed.assignment;
    let (sim, at) = (&worker.caller.sim, assignment.at);
    say!(sim, &worker.name, "works on {} {} {at:?}", assignment.step, assignment.handler);
    let outcome = match perform(worker, session, handed).await {
        Ok(outcome) => outcome,
        Err(AttemptFailure::Stopped) => ReportedOutcome::Released,
        Err(AttemptFailure::Dropped) => return None,
        Err(AttemptFailure::Failed(error)) => ReportedOutcome::Retry { error, backoff: None },
        Err(AttemptFailure::Refused(error)) => ReportedOutcome::Dead { error },
    };
    report(worker, session, handed, outcome).await
}

async fn perform(
    worker: &Arc<Worker>,
    session: &Arc<Session>,
    handed: &HandedStep,
) -> Result<ReportedOutcome, AttemptFailure> {
    let assignment = &handed.assignment;
    let at = assignment.at;
    let begun = begin(worker, assignment).await;
    if session.is_stopped(at) {
        return Err(AttemptFailure::Stopped);
    }
    let behaviour = match begun {
        AttemptWork::Asks(outcome) => return Ok(outcome),
        AttemptWork::Acts(behaviour) => behaviour,
    };
    let mut keys = Vec::new();
    for number in 0..behaviour.effects {
        keys.push(effect::perform(worker, session, handed, number).await?);
        if session.is_stopped(at) {
            return Err(AttemptFailure::Stopped);
        }
    }
    Ok(match own_failure(worker) {
        Some(OwnFailure::Dead) => {
            ReportedOutcome::Dead { error: error(refusal(worker, at).unwrap_or(ErrorClass::Unclassified), at) }
        }
        Some(OwnFailure::Retry(backoff)) => {
            ReportedOutcome::Retry { error: error(ErrorClass::Unclassified, at), backoff }
        }
        None => ReportedOutcome::Completed { output: json_of(&output(worker, assignment, &keys)) },
    })
}

/// What an attempt does, as the name of its handler says.
pub enum AttemptWork {
    /// It asks a person, and waits.
    Asks(ReportedOutcome),
    Acts(Behaviour),
}

/// Takes its time, as tasks do.
pub async fn begin(worker: &Worker, assignment: &Assignment) -> AttemptWork {
    let Caller { sim, dice, .. } = &worker.caller;
    let behaviour = Behaviour::parse(&assignment.handler).expect("it was checked before");
    let longer = !sim.is_calm() && dice.one_in(12);
    sleep(dice.millis(if longer { 1_000..=12_000 } else { 0..=600 })).await;
    worker.gate.pass().await;
    if behaviour.asks && assignment.task_type == TaskType::Execute {
        return AttemptWork::Asks(ask(worker, assignment));
    }
    AttemptWork::Acts(behaviour)
}

/// How a task fails by itself.
pub enum OwnFailure {
    Dead,
    /// After a pause of its own, where it names one.
    Retry(Option<Millis>),
}

pub fn own_failure(worker: &Worker) -> Option<OwnFailure> {
    let Caller { sim, dice, .. } = &worker.caller;
    let failing = if sim.is_calm() { 0.0 } else { sim.swarm.failing_tasks };
    if !dice.chance(failing) {
        return None;
    }
    Some(if dice.one_in(4) {
        OwnFailure::Dead
    } else {
        OwnFailure::Retry(dice.one_in(3).then(|| Millis(dice.between(0..=2_000))))
    })
}

pub fn output(worker: &Worker, assignment: &Assignment, keys: &[String]) -> Value {
    let Caller { sim, dice, .. } = &worker.caller;
    let attempt = assignment.at.attempt;
    let mut output = json!({ "step": assignment.step, "attempt": attempt, "keys": keys, "worker": worker.name });
    if sim.swarm.payloads && dice.one_in(2) {
        output["padding"] = "x".repeat(INLINE_MAX).into();
    }
    output
}

/// Some tasks that fail for good say that what they called has denied or rejected it, which is neither a decision nor a vote.
/// Drawn from the attempt, so that no dice are thrown for it.
pub fn refusal(worker: &Worker, at: AttemptRef) -> Option<ErrorClass> {
    let class = match Hash::of(format!("{at:?}").as_bytes()).0[0] % 4 {
        0 | 1 => ErrorClass::Denied,
        2 => ErrorClass::Rejected,
        _ => return None,
    };
    worker.caller.sim.tally.count("tasks that report a refusal");
    Some(class)
}

/// The words by which the checks know whose error it is.
pub fn told_by(at: AttemptRef) -> String {
    format!("attempt {}", at.attempt)
}

/// An error that says which attempt had it.
pub fn error(class: ErrorClass, at: AttemptRef) -> StepError {
    StepError::new(class, "SIMULATED", told_by(at))
}

fn ask(worker: &Worker, assignment: &Assignment) -> ReportedOutcome {
    let Caller { sim, dice, .. } = &worker.caller;
    let at = assignment.at;
    let question = json!({ "run": at.run, "step": assignment.step, "attempt": at.attempt });
    let input: Value = assignment.input.decode().unwrap_or_default();
    let order = input["order"].as_str().or(input["bound"].as_str()).map(ToOwned::to_owned);
    let timeout = (!dice.one_in(3)).then(|| Millis(dice.between(500..=12_000)));
    sim.tally.count("tasks that wait");
    ReportedOutcome::Waiting {
        signal: REPLY.into(),
        key: order.filter(|_| dice.one_in(2)),
        timeout,
        outbound: vec![OutboundMessage { destination: DESTINATION.into(), payload: json_of(&question) }],
    }
}

async fn complete(engine: Engine, session: Arc<Session>, report: Report) -> Result<Completed, EngineError> {
    engine.workers().complete(session.id, report).await
}

/// Reports until it is answered or refused; after forty tries it gives up.
async fn report(
    worker: &Arc<Worker>,
    session: &Arc<Session>,
    handed: &HandedStep,
    outcome: ReportedOutcome,
) -> Option<HandedStep> {
    let Caller { sim, dice, .. } = &worker.caller;
    let (at, epoch) = (handed.assignment.at, handed.assignment.epoch);
    let claim_next = outcome != ReportedOutcome::Released && !session.is_draining() && !dice.one_in(6);
    for _ in 0..40 {
        worker.gate.pass().await;
        let report = Report { at, epoch, outcome: outcome.clone(), claim_next, cost: None, credentials: Vec::new() };
        let holder = Arc::clone(session);
        let answer =
            worker.caller.call(PATIENCE, move |engine| complete(engine, Arc::clone(&holder), report.clone())).await;
        let world = sim.archive.restores();
        worker.gate.pass().await;
        match answer {
            Ok(completed) => {
                acknowledged(worker, session.id, (at, handed.world, world), &outcome, &completed);
                return completed.next.map(|assignment| HandedStep { assignment, world });
            }
            Err(error) if error.is_transient() => sleep(dice.millis(50..=1_000)).await,
            Err(refused) => {
                unheard(worker, handed.world, at, &refused);
                return None;
            }
        }
    }
    sleep(Duration::ZERO).await;
    None
}

/// A report has reached the engine: what was said to it must be true.
pub fn acknowledged(
    worker: &Worker,
    session: SessionId,
    (at, handed_in, world): (AttemptRef, u64, u64),
    outcome: &ReportedOutcome,
    completed: &Completed,
) {
    let sim = &worker.caller.sim;
    if world != handed_in {
        sim.broken(format!("P2: a report of {at:?} from before a restore was accepted after it"));
    }
    // The world may have been set back while the process stood still with the answer in its hands.
    if world == sim.archive.restores() {
        note(worker, session, at, outcome, completed);
    }
}

/// What a worker knows is wanted although its session is over: it may be the only one who knows.
pub fn unheard(worker: &Worker, handed_in: u64, at: AttemptRef, refused: &CallError) {
    let sim = &worker.caller.sim;
    let CallError::Refused(refused) = refused else { return };
    if refused.is_transient() {
        return;
    }
    sim.tally.count("reports refused");
    say!(sim, &worker.name, "drops {at:?}: {refused}");
    if matches!(refused, EngineError::SessionGone) && handed_in == sim.archive.restores() {
        sim.broken(format!("what became of {at:?} is not heard, because its session is over"));
    }
}

fn note(worker: &Worker, session: SessionId, at: AttemptRef, outcome: &ReportedOutcome, completed: &Completed) {
    let sim = &worker.caller.sim;
    let holder = sim.books(|books| books.handed.get(&at).copied());
    if holder != Some(session) {
        sim.broken(format!("P2: the report of {session} was taken for {at:?}, which {holder:?} has"));
    }
    say!(sim, &worker.name, "reported {at:?} (first: {})", completed.recorded);
    if !completed.recorded {
        sim.tally.count("reports answered again");
    }
    let word = match outcome {
        ReportedOutcome::Completed { .. } => ReportKind::Completed,
        ReportedOutcome::Waiting { outbound, .. } => {
            for message in outbound {
                sim.books(|books| books.questions.insert(message.payload.as_str().to_owned()));
            }
            ReportKind::Waiting
        }
        ReportedOutcome::Retry { .. } | ReportedOutcome::Dead { .. } => ReportKind::Failed,
        ReportedOutcome::Released | ReportedOutcome::UnknownTask => return sim.tally.count("steps given back"),
    };
    sim.books(|books| books.reports.insert(at, word));
}
