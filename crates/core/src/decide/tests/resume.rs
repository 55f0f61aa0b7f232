//! A new run from a terminal one.

use super::case::{Case, Opening, STARTER, cancel, json, retry};
use super::plans::{Tuned, gate, plan, task, tasks};
use crate::decide::resume;
use crate::plan::{OnDenial, OnFailure, Plan};
use crate::rejection::Rejection;
use crate::run::Lineage;
use crate::state::{EffectClass, RunState, StepState};

fn failed_at_the_third(change: impl FnOnce(&mut Plan)) -> Case {
    let mut plan = Plan { on_failure: Some(OnFailure::Fail), ..tasks(4) };
    change(&mut plan);
    let mut case = Case::of(plan);
    case.run_step().run_step().claim().dies();
    case
}

fn kept(case: &Case, from: Option<u32>) -> Vec<u32> {
    let inherited = resume(&case.run, from).unwrap().inherited.into_iter();
    inherited.filter(|(_, step)| step.state().is_finished()).map(|(at, _)| at).collect()
}

#[test]
fn a_retry_starts_at_the_first_step_that_did_not_succeed() {
    let case = failed_at_the_third(|_| ());
    let resumed = resume(&case.run, None).unwrap();
    assert_eq!(kept(&case, None), [0, 1]);
    let (root_run_id, resumed_from) = (case.run.id, case.run.id);
    assert_eq!(resumed.lineage, Lineage { root_run_id, resumed_from, resume_count: 1 });
    let mut again = Opening { inherited: resumed.inherited, run: 2, ..Opening::of(tasks(4)) }.start();
    assert_eq!((again.run.position, again.step(0).output.clone()), (2, Some(json(r#"{"ok":true}"#))));
    assert_eq!(again.run_step().run_step().state(), RunState::Succeeded);
}

#[test]
fn a_restart_names_its_step() {
    let case = failed_at_the_third(|_| ());
    for (from, expected) in [(0, &[][..]), (1, &[0]), (2, &[0, 1]), (3, &[0, 1])] {
        assert_eq!(kept(&case, Some(from)), expected, "from {from}");
    }
    for from in [4, 99] {
        assert!(matches!(resume(&case.run, Some(from)), Err(Rejection::UnknownStep { .. })));
    }
}

#[test]
fn what_is_not_resumable_is_repeated_if_that_is_safe_and_named_if_not() {
    let case = failed_at_the_third(|plan| plan.steps[0].resumable = false);
    assert_eq!(kept(&case, None), [1]);
    let case = failed_at_the_third(|plan| {
        plan.steps[0].resumable = false;
        plan.steps[0].effect = Some(EffectClass::Unsafe);
    });
    let no = resume(&case.run, None).unwrap_err();
    assert!(matches!(&no, Rejection::ResumeFailed { steps, .. } if steps == &["t0"]), "{no}");
    assert!(resume(&case.run, Some(0)).is_ok(), "from the beginning is always possible");
}

#[test]
fn a_chain_keeps_its_root_and_counts() {
    let case = failed_at_the_third(|_| ());
    let lineage = resume(&case.run, None).unwrap().lineage;
    let mut second = case.run.clone();
    second.id = crate::ids::RunId(uuid::Uuid::from_u128(2));
    std::sync::Arc::make_mut(&mut second.header).lineage = Some(lineage);
    let third = resume(&second, None).unwrap().lineage;
    assert_eq!(third, Lineage { root_run_id: case.run.id, resumed_from: second.id, resume_count: 2 });
}

#[test]
fn a_canceled_and_a_succeeded_run_can_be_made_again_and_a_live_one_cannot() {
    let mut case = Case::of(plan(vec![task("a"), task("b").effect(EffectClass::Unsafe)]));
    case.run_step();
    assert!(matches!(resume(&case.run, None), Err(Rejection::InvalidRunState { .. })));
    case.tell(cancel(false));
    assert_eq!(kept(&case, None), [0]);
    let mut done = Case::of(tasks(2));
    done.run_step().run_step();
    assert!(kept(&done, Some(0)).is_empty(), "all of it again");
    assert_eq!(done.steps(), [StepState::Succeeded; 2]);
}

/// The iterations that the steps of a new run begin with.
fn iterations(case: &Case, from: Option<u32>) -> Vec<u32> {
    let resumed = resume(&case.run, from).unwrap();
    let again = Opening { inherited: resumed.inherited, run: 2, ..Opening::of((*case.run.plan).clone()) }.start();
    again.run.steps.iter().map(|step| step.iteration).collect()
}

fn rolled_back() -> Case {
    let mut case = Case::of(plan(vec![task("a").undoable(), task("b").undoable(), task("c")]));
    case.run_step().run_step().claim().dies().run_step().run_step();
    assert_eq!(case.steps()[..3], [StepState::RolledBack, StepState::RolledBack, StepState::Failed]);
    case
}

/// The keys of effects are the same in the whole chain: what was undone must not be answered from its old receipt.
#[test]
fn what_was_undone_is_done_again_in_a_new_iteration() {
    assert_eq!(iterations(&rolled_back(), None), [1, 1, 0]);
    let mut canceled = Case::of(plan(vec![task("a").undoable(), task("b")]));
    canceled.run_step().tell(cancel(true)).run_step();
    assert_eq!(canceled.state(), RunState::Canceled);
    assert_eq!(iterations(&canceled, None), [1, 0]);
}

#[test]
fn what_failed_keeps_its_iteration_and_with_it_its_receipts() {
    let mut case = Case::of(Plan { on_failure: Some(OnFailure::Pause), ..tasks(2) });
    case.run_step().claim().dies().tell(retry()).claim().dies().tell(cancel(false));
    assert_eq!(iterations(&case, None), [0, 1]);
    assert_eq!(iterations(&case, Some(0)), [1, 1], "who goes back over a good step wants it done again");
}

/// A step that the second run never reached is still to be done anew by the third.
#[test]
fn a_new_iteration_is_not_forgotten_by_a_run_that_did_not_get_there() {
    let first = rolled_back();
    let resumed = resume(&first.run, None).unwrap();
    let plan = (*first.run.plan).clone();
    let mut second = Opening { inherited: resumed.inherited, run: 2, ..Opening::of(plan) }.start();
    second.tell(cancel(false));
    assert_eq!(iterations(&second, None), [1, 1, 0]);
}

/// An operator's retry of a rollback had a key of its own; the next rollback must not meet it.
#[test]
fn the_rollback_of_a_new_iteration_has_keys_of_its_own() {
    let mut case = Case::of(plan(vec![task("a").undoable(), task("b")]));
    case.run_step().claim().dies();
    case.claim().dies().tell(retry()).run_step();
    assert_eq!(case.state(), RunState::Failed);
    assert_eq!(iterations(&case, None), [2, 0]);
    let resumed = resume(&case.run, None).unwrap();
    let mut again = Opening { inherited: resumed.inherited, run: 2, ..Opening::of((*case.run.plan).clone()) }.start();
    again.run_step().claim().dies();
    assert_eq!(again.step(2).iteration, 2);
}

#[test]
fn nobody_who_started_a_run_of_the_chain_approves_it() {
    let plan = plan(vec![gate("g", OnDenial::Fail)]);
    let mut case = Case::of(plan.clone());
    case.tell(cancel(false));
    let mut second = case.run.clone();
    std::sync::Arc::make_mut(&mut second.header).started_by = Some("ben@example.com".into());
    second.notes.starters = resume(&case.run, None).unwrap().starters;
    let starters = resume(&second, None).unwrap().starters;
    assert_eq!(starters, [STARTER, "ben@example.com"]);
    let mut third = Opening { starters, run: 3, ..Opening::of(plan) }.start();
    for person in [STARTER, "ben@example.com"] {
        let no = third.refuse(third.vote(person, true));
        assert!(matches!(no, Rejection::VoteRefused { .. }), "{no}");
    }
    third.tells(|case| case.vote("eve@example.com", true));
    assert_eq!(third.state(), RunState::Succeeded);
}

#[test]
fn a_chain_has_an_end() {
    let case = failed_at_the_third(|_| ());
    let mut last = case.run.clone();
    let resume_count = crate::limits::RESUMES_MAX;
    let lineage = Lineage { root_run_id: case.run.id, resumed_from: case.run.id, resume_count };
    std::sync::Arc::make_mut(&mut last.header).lineage = Some(lineage);
    assert!(matches!(resume(&last, None), Err(Rejection::InvalidInput { .. })));
}

#[test]
fn a_run_that_nothing_stopped_has_nothing_to_retry() {
    let mut case = Case::of(tasks(2));
    assert_eq!(case.run_step().run_step().state(), RunState::Succeeded);
    let no = resume(&case.run, None).unwrap_err();
    assert!(matches!(no, Rejection::NothingToRetry { state: RunState::Succeeded, .. }), "{no}");
    assert!(no.to_string().contains("`restart`"), "{no}");
    assert!(resume(&case.run, Some(0)).is_ok());
}

#[test]
fn a_step_whose_rollback_is_unverified_is_kept_only_by_who_says_so() {
    let mut case = Case::of(plan(vec![task("a").undoable().verified(), task("b").attempts(1)]));
    case.run_step().claim().dies();
    case.run_step().claim().dies();
    case.tell(cancel(false));
    assert_eq!((case.state(), case.step(0).state()), (RunState::Canceled, StepState::Succeeded));
    let refused = resume(&case.run, None).unwrap_err();
    assert!(matches!(&refused, Rejection::ResumeFailed { steps, .. } if *steps == ["a"]), "{refused}");
    assert_eq!(kept(&case, Some(1)), [0], "it has not taken effect");
    assert!(kept(&case, Some(0)).is_empty(), "it has");
}
