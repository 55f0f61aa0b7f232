//! Random plans and random moves. A move is a number: it picks one of the commands that make sense where the run
//! stands, or now and then one that does not.

use proptest::prelude::*;

use super::case::{
    Answer, Answers, Case, asks, cancel, denied, error, json, pause, reassign, retry, roll_back, session, skip,
};
use super::plans::{Tuned, gate, in_workdir, signal, task, timer, transform, under_profile};
use crate::decide::{Command, Completion, Outbound, Outcome};
use crate::governance::action::Action;
use crate::governance::judge::{Decision, Judge, Ruling};
use crate::machine::step::Resolution;
use crate::plan::retry::ErrorClass;
use crate::plan::rules::Workdir;
use crate::plan::{BlastRadius, OnDenial, OnFailure, Plan, RollbackCondition, StepSpec, Work};
use crate::run::Run;
use crate::state::{Control, EffectClass, PreflightCheck, Reason, ReceiptState, StepKind, StepState};
use crate::time::Millis;

#[derive(Debug, Clone, Copy, Default)]
pub struct Move {
    pick: u8,
    flag: u8,
    wait: u8,
}

pub fn any_moves(max: usize) -> impl Strategy<Value = Vec<Move>> {
    let one = any::<(u8, u8, u8)>().prop_map(|(pick, flag, wait)| Move { pick, flag, wait });
    proptest::collection::vec(one, 1..=max)
}

pub fn any_plan() -> impl Strategy<Value = Plan> {
    (
        proptest::collection::vec(any_step(), 1..=6),
        proptest::option::weighted(0.4, proptest::sample::select(OnFailure::ALL)),
        proptest::option::weighted(0.3, 30_000..7_200_000_u64),
        proptest::option::weighted(0.3, 0..3_u32),
    )
        .prop_map(|(mut steps, on_failure, timeout, writes_max)| {
            for (at, step) in steps.iter_mut().enumerate() {
                step.key = format!("s{at}");
            }
            Plan { on_failure, timeout: timeout.map(Millis), writes_max, ..under_profile(steps) }
        })
}

fn any_step() -> impl Strategy<Value = StepSpec> {
    let conditions = proptest::sample::subsequence(RollbackCondition::ALL.to_vec(), 0..=2);
    (
        any_kind(),
        proptest::option::weighted(0.5, conditions),
        proptest::option::weighted(0.5, proptest::sample::select(EffectClass::ALL)),
        proptest::option::weighted(0.7, 1..4_u32),
        proptest::option::weighted(0.3, 1_000..600_000_u64),
        proptest::option::weighted(0.2, proptest::sample::select(OnFailure::ALL)),
        prop_oneof![10 => Just(None), 3 => Just(Some("false")), 1 => Just(Some("error")), 3 => Just(Some("input"))],
        prop_oneof![4 => Just(None), 1 => Just(Some("other"))],
        prop_oneof![8 => Just((false, None)), 1 => Just((true, None)), 2 => Just((false, Some(BlastRadius::High)))],
    )
        .prop_map(|(mut step, undo, effect, attempts, timeout, on_failure, condition, queue, reach)| {
            (step.rules.destructive, step.blast_radius) = reach;
            if let Some(conditions) = undo {
                step = step.undoable_when(&conditions);
            }
            if let Some(max) = attempts {
                step = step.attempts(max);
            }
            step.effect = effect;
            let has_attempts = !matches!(step.work, Work::Wait { .. } | Work::Approval(_));
            step.timeout = timeout.filter(|_| has_attempts).map(Millis);
            step.on_failure = on_failure;
            step.condition = condition.map(str::to_owned);
            if let Some(queue) = queue {
                step = step.queue(queue);
            }
            step
        })
}

fn any_kind() -> impl Strategy<Value = StepSpec> {
    let millis = 1..100_000_u64;
    prop_oneof![
        6 => Just(task("s")),
        1 => Just(transform("s")),
        1 => proptest::option::of(millis.clone()).prop_map(|timeout| signal("s", timeout.map(Millis))),
        1 => millis.prop_map(|span| timer("s", Millis(span))),
        2 => proptest::sample::select(OnDenial::ALL).prop_map(|rule| gate("s", rule)),
        2 => proptest::sample::select(Workdir::ALL).prop_map(|rule| in_workdir("s", rule)),
    ]
}

