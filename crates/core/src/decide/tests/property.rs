//! Random plans under random commands. `PROPTEST_CASES` scales how many.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::case::{Case, Opening};
use super::moves::{self, Move, any_moves, any_plan};
use crate::decide::{Command, Queued, Resumed, resume};
use crate::plan::Plan;
use crate::rejection::Rejection;
use crate::run::Step;

/// Long enough to get through six steps with a failure, a pause and a rollback on the way.
pub const MOVES_MAX: usize = 60;

/// Plays the moves on a run of the plan until it ends. `see` is shown every command before it is asked.
pub fn play(plan: Plan, steps: &[Move], see: impl FnMut(&Case, &Command)) -> Case {
    play_from(Opening::of(plan), steps, see)
}

fn play_from(mut opening: Opening, steps: &[Move], mut see: impl FnMut(&Case, &Command)) -> Case {
    opening.answers = moves::answers(&opening.plan);
    opening.judge = Arc::new(moves::Moody);
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
    let ask = || format!("{:?}", case.decide(command.clone(), case.asked()));
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
    let checked = runner.run(&strategy, |(plan, steps)| {
        plan.validate().expect("random plans are valid plans");
        let case = play(plan, &steps, has_one_answer);
        if case.run.state.is_terminal() {
            for command in moves::everything(&case, steps[0]) {
                let answer = case.decide(command, case.asked());
                prop_assert!(matches!(answer, Err(Rejection::Terminal { .. })), "{answer:?}");
            }
        }
        Ok(())
    });
    checked.unwrap();
}

/// So do they for one that has to wait for its subject.
#[test]
fn invariants_hold_for_a_queued_run() {
    let mut runner = TestRunner::new(config());
    let strategy = (any_plan(), any_moves(MOVES_MAX));
    let checked = runner.run(&strategy, |(plan, steps)| {
        let queued = Some(Queued { cancels: false });
        play_from(Opening { queued, ..Opening::of(plan) }, &steps, has_one_answer);
        Ok(())
    });
    checked.unwrap();
}

/// A run that was made from a terminal one is a run like another.
#[test]
fn invariants_hold_after_a_resume() {
    let mut runner = TestRunner::new(config());
    let strategy = (any_plan(), any_moves(MOVES_MAX), any_moves(MOVES_MAX), proptest::option::of(0..6_u32));
    let checked = runner.run(&strategy, |(mut plan, steps, more, from)| {
        for (at, step) in plan.steps.iter_mut().enumerate() {
            step.resumable = at % 3 != 1;
        }
        let first = play(plan.clone(), &steps, |_, _| ());
        match resume(&first.run, from) {
            Ok(Resumed { inherited, .. }) => {
                let kept = inherited.clone();
                let second = play_from(Opening { inherited, run: 2, ..Opening::of(plan) }, &more, |_, _| ());
                // What was inherited is touched by nothing but a restart or a rollback.
                let restarts = |at: u32, step: &Step| second.step(at).iteration > step.iteration;
                let kept = kept.into_iter().filter(|(_, step)| step.state().is_finished());
                for (at, step) in kept.filter(|(at, step)| !restarts(*at, step)) {
                    let now = second.step(at);
                    prop_assert!(now.attempt == 0 && now.output == step.output);
                }
            }
            Err(no) => prop_assert!(
                !first.run.state.is_terminal()
                    || matches!(
                        no,
                        Rejection::ResumeFailed { .. }
                            | Rejection::UnknownStep { .. }
                            | Rejection::NothingToRetry { .. }
                    ),
                "{no}"
            ),
        }
        Ok(())
    });
    checked.unwrap();
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
