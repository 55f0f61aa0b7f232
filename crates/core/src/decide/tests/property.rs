//! Random plans under random commands. `PROPTEST_CASES` scales how many.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::case::{Case, Opening};
use super::moves::{self, Move, any_moves, any_plan};
use crate::decide::{Command, decide};
use crate::plan::Plan;
use crate::rejection::Rejection;

/// Long enough to get through six steps with a failure, a pause and a rollback on the way.
pub const MOVES_MAX: usize = 60;

/// Plays the moves until the run ends. `see` is shown every command before it is asked.
pub fn play(plan: Plan, steps: &[Move], mut see: impl FnMut(&Case, &Command)) -> Case {
    let mut opening = Opening::of(plan);
    opening.bindings = moves::bindings(&opening.plan);
    let mut case = opening.start();
    for step in steps {
        if case.run.state.is_terminal() {
            break;
        }
        let command = moves::next(&mut case, *step);
        see(&case, &command);
        // A refusal is an answer like another; what was accepted has been checked.
        let _ = case.ask(command);
    }
    case
}

fn has_one_answer(case: &Case, command: &Command) {
    let ask = || format!("{:?}", decide(&case.run, command.clone(), &case.bindings, case.asked()));
    assert_eq!(ask(), ask(), "the same question has one answer");
}

fn config() -> Config {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    Config { cases: cases.unwrap_or(1_500), failure_persistence: None, ..Config::default() }
}

/// The invariants themselves are checked by [`Case`] after every accepted command.
#[test]
fn invariants_hold_whatever_happens() {
    let mut runner = TestRunner::new(config());
    let strategy = (any_plan(), any_moves(MOVES_MAX));
    runner
        .run(&strategy, |(plan, steps)| {
            plan.validate().expect("random plans are valid plans");
            let case = play(plan, &steps, has_one_answer);
            if case.run.state.is_terminal() {
                for command in moves::everything(&case, steps[0]) {
                    let answer = decide(&case.run, command, &case.bindings, case.asked());
                    prop_assert!(matches!(answer, Err(Rejection::Terminal { .. })), "{answer:?}");
                }
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_plan_is_what_its_text_says() {
    let mut runner = TestRunner::new(config());
    runner
        .run(&any_plan(), |plan| {
            let (hash, text) = plan.encode();
            let back: Plan = text.decode().unwrap();
            prop_assert_eq!(back.encode().0, hash);
            prop_assert_eq!(back, plan);
            Ok(())
        })
        .unwrap();
}