/// What the engine would find out about the plan's steps.
pub fn answers(plan: &Plan) -> Answers {
    let answer = |condition: &str| match condition {
        "false" => Answer::ConditionFalse,
        "error" => Answer::Broken,
        _ => Answer::input(r#"{"bound":1}"#),
    };
    let conditions = plan.steps.iter().map(|step| step.condition.as_deref()).enumerate();
    conditions.filter_map(|(at, text)| Some((at as u32, answer(text?)))).collect()
}

/// Decides by what a plan says of its steps, and now and then anew.
#[derive(Debug)]
pub struct Moody;

impl Judge for Moody {
    fn judge(&self, action: &Action, run: &Run) -> Ruling {
        let attempt = run.steps.get(action.step as usize).map_or(0, |step| step.attempt);
        let mood = match action.kind {
            _ if action.operation == "pay" => (action.step + attempt) % 9,
            StepKind::Rollback => action.step % 7,
            _ => match action.blast_radius {
                _ if action.destructive => 5,
                BlastRadius::High => 6,
                _ => 0,
            },
        };
        match mood {
            5 => denied().into(),
            6 => asks().into(),
            _ => Decision::Allow.into(),
        }
    }
}

/// Lets some time pass and picks a command.
pub fn next(case: &mut Case, step: Move) -> Command {
    let row = case.row();
    let at = match step.wait % 16 {
        0..4 => row.eligible_at,
        4 => row.wake_at,
        5 => row.step_timeout_at,
        6 => Some(case.now + Millis(u64::from(step.wait))),
        7 => Some(case.now + Millis::from_mins(u64::from(step.wait) / 8)),
        _ => None,
    };
    case.now = case.now.max(at.unwrap_or(case.now));
    let mut menu = if step.flag % 8 == 7 { everything(case, step) } else { sensible(case, step) };
    let pick = usize::from(step.pick) % menu.len();
    menu.swap_remove(pick)
}

/// All commands, whether or not they make sense here.
pub fn everything(case: &Case, step: Move) -> Vec<Command> {
    let mut menu = worker(case, step);
    menu.extend(waiting(case, step));
    menu.extend(operator(case, step));
    menu.extend(assigning(case, step));
    menu.push(cancel(step.flag.is_multiple_of(2)));
    menu.extend([Command::Claim { session: session(2) }, fail_run(step), stale(case, step)]);
    menu
}

fn sensible(case: &Case, step: Move) -> Vec<Command> {
    let mut menu = match case.run.current().state() {
        StepState::Ready => {
            if case.run.seeks_worker() {
                return assigning(case, step);
            }
            let claim = case.claim_at(case.run.assigned_session().unwrap_or(session(1)), case.now);
            let mut menu = vec![claim.clone(), claim.clone(), claim.clone(), claim, Command::Tick];
            let withheld = if step.flag % 32 < 16 { denied() } else { asks() };
            menu.extend(case.withhold_step(withheld).filter(|_| step.flag % 8 == 6));
            menu
        }
        StepState::Running => {
            let mut menu = worker(case, step);
            let done = case.reports(Outcome::Completed { output: json("1") });
            menu.extend([done.clone(), done.clone(), done]);
            menu
        }
        StepState::WaitingSignal | StepState::WaitingApproval => waiting(case, step),
        // It waits for its subject.
        StepState::Pending => vec![Command::Admit, Command::Tick, fail_run(step), pause()],
        _ => operator(case, step),
    };
    if case.run.control == Control::Paused {
        menu.extend(operator(case, step));
    }
    if case.run.notes.assignment.is_some() {
        menu.extend(assigning(case, step));
    }
    match step.flag % 16 {
        0 => menu.push(pause()),
        1 => menu.push(cancel(true)),
        2 => menu.push(cancel(false)),
        3 => menu.push(fail_run(step)),
        4 => menu.push(Command::Tick),
        _ => {}
    }
    menu
}

/// What is said about the run's worker.
fn assigning(case: &Case, step: Move) -> Vec<Command> {
    let number = case.run.notes.assignment.as_ref().map_or(0, |known| known.number);
    let asked = case.run.notes.assignment.as_ref().and_then(|known| known.with.as_ref()).map(|with| with.session);
    let session =
        asked.filter(|_| !step.flag.is_multiple_of(8)).unwrap_or_else(|| session(u128::from(step.flag % 3) + 1));
    let check = PreflightCheck::ALL[usize::from(step.flag) % PreflightCheck::ALL.len()];
    vec![
        Command::OfferRun { session, worker: "w".into() },
        Command::OfferRun { session, worker: "w".into() },
        Command::AckRun { session, number },
        Command::AckRun { session, number },
        Command::RefuseRun { session, number, check, why: "no".into() },
        Command::AssignmentLost { session, why: "gone".into(), in_order: false },
        Command::AssignmentLost { session, why: "drained".into(), in_order: true },
        reassign(),
        Command::Tick,
        pause(),
    ]
}

fn fail_run(step: Move) -> Command {
    let reasons = [Reason::FailedAssignment, Reason::Backout, Reason::WritesExhausted];
    Command::FailRun { reason: reasons[usize::from(step.flag) % reasons.len()], error: error(ErrorClass::Terminal) }
}

fn worker(case: &Case, step: Move) -> Vec<Command> {
    let timeout = (!step.flag.is_multiple_of(3)).then(|| Millis(u64::from(step.flag) * 100));
    let outcomes = [
        Outcome::Completed { output: json(r#"{"n":1}"#) },
        Outcome::Waiting {
            signal: "go".into(),
            key: "k".into(),
            timeout,
            outbound: vec![Outbound { destination: "ops".into(), payload: json("{}") }],
        },
        Outcome::Retry {
            error: error(ErrorClass::ALL[usize::from(step.flag) % ErrorClass::ALL.len()]),
            backoff: timeout,
        },
        Outcome::Retry { error: error(ErrorClass::Unavailable), backoff: None },
        Outcome::Dead { error: error(ErrorClass::Unclassified) },
    ];
    let claim_next = (step.flag % 4 > 1).then(|| super::case::claimer(1));
    let mut menu: Vec<_> = outcomes
        .into_iter()
        .map(|outcome| Command::Complete(Completion { claim_next: claim_next.clone(), ..case.completion(outcome) }))
        .collect();
    let effect = EffectClass::ALL[usize::from(step.flag) % EffectClass::ALL.len()];
    menu.extend([case.release(), case.lease_expired(), case.step_timeout()]);
    menu.extend([case.intent(effect), case.intent(EffectClass::Unsafe)]);
    if case.run.current().open_intent.is_some() {
        menu.push(case.outcome(ReceiptState::Succeeded));
        menu.push(case.outcome(ReceiptState::Failed));
    }
    menu
}

fn waiting(case: &Case, step: Move) -> Vec<Command> {
    let person = format!("p{}", step.flag % 4);
    vec![case.wake("2"), case.vote(&person, true), case.vote(&person, true), case.vote(&person, false), Command::Tick]
}

fn operator(case: &Case, step: Move) -> Vec<Command> {
    let resolve = |resolution| Command::Resolve {
        position: case.run.position,
        resolution,
        output: None,
        reason: "looked".into(),
    };
    let mut menu: Vec<_> = Resolution::ALL.iter().map(|resolution| resolve(*resolution)).collect();
    let position = u32::from(step.flag) % case.run.steps.len() as u32;
    let input = step.flag.is_multiple_of(2).then(|| json(r#"{"by":"hand"}"#));
    menu.extend([Command::Resume, retry(), Command::Retry { input }, skip(), pause()]);
    menu.extend([Command::RestartFrom { position }, roll_back(), Command::Tick]);
    menu.push(cancel(step.flag % 4 > 1));
    if case.run.current().open_intent.is_some() {
        menu.push(case.outcome(ReceiptState::Succeeded));
    }
    menu
}

fn stale(case: &Case, step: Move) -> Command {
    let outcome = Outcome::Completed { output: json("1") };
    let completion = case.completion(outcome);
    Command::Complete(Completion {
        position: u32::from(step.flag) % (case.run.steps.len() as u32 + 1),
        attempt: completion.attempt.wrapping_sub(1),
        ..completion
    })
}
