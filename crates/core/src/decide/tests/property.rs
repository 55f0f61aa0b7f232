//! Random plans under random commands. `PROPTEST_CASES` scales how many.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::arrows;
use super::case::{Case, Opening};
use super::moves::{self, Move, any_moves, any_plan};
use crate::decide::decide;
use crate::plan::Plan;
use crate::rejection::Rejection;

/// Long enough to get through six steps with a failure, a pause and a rollback on the way.
pub const MOVES_MAX: usize = 60;

pub fn play(plan: Plan, steps: &[Move], mut each: impl FnMut(&Case)) -> Case {
    let mut opening = Opening::of(plan);
    opening.bindings = moves::bindings(&opening.plan);
    let mut case = opening.start();
    each(&case);
    for step in steps {
        if case.run.state.is_terminal() {
            break;
        }
        let command = moves::next(&mut case, *step);
        let twice = [0, 1].map(|_| decide(&case.run, command.clone(), &case.bindings, case.asked()));
        let [first, second] = twice.map(|answer| format!("{answer:?}"));
        assert_eq!(first, second, "the same question has one answer");
        arrows::take();
        if case.ask(command).is_ok() {
            each(&case);
        }
    }
    case
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
            let mut case = play(plan, &steps, |_| ());
            if case.run.state.is_terminal() {
                for command in moves::everything(&mut case, steps[0]) {
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
