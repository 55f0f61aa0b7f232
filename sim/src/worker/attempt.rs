//! One attempt: does what the handler's name says, and reports it until somebody answers.

use std::sync::Arc;
use std::time::Duration;

use interlock_core::retry::{ErrorClass, StepError};
use interlock_core::state::{StepKind, TaskType};
use interlock_core::time::Millis;
use interlock_core::work::{Assignment, AttemptRef, OutboundMessage, Report, ReportedOutcome};
use interlock_engine::commands::complete::Completed;
use interlock_engine::{Engine, EngineError};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Worker;
use super::effect::{self, Trouble};
use super::session::Session;
use crate::books::Word;
use crate::given::is_marked;
use crate::network::{CallError, Caller, PATIENCE};
use crate::plans::{Behaviour, DESTINATION, REPLY, json_of};
use crate::sim::Sim;
use crate::trace::say;

/// A step in a worker's hands, and the world it was given out in: a restore makes another one.
pub struct Handed {
    pub assignment: Assignment,
    pub world: u64,
}

/// What must hold of every assignment.
pub fn check(worker: &Worker, session: &Session, handed: &Handed) -> Result<(), String> {
    let Handed { assignment, world } = handed;
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
    if *world == sim.host.archive.restores() {
        let first = sim.books(|books| *books.handed.entry(at).or_insert(session.id));
        if first != session.id {
            return Err(format!("P2: {at:?} was handed to {first} and to {}", session.id));
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
    let Some(undone) = assignment.step.strip_prefix("rollback:") else {
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
pub(super) async fn work(worker: Arc<Worker>, session: Arc<Session>, mut handed: Handed) {
    loop {
        let at = handed.assignment.at;
        let next = one(&worker, &session, &handed).await;
        session.let_go(at);
        let Some(next) = next else { return };
        if let Err(what) = check(&worker, &session, &next) {
            return worker.caller.sim.broken(what);
        }
        if !session.hold(next.assignment.at) {
            return;
        }
        worker.caller.sim.tally.count("steps handed on");
        handed = next;
    }
}

async fn one(worker: &Arc<Worker>, session: &Arc<Session>, handed: &Handed) -> Option<Handed> {
    let assignment = &handed.assignment;
    let (sim, at) = (&worker.caller.sim, assignment.at);
    say!(sim, &worker.name, "works on {} {} {at:?}", assignment.step, assignment.handler);
    let outcome = match perform(worker, session, assignment).await {
        Ok(outcome) => outcome,
        Err(Trouble::Stopped) => ReportedOutcome::Released,
        Err(Trouble::Dropped) => return None,
        Err(Trouble::Failed(error)) => ReportedOutcome::Retry { error, backoff: None },
        Err(Trouble::Refused(error)) => ReportedOutcome::Dead { error },
    };
    report(worker, session, handed, outcome).await
}

async fn perform(
    worker: &Arc<Worker>,
    session: &Arc<Session>,
    assignment: &Assignment,
) -> Result<ReportedOutcome, Trouble> {
    let Caller { sim, dice, .. } = &worker.caller;
    let at = assignment.at;
    let behaviour = Behaviour::parse(&assignment.handler).expect("it was checked before");
    let longer = !sim.is_calm() && dice.one_in(12);
    sleep(dice.millis(if longer { 1_000..=12_000 } else { 0..=600 })).await;
    worker.gate.pass().await;
    if session.is_stopped(at) {
        return Err(Trouble::Stopped);
    }
    if behaviour.asks && assignment.task_type == TaskType::Execute {
        return Ok(ask(worker, assignment));
    }
    let mut keys = Vec::new();
    for number in 0..behaviour.effects {
        keys.push(effect::perform(worker, session, assignment, number).await?);
        if session.is_stopped(at) {
            return Err(Trouble::Stopped);
        }
    }
    let failing = if sim.is_calm() { 0.0 } else { sim.swarm.failing_tasks };
    if dice.chance(failing) {
        let error = error(ErrorClass::Unclassified, at);
        return Ok(if dice.one_in(4) {
            ReportedOutcome::Dead { error }
        } else {
            ReportedOutcome::Retry { error, backoff: dice.one_in(3).then(|| Millis(dice.between(0..=2_000))) }
        });
    }
    let output = json!({ "step": assignment.step, "attempt": at.attempt, "keys": keys, "worker": worker.name });
    Ok(ReportedOutcome::Completed { output: json_of(&output) })
}

/// An error that says which attempt had it.
pub fn error(class: ErrorClass, at: AttemptRef) -> StepError {
    StepError::new(class, "SIMULATED", format!("attempt {}", at.attempt))
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
    engine.complete(session.id, report).await
}

/// Reports until it is answered, or until nobody can want the answer any more.
async fn report(
    worker: &Arc<Worker>,
    session: &Arc<Session>,
    handed: &Handed,
    outcome: ReportedOutcome,
) -> Option<Handed> {
    let Caller { sim, dice, .. } = &worker.caller;
    let (at, epoch) = (handed.assignment.at, handed.assignment.epoch);
    let claim_next = outcome != ReportedOutcome::Released && !session.is_draining() && !dice.one_in(6);
    for _ in 0..40 {
        worker.gate.pass().await;
        let report = Report { at, epoch, outcome: outcome.clone(), claim_next };
        let holder = Arc::clone(session);
        let answer =
            worker.caller.call(PATIENCE, move |engine| complete(engine, Arc::clone(&holder), report.clone())).await;
        let world = sim.host.archive.restores();
        worker.gate.pass().await;
        match answer {
            Ok(completed) => {
                if world != handed.world {
                    sim.broken(format!("P2: a report of {at:?} from before a restore was accepted after it"));
                }
                // The world may have been set back while the process stood still with the answer in its hands.
                if world == sim.host.archive.restores() {
                    note(worker, session, at, &outcome, &completed);
                }
                return completed.next.map(|assignment| Handed { assignment, world });
            }
            Err(error) if error.is_transient() => sleep(dice.millis(50..=1_000)).await,
            Err(CallError::Refused(refused)) => {
                sim.tally.count("reports refused");
                say!(sim, &worker.name, "drops {at:?}: {refused}");
                return None;
            }
            Err(CallError::Lost) => {}
        }
    }
    sleep(Duration::ZERO).await;
    None
}

fn note(worker: &Worker, session: &Session, at: AttemptRef, outcome: &ReportedOutcome, completed: &Completed) {
    let sim = &worker.caller.sim;
    let holder = sim.books(|books| books.handed.get(&at).copied());
    if holder != Some(session.id) {
        sim.broken(format!("P2: the report of {} was taken for {at:?}, which {holder:?} has", session.id));
    }
    say!(sim, &worker.name, "reported {at:?} (first: {})", completed.recorded);
    if !completed.recorded {
        sim.tally.count("reports answered again");
    }
    let word = match outcome {
        ReportedOutcome::Completed { .. } => Word::Completed,
        ReportedOutcome::Waiting { outbound, .. } => {
            for message in outbound {
                sim.books(|books| books.questions.insert(message.payload.as_str().to_owned()));
            }
            Word::Waiting
        }
        ReportedOutcome::Retry { .. } | ReportedOutcome::Dead { .. } => Word::Failed,
        ReportedOutcome::Released | ReportedOutcome::UnknownTask => return sim.tally.count("steps given back"),
    };
    sim.books(|books| books.reports.insert(at, word));
}
