//! Which arrows of the step's machine `decide` takes, and which it never takes.

use std::cell::RefCell;
use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::case::{Case, cancel, error, pause, retry, skip_by};
use super::moves::{any_moves, any_plan};
use super::plans::{Tuned, gate, plan, task, transform};
use super::property::{MOVES_MAX, play};
use crate::decide::{Command, Outcome};
use crate::machine::step::{StepEvent, next};
use crate::plan::retry::ErrorClass;
use crate::plan::{OnDenial, OnFailure, Plan, StepSpec, Work};
use crate::state::{Reason, StepKind, StepState};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrow {
    pub position: u32,
    pub kind: StepKind,
    pub from: StepState,
    pub event: StepEvent,
    pub to: StepState,
}

thread_local! {
    static WALKED: RefCell<Vec<Arrow>> = const { RefCell::new(Vec::new()) };
}

/// Called by the draft for every arrow that it takes.
pub fn walk(arrow: Arrow) {
    WALKED.with_borrow_mut(|walked| walked.push(arrow));
}

/// The arrows taken on this thread since the last call.
pub fn take() -> Vec<Arrow> {
    WALKED.take()
}

/// The kinds that a plan of this version may hold, and the one that the engine appends.
const KINDS: [StepKind; 5] =
    [StepKind::Task, StepKind::Transform, StepKind::Approval, StepKind::Wait, StepKind::Rollback];

/// The arrows of a kind that start where a step of that kind can be.
fn reachable(kind: StepKind) -> Vec<(StepState, StepEvent)> {
    let mut seen = vec![StepState::Pending];
    let mut arrows = Vec::new();
    let mut at = 0;
    while let Some(from) = seen.get(at).copied() {
        for event in StepEvent::ALL {
            if let Some(to) = next(from, kind, *event) {
                arrows.push((from, *event));
                if !seen.contains(&to) {
                    seen.push(to);
                }
            }
        }
        at += 1;
    }
    arrows
}

/// Arrows that exist and that no command takes yet, or never will.
const UNWALKED: &[(&str, &[&str])] = &[
    (
        "a doubt that is rolled back is canceled first, so that its receipt stays open",
        &["task: in_doubt --RollbackFinished-->", "transform: in_doubt --RollbackFinished-->"],
    ),
    (
        "a gate or a wait that failed was never claimed, so there is nothing to undo",
        &["approval: failed --RollbackFinished-->", "wait: failed --RollbackFinished-->"],
    ),
    (
        "rollback steps have no condition, and the run's deadline does not touch them",
        &["rollback: pending --Activated(condition_false)-->", "rollback: pending --RunFailed-->"],
    ),
    (
        "what is tried again by itself runs under the leave that it had",
        &["rollback: running --FailedRetryable(ask)-->", "task: running --FailedRetryable(ask)-->"],
    ),
    ("a transform waits for no signal", &["transform: waiting_signal --Rewound-->"]),
    ("the judge of these plays asks by gates that pause", &["rollback: waiting_approval --RejectedOrExpired-->"]),
];

fn two_keys(rule: OnDenial) -> StepSpec {
    let mut step = gate("ok", rule);
    let Work::Approval(gate) = &mut step.work else { unreachable!() };
    gate.quorum = 2;
    step
}

/// Runs that wait for leave to run a guarded step again: with the rule to pause, and with the rule to fail.
fn asked_again() -> Vec<Case> {
    let mut cases = Vec::new();
    for rule in OnDenial::ALL {
        for guarded in [task("t"), transform("t")] {
            let mut case = Case::of(plan(vec![two_keys(*rule), guarded]));
            case.tells(|case| case.vote("ann", true)).tells(|case| case.vote("bob", true));
            case.claim().tell(pause()).dies().tell(retry());
            cases.push(case);
        }
    }
    cases
}

/// Enough of the same random plays that only arrows are left that no play takes. A new arrow, or one that is no longer
/// taken, shows up here.
const PLAYS: usize = 4_000;

#[test]
fn arrows_that_nobody_walks() {
    let mut walked = BTreeSet::new();
    let mut note = |case: &Case| walked.extend(case.walked.iter().map(|arrow| (arrow.kind, arrow.from, arrow.event)));
    let mut runner = TestRunner::deterministic();
    let strategy = (any_plan(), any_moves(MOVES_MAX));
    for _ in 0..PLAYS {
        let (plan, steps) = strategy.new_tree(&mut runner).unwrap().current();
        let end = play(plan, &steps, |case, _| note(case));
        note(&end);
    }
    // Too rare for chance: a rollback that is paused, canceled and lost while it runs.
    let mut case = Case::of(plan(vec![task("a").undoable(), task("b")]));
    case.run_step().claim().dies().claim().tell(pause()).tell(cancel(false)).tells(Case::lease_expired);
    note(&case);

    // So is one that waits for a signal, and is canceled there.
    let mut case = Case::of(plan(vec![task("a").undoable(), task("b")]));
    let waits = Outcome::Waiting { signal: "go".into(), key: "k".into(), timeout: None, outbound: Vec::new() };
    case.run_step().claim().dies().claim().tells(|case| case.reports(waits)).tell(pause()).tell(cancel(false));
    note(&case);

    // So are guarded steps that fail, are asked for again, and what then becomes of them.
    for end in [
        vec![skip_by("ann"), skip_by("bob")],
        vec![skip_by("ann"), retry()],
        vec![skip_by("ann"), Command::RestartFrom { position: 1 }],
        vec![cancel(false)],
        vec![Command::FailRun { reason: Reason::Backout, error: error(ErrorClass::Terminal) }],
    ] {
        for mut case in asked_again() {
            note(&case);
            case.tells(|case| case.vote("eve", false));
            note(&case);
            for command in end.iter().filter(|_| !case.state().is_terminal()).cloned().collect::<Vec<_>>() {
                case.tell(command);
                note(&case);
            }
        }
    }
    for mut case in asked_again() {
        case.tells(|case| case.vote("ann", true)).tells(|case| case.vote("bob", true));
        note(&case);
    }
    for rule in OnDenial::ALL {
        let mut case = Case::of(Plan { on_failure: Some(OnFailure::Pause), ..plan(vec![two_keys(*rule), task("t")]) });
        case.tells(|case| case.vote("eve", false)).tell(skip_by("ann"));
        note(&case);
    }

    let mut unwalked = BTreeSet::new();
    for kind in KINDS {
        let arrows = reachable(kind).into_iter().filter(|(from, event)| !walked.contains(&(kind, *from, *event)));
        unwalked.extend(arrows.map(|(from, event)| format!("{kind}: {from} --{event}-->")));
    }
    let expected: BTreeSet<_> =
        UNWALKED.iter().flat_map(|(_, arrows)| arrows.iter().map(ToString::to_string)).collect();
    let news: Vec<_> = unwalked.difference(&expected).collect();
    let olds: Vec<_> = expected.difference(&unwalked).collect();
    assert!(news.is_empty() && olds.is_empty(), "never taken, and not listed: {news:#?}; listed, but taken: {olds:#?}");
}
