//! A new run from a terminal one.

use super::case::{Case, Opening, cancel, json};
use super::plans::{Tuned, plan, task, tasks};
use crate::decide::resume;
use crate::plan::{OnFailure, Plan};
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
    resume(&case.run, from).unwrap().inherited.into_iter().map(|(at, _)| at).collect()
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
    assert!(kept(&done, None).is_empty(), "all of it again");
    assert_eq!(done.steps(), [StepState::Succeeded; 2]);
}
