//! A new run undoes one that has ended.

use super::case::{Case, Opening, STARTER, cancel, roll_back};
use super::plans::{Tuned, plan, task};
use crate::decide::{Undoes, resume, undo};
use crate::limits;
use crate::plan::{Plan, Work};
use crate::rejection::Rejection;
use crate::run::Lineage;
use crate::state::{EffectClass, RunState, StepState};
use crate::time::Millis;

fn steps() -> Plan {
    plan(vec![
        task("a").undoable(),
        task("b"),
        task("c").undoable().effect(EffectClass::Unsafe),
        task("d").effect(EffectClass::Read),
    ])
}

fn succeeded() -> Case {
    let mut case = Case::of(steps());
    case.run_step().run_step().run_step().run_step();
    assert_eq!(case.state(), RunState::Succeeded);
    case
}

fn undoing(case: &Case, from: u32) -> Case {
    let resumed = undo(&case.run, from).unwrap();
    let undoes = Some(Undoes { from, reason: "a mistake".into() });
    let (inherited, used) = (resumed.inherited, resumed.used);
    Opening { inherited, used, undoes, run: 2, ..Opening::of((*case.run.plan).clone()) }.start()
}

fn undone(case: &Case) -> Vec<u32> {
    let position = |work: &Work| match work {
        Work::Rollback { undoes, .. } => *undoes,
        other => panic!("{other:?}"),
    };
    case.run.added.iter().map(|spec| position(&spec.work)).collect()
}

#[test]
fn the_newest_effect_is_undone_first_and_the_new_run_succeeds() {
    use StepState::{RolledBack, Succeeded};
    let old = succeeded();
    let resumed = undo(&old.run, 0).unwrap();
    let (root_run_id, resumed_from) = (old.run.id, old.run.id);
    assert_eq!(resumed.lineage, Lineage { root_run_id, resumed_from, resume_count: 1 });
    assert_eq!(resumed.starters, [STARTER]);
    let mut case = undoing(&old, 0);
    assert_eq!((case.state(), undone(&case)), (RunState::RollingBack, vec![2, 0]));
    let told = case.run.input(case.run.position).to_value().unwrap();
    assert_eq!(told["output"], serde_json::json!({ "ok": true }), "it is told what the step has answered");
    case.run_step();
    assert_eq!(case.state(), RunState::RollingBack);
    case.run_step();
    assert_eq!((case.state(), case.run.reason), (RunState::Succeeded, None));
    assert_eq!(case.names().last(), Some(&"session.completed"));
    assert_eq!(case.steps(), [RolledBack, Succeeded, RolledBack, Succeeded, Succeeded, Succeeded]);
    assert!(case.change.end.as_deref().unwrap().output.is_some(), "the last step stands, and so does its output");
}

#[test]
fn what_a_lost_attempt_may_still_send_is_waited_for_also_by_the_run_that_undoes() {
    let mut old = Case::of(plan(vec![task("a").undoable()]));
    old.claim().tells(Case::lease_expired).run_step();
    assert_eq!(old.state(), RunState::Succeeded);
    let case = undoing(&old, 0);
    assert_eq!(case.row().eligible_at, Some(old.now + limits::EFFECT_SETTLES_AFTER));
}

/// The lost attempt at undoing may still undo: what is done again must not come before that.
#[test]
fn what_was_undone_is_done_again_when_no_lost_attempt_may_undo_it_any_more() {
    for (lost, waits) in [(true, true), (false, false)] {
        let mut old = Case::of(plan(vec![task("a").undoable(), task("b").attempts(1)]));
        old.run_step().claim().dies().claim();
        if lost {
            old.tells(Case::lease_expired).after(Millis(60_000)).claim();
        }
        old.complete();
        assert_eq!(old.state(), RunState::Failed);
        let resumed = resume(&old.run, Some(0)).unwrap();
        let (inherited, lineage, used) = (resumed.inherited, Some(resumed.lineage), resumed.used);
        let again =
            Opening { inherited, lineage, used, run: 3, ..Opening::of(plan(vec![task("a").undoable(), task("b")])) };
        let again = again.start();
        let undone_at = old.run.notes.undone_at;
        assert_eq!((undone_at.is_some(), again.row().eligible_at), (waits, Some(undone_at.unwrap_or(again.now))));
    }
}

#[test]
fn what_is_undone_is_not_undone_again() {
    let old = succeeded();
    let mut part = undoing(&old, 2);
    part.run_step();
    assert_eq!(part.state(), RunState::Succeeded);
    let preview = part.run.rollback_preview(0);
    let listed: Vec<_> = preview.undone.iter().map(|step| step.step.as_str()).collect();
    let left: Vec<_> = preview.left.iter().map(|step| step.step.as_str()).collect();
    assert_eq!((listed, left), (vec!["a"], vec!["c", "b"]), "what has no inverse is named");
    assert!(preview.asks.contains("judged"), "{}", preview.asks);
    let mut rest = undoing(&part, 0);
    assert_eq!(undone(&rest), [0]);
    rest.run_step();
    assert_eq!(rest.state(), RunState::Succeeded);
    let no = undo(&rest.run, 0).unwrap_err();
    assert!(matches!(no, Rejection::NothingToUndo { .. }), "{no}");
}

#[test]
fn a_failed_undo_stops_and_the_next_one_goes_on() {
    let mut case = undoing(&succeeded(), 0);
    case.run_step().claim().dies();
    assert_eq!(case.state(), RunState::Paused);
    case.tell(cancel(false));
    assert_eq!(case.state(), RunState::Canceled);
    let no = resume(&case.run, None).unwrap_err();
    assert!(matches!(no, Rejection::NothingToRetry { .. }), "its steps are not run again: {no}");
    let mut next = undoing(&case, 0);
    assert_eq!(undone(&next), [0]);
    next.run_step();
    assert_eq!(next.state(), RunState::Succeeded);
}

#[test]
fn only_a_run_that_has_succeeded_is_undone_by_another() {
    let mut living = Case::of(steps());
    living.run_step();
    assert!(matches!(undo(&living.run, 0), Err(Rejection::Terminal { .. })));
    living.tell(cancel(false));
    assert!(matches!(undo(&living.run, 0), Err(Rejection::Terminal { state: RunState::Canceled, .. })));
    let done = succeeded();
    assert!(matches!(undo(&done.run, 9), Err(Rejection::UnknownStep { .. })));
    assert!(matches!(undo(&done.run, 3), Err(Rejection::NothingToUndo { .. })), "it only reads");
    let mut rolled_back = Case::of(steps());
    rolled_back.run_step().tell(roll_back()).run_step();
    assert!(matches!(undo(&rolled_back.run, 0), Err(Rejection::Terminal { state: RunState::Failed, .. })));
}

#[test]
fn what_was_undone_can_be_done_again() {
    let mut case = undoing(&succeeded(), 0);
    case.run_step().run_step();
    let resumed = resume(&case.run, Some(0)).unwrap();
    let mut again = Opening { inherited: resumed.inherited, run: 3, ..Opening::of(steps()) }.start();
    assert_eq!((again.run.position, again.step(0).iteration), (0, 1), "in a new iteration, with keys of its own");
    again.run_step();
    assert_eq!(again.step(0).state(), StepState::Succeeded);
}
