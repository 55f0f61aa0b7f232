//! Cancel: decided at once, finished when the live attempt has ended.

use super::case::{Case, cancel, error, pause, roll_back};
use super::plans::{Tuned, gate, plan, signal, task, tasks, timer};
use super::wait::waiting;
use crate::decide::{Command, Completion, Outcome};
use crate::limits;
use crate::plan::retry::ErrorClass;
use crate::plan::{OnDenial, OnFailure, Plan, RollbackCondition};
use crate::rejection::Rejection;
use crate::run::change::{ClaimChange, SideWrite};
use crate::state::{ApprovalState, Control, Detail, EffectClass, Reason, ReceiptState, RunState, StepState};
use crate::time::Millis;

type Says = fn(&Case) -> Command;

fn canceled(case: &Case) {
    assert_eq!((case.state(), case.run.reason), (RunState::Canceled, Some(Reason::Requested)));
    assert_eq!(case.names().last(), Some(&"session.canceled"));
    let cancellation = case.run.notes.cancellation.as_ref().unwrap();
    assert_eq!((cancellation.by.as_deref(), cancellation.reason.as_str()), (Some("ann@example.com"), "not needed"));
    let end = case.change.end.as_deref().unwrap();
    assert_eq!(end.notes.as_ref().unwrap().cancellation, case.run.notes.cancellation);
}

#[test]
fn what_is_not_running_is_canceled_at_once() {
    let mut retrying = Case::of(tasks(2));
    retrying.claim().fails(ErrorClass::Unavailable);
    let mut paused = Case::of(tasks(2));
    paused.tell(pause());
    let mut denied = Case::of(plan(vec![gate("g", OnDenial::Pause)]));
    denied.tells(|case| case.vote("ann", false));
    let mut failed = Case::of(plan(vec![task("t").when_failed(OnFailure::Pause), task("u")]));
    failed.claim().dies();
    let mut waiting_task = Case::of(tasks(2));
    waiting_task.claim().tells(|case| waiting(case, None));
    let cases = vec![
        (Case::of(tasks(2)), StepState::Canceled),
        (retrying, StepState::Canceled),
        (paused, StepState::Canceled),
        (Case::of(plan(vec![signal("w", None), task("t")])), StepState::Canceled),
        (Case::of(plan(vec![timer("w", Millis(5)), task("t")])), StepState::Canceled),
        (Case::of(plan(vec![gate("g", OnDenial::Fail), task("t")])), StepState::Canceled),
        (denied, StepState::Canceled),
        (waiting_task, StepState::Canceled),
        (failed, StepState::Failed),
    ];
    for (mut case, state) in cases {
        case.tell(cancel(false));
        canceled(&case);
        assert_eq!(case.step(0).state(), state);
        assert!(case.run.steps[1..].iter().all(|step| step.state() == StepState::Canceled));
    }
}

#[test]
fn an_open_approval_is_canceled_and_a_closed_one_is_left() {
    let put = |case: &Case| {
        let approvals = case.change.side.iter().filter_map(|side| match side {
            SideWrite::PutApproval { approval, .. } => Some(approval.state),
            _ => None,
        });
        approvals.collect::<Vec<_>>()
    };
    let mut case = Case::of(plan(vec![gate("g", OnDenial::Fail)]));
    case.tell(cancel(false));
    assert_eq!(put(&case), [ApprovalState::Canceled]);
    let mut case = Case::of(plan(vec![gate("g", OnDenial::Pause)]));
    case.tells(|case| case.vote("ann", false)).tell(cancel(false));
    assert_eq!(put(&case), []);
}

fn canceling() -> Case {
    let mut case = Case::of(plan(vec![task("t").timeout(Millis(100)), task("u")]));
    case.claim().tell(cancel(false));
    case
}

#[test]
fn a_running_attempt_holds_the_cancel_open() {
    let mut case = canceling();
    assert_eq!((case.state(), case.run.control), (RunState::Running, Control::Canceling));
    assert_eq!(case.run.detail, Some(Detail::Canceling));
    assert_eq!(case.names(), ["session.canceled"]);
    assert!(case.change.end.is_none() && case.change.claim == ClaimChange::None);
    for command in [cancel(false), pause(), Command::Resume, roll_back()] {
        assert!(matches!(case.refuse(command), Rejection::InvalidRunState { .. }));
    }
}

/// Whatever ends the attempt ends the run as canceled; only its step shows what became of it.
#[test]
fn the_end_of_the_attempt_is_the_end_of_the_run() {
    let ends: [(&str, Says, StepState); 8] = [
        ("completed", |case| case.reports(Outcome::Completed { output: super::case::json("1") }), StepState::Succeeded),
        ("waiting", |case| waiting(case, None), StepState::Canceled),
        (
            "retry",
            |case| case.reports(Outcome::Retry { error: error(ErrorClass::Timeout), backoff: None }),
            StepState::Failed,
        ),
        ("dead", |case| case.reports(Outcome::Dead { error: error(ErrorClass::Terminal) }), StepState::Failed),
        ("released", Case::release, StepState::Canceled),
        ("lost", Case::lease_expired, StepState::Canceled),
        ("timed out", Case::step_timeout, StepState::Canceled),
        (
            "completed, asks for more",
            |case| {
                let completion = case.completion(Outcome::Completed { output: super::case::json("1") });
                Command::Complete(Completion { claim_next: Some(super::case::claimer(1)), ..completion })
            },
            StepState::Succeeded,
        ),
    ];
    for (name, end, state) in ends {
        let mut case = canceling();
        case.after(Millis(100)).tells(end);
        canceled(&case);
        assert_eq!(case.steps(), [state, StepState::Canceled], "{name}");
        assert_eq!(case.change.claim, ClaimChange::Release, "{name}");
    }
}

#[test]
fn a_lost_attempt_with_an_open_effect_leaves_it_in_doubt() {
    let mut case = Case::of(plan(vec![task("t").effect(EffectClass::Unsafe)]));
    case.claim().tells(|case| case.intent(EffectClass::Unsafe)).tell(cancel(false));
    let receipt = case.open_receipt().unwrap();
    case.tells(Case::lease_expired);
    canceled(&case);
    assert_eq!(case.receipts[&receipt.id].state, ReceiptState::InDoubt);
}

#[test]
fn the_last_step_may_complete_and_the_run_is_canceled_all_the_same() {
    let mut case = Case::of(tasks(1));
    case.claim().tell(cancel(false)).complete();
    canceled(&case);
}

#[test]
fn a_cancel_has_a_reason_of_bounded_length() {
    let mut case = Case::of(tasks(1));
    let reason = "x".repeat(limits::REASON_BYTES_MAX + 1);
    assert!(matches!(case.refuse(Command::Cancel { reason, rollback: false }), Rejection::TooLarge { .. }));
}

#[test]
fn a_cancel_with_rollback_undoes_and_then_cancels() {
    use StepState::{Canceled, Pending, Ready, RolledBack, Succeeded};
    let mut case = Case::of(plan(vec![task("a").undoable(), task("b").undoable(), task("c"), task("d")]));
    case.run_step().run_step().tell(cancel(true));
    assert_eq!(case.steps(), [Succeeded, Succeeded, Canceled, Canceled, Ready, Pending]);
    assert_eq!(case.state(), RunState::RollingBack);
    case.run_step().run_step();
    assert_eq!(case.steps(), [RolledBack, RolledBack, Canceled, Canceled, Succeeded, Succeeded]);
    canceled(&case);
}

#[test]
fn a_cancel_with_rollback_waits_for_the_attempt_and_undoes_it_too() {
    for (condition, undone) in [(RollbackCondition::Manual, true), (RollbackCondition::Failure, false)] {
        let mut case = Case::of(plan(vec![task("a").undoable_when(&[condition])]));
        case.claim().tell(cancel(true));
        assert_eq!(case.state(), RunState::Running);
        case.tells(Case::lease_expired);
        assert_eq!(case.state() == RunState::RollingBack, undone, "{condition}");
        if undone {
            case.run_step();
            assert_eq!(case.steps(), [StepState::Canceled, StepState::Succeeded], "canceled is final");
            assert_eq!(case.run.notes.compensation_log[0].outcome, StepState::RolledBack);
        }
        canceled(&case);
    }
}

#[test]
fn a_cancel_with_rollback_of_nothing_is_a_cancel() {
    let mut case = Case::of(tasks(2));
    case.run_step().tell(cancel(true));
    canceled(&case);
}

#[test]
fn a_rollback_under_way_is_not_canceled_unless_it_was_paused() {
    use StepState::{Canceled, Failed, Succeeded};
    let mut case = Case::of(plan(vec![task("a").undoable(), task("b").undoable(), task("c")]));
    case.run_step().run_step().claim().dies();
    assert_eq!(case.state(), RunState::RollingBack);
    assert!(matches!(case.refuse(cancel(false)), Rejection::InvalidRunState { .. }));
    case.tell(pause());
    let no = case.refuse(cancel(true));
    assert!(no.to_string().contains("a rollback has begun already"), "{no}");
    case.tell(cancel(false));
    canceled(&case);
    assert_eq!(case.steps(), [Succeeded, Succeeded, Failed, Canceled, Canceled]);
}

#[test]
fn a_cancel_of_a_running_rollback_step_ends_with_it() {
    let ends: [Says; 3] = [
        |case| case.reports(Outcome::Completed { output: super::case::json("1") }),
        |case| case.reports(Outcome::Dead { error: error(ErrorClass::Terminal) }),
        Case::lease_expired,
    ];
    for end in ends {
        let mut case = Case::of(plan(vec![task("a").undoable(), task("b").undoable(), task("c")]));
        case.run_step().run_step().claim().dies().claim().tell(pause()).tell(cancel(false));
        assert_eq!((case.state(), case.run.control), (RunState::RollingBack, Control::Canceling));
        case.tells(end);
        canceled(&case);
        assert_eq!(case.step(4).state(), StepState::Canceled, "the next rollback step does not start");
    }
}

#[test]
fn a_canceled_deadline_is_no_deadline() {
    let mut case = Case::of(Plan { timeout: Some(Millis(50)), ..tasks(1) });
    case.claim().tell(cancel(false));
    assert_eq!(case.row().wake_at, None);
}

#[test]
fn a_cancel_of_a_backout_is_told_from_others() {
    let backout = || Command::Cancel { reason: Reason::Backout.to_string(), rollback: false };
    let mut case = Case::of(tasks(1));
    case.tell(backout());
    assert_eq!((case.state(), case.run.reason), (RunState::Canceled, Some(Reason::Backout)));
    let mut case = Case::of(tasks(1));
    case.claim().tell(backout());
    case.tells(|case| case.reports(Outcome::Completed { output: super::case::json("1") }));
    assert_eq!((case.state(), case.run.reason), (RunState::Canceled, Some(Reason::Backout)));
}
