//! Attempts that end without a word from their worker.

use super::case::{Case, cancel, error, pause};
use super::plans::{Tuned, gate, plan, signal, task, tasks};
use super::wait::waiting;
use crate::decide::{Command, CommandOrigin};
use crate::limits;
use crate::plan::retry::ErrorClass;
use crate::plan::{OnDenial, OnFailure, Plan, StepSpec};
use crate::rejection::Rejection;
use crate::run::change::{ClaimChange, SideWrite};
use crate::state::{ApprovalState, EffectClass, Reason, ReceiptState, RunState, StepState};
use crate::time::Millis;

fn deadline(steps: Vec<StepSpec>) -> Case {
    Case::of(Plan { timeout: Some(Millis::from_mins(1)), ..plan(steps) })
}

/// What a lost worker leaves depends on the effect class, and on whether an intent is open.
#[test]
fn a_lost_worker_by_effect_class() {
    for effect in EffectClass::ALL {
        for intent in [false, true] {
            let mut case = Case::of(plan(vec![task("t").effect(*effect)]));
            case.claim();
            if intent {
                case.tells(|case| case.intent(*effect));
            }
            case.tells(Case::lease_expired);
            let doubt = intent && *effect == EffectClass::Unsafe;
            let expected = if doubt { StepState::InDoubt } else { StepState::Ready };
            assert_eq!(case.step(0).state(), expected, "{effect}, intent: {intent}");
            assert_eq!(case.step(0).failures, 1, "charged");
            assert_eq!(case.change.claim, ClaimChange::Release);
            let error = case.step(0).last_error.as_ref().unwrap();
            assert_eq!((error.class, error.code.as_str()), (ErrorClass::LeaseExpired, "LEASE_EXPIRED"));
        }
    }
}

#[test]
fn a_lost_worker_spends_the_budget() {
    let mut case = Case::of(plan(vec![task("t").attempts(2)]));
    case.claim().tells(Case::lease_expired);
    assert_eq!(case.row().eligible_at, Some(case.now), "another worker may have it at once");
    case.claim().tells(Case::lease_expired);
    assert_eq!((case.step(0).state(), case.state()), (StepState::Failed, RunState::Failed));
    assert_eq!(case.change.end.as_deref().unwrap().error.as_ref().unwrap().code, "LEASE_EXPIRED");
}

#[test]
fn a_release_is_not_charged() {
    let mut case = Case::of(plan(vec![task("t").attempts(1)]));
    for attempt in 1..=5 {
        case.claim().tells(Case::release);
        assert_eq!((case.step(0).failures, case.step(0).attempt), (0, attempt));
        assert_eq!(case.step(0).state(), StepState::Ready);
    }
    case.run_step();
    assert_eq!(case.state(), RunState::Succeeded);
}

/// A worker that gives a step back has ended it; one that leaves it out of its heartbeats may be at it until its lease is over.
#[test]
fn what_is_left_out_of_heartbeats_is_undone_when_nothing_may_come_of_it() {
    for effect in [EffectClass::Keyed, EffectClass::Idempotent] {
        let mut case = Case::of(plan(vec![task("t").effect(effect)]));
        case.claim().tells(Case::release);
        assert_eq!(case.run.notes.settled_at, Some(case.now + limits::EFFECT_SETTLES_AFTER));
        case.claim().tells(Case::left_out);
        assert_eq!((case.step(0).state(), case.step(0).failures), (StepState::Ready, 0));
        let settled_at = case.now + limits::SESSION_LEASE + limits::EFFECT_SETTLES_AFTER;
        assert_eq!(case.run.notes.settled_at, Some(settled_at));
    }
}

#[test]
fn a_release_with_an_open_unsafe_effect_is_a_doubt() {
    let mut case = Case::of(plan(vec![task("t").effect(EffectClass::Unsafe)]));
    case.claim();
    case.tells(|case| case.intent(EffectClass::Unsafe)).tells(Case::release);
    assert_eq!((case.step(0).state(), case.state()), (StepState::InDoubt, RunState::Paused));
}

#[test]
fn a_signal_is_not_lost_with_the_worker() {
    for ends in [Case::lease_expired, Case::release, Case::step_timeout] {
        let mut case = Case::of(plan(vec![task("t").timeout(Millis(50))]));
        case.claim().tells(|case| waiting(case, None));
        case.tells(|case| case.wake(r#"{"paid":true}"#)).claim();
        case.after(Millis(50)).tells(ends).claim();
        let wake = case.row().step_data.unwrap().wake.unwrap();
        assert_eq!(wake.payload, Some(super::case::json(r#"{"paid":true}"#)));
    }
}

#[test]
fn a_step_timeout_is_a_failure_like_another() {
    let mut case = Case::of(plan(vec![task("t").timeout(Millis(100)).attempts(2)]));
    case.claim();
    assert!(matches!(case.refuse(case.step_timeout()), Rejection::InvalidTransition { .. }), "too early");
    case.after(Millis(100)).tells(Case::step_timeout);
    assert_eq!((case.step(0).state(), case.step(0).failures), (StepState::Ready, 1));
    case.claim().after(Millis(100)).tells(Case::step_timeout);
    assert_eq!((case.step(0).state(), case.state()), (StepState::Failed, RunState::Failed));
    assert_eq!(case.step(0).last_error.as_ref().unwrap().code, "STEP_TIMEOUT");
}

#[test]
fn a_step_without_a_timeout_never_times_out() {
    let mut case = Case::of(tasks(1));
    case.claim().after(Millis::from_hours(9_000));
    assert!(matches!(case.refuse(case.step_timeout()), Rejection::InvalidTransition { .. }));
}

#[test]
fn a_timed_out_step_with_an_open_unsafe_effect_is_a_doubt() {
    let mut case = Case::of(plan(vec![task("t").effect(EffectClass::Unsafe).timeout(Millis(100))]));
    case.claim();
    case.tells(|case| case.intent(EffectClass::Unsafe)).after(Millis(100)).tells(Case::step_timeout);
    assert_eq!(case.step(0).state(), StepState::InDoubt);
    assert!(matches!(case.change.side.as_slice(),
        [SideWrite::PutReceipt(receipt)] if receipt.state == ReceiptState::InDoubt));
}

#[test]
fn the_deadline_ends_the_run_wherever_it_stands() {
    let ready = deadline(vec![task("t")]);
    let mut running = deadline(vec![task("t")]);
    running.claim();
    let mut retrying = deadline(vec![task("t")]);
    retrying.claim().fails(ErrorClass::Unavailable);
    let waiting = deadline(vec![signal("w", None)]);
    let asking = deadline(vec![gate("g", OnDenial::Fail)]);
    let mut paused = deadline(vec![task("t")]);
    paused.tell(pause());
    let mut running_paused = deadline(vec![task("t")]);
    running_paused.claim().tell(pause());
    let mut failed = deadline(vec![task("t").when_failed(OnFailure::Pause)]);
    failed.claim().dies();
    let cases = vec![ready, running, retrying, waiting, asking, paused, running_paused, failed];
    for (at, mut case) in cases.into_iter().enumerate() {
        let before = case.steps();
        assert!(case.refuse(Command::Tick).code() == "RUN_INVALID_TRANSITION", "{at}: too early");
        case.until_wake().tell(Command::Tick);
        assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::Deadline)), "{at}: {before:?}");
        assert_eq!(case.step(0).state(), StepState::Failed);
    }
}

#[test]
fn the_deadline_does_not_stop_at_a_pause() {
    let mut case = deadline(vec![task("t").when_failed(OnFailure::Pause)]);
    case.claim().until_wake().tell(Command::Tick);
    assert_eq!(case.state(), RunState::Failed, "no directive could help it");
}

#[test]
fn the_deadline_cancels_what_was_asked() {
    let mut case = deadline(vec![gate("g", OnDenial::Fail)]);
    case.until_wake().tell(Command::Tick);
    let closed = case.change.side.iter().any(
        |side| matches!(side, SideWrite::PutApproval { approval, .. } if approval.state == ApprovalState::Canceled),
    );
    assert!(closed, "{:?}", case.change.side);
    let mut case = deadline(vec![signal("w", None)]);
    case.until_wake().tell(Command::Tick);
    assert!(case.change.side.iter().any(|side| matches!(side, SideWrite::CloseWait { position: 0 })));
}

#[test]
fn the_deadline_does_not_end_a_doubt_a_cancel_or_a_rollback() {
    let mut doubt = deadline(vec![task("t").effect(EffectClass::Unsafe)]);
    doubt.claim();
    doubt.tells(|case| case.intent(EffectClass::Unsafe)).tells(Case::lease_expired);
    let mut canceling = deadline(vec![task("t")]);
    canceling.claim().tell(cancel(false));
    let mut rolling_back = deadline(vec![task("t").undoable(), task("u")]);
    rolling_back.run_step().claim().dies();
    for mut case in [doubt, canceling, rolling_back] {
        assert_eq!(case.row().wake_at, None, "{:?}", case.run.state);
        case.after(Millis::from_hours(1));
        case.refuse(Command::Tick);
    }
}

#[test]
fn a_deadline_with_an_open_unsafe_effect_is_a_doubt_first() {
    let mut case = deadline(vec![task("t").effect(EffectClass::Unsafe)]);
    case.claim();
    case.tells(|case| case.intent(EffectClass::Unsafe)).until_wake().tell(Command::Tick);
    assert_eq!((case.state(), case.run.reason), (RunState::Paused, Some(Reason::InDoubt)));
}

/// A rollback step is ready only after the live attempt has ended, and all has arrived that it may have sent.
#[test]
fn a_rollback_waits_for_a_worker_that_may_not_have_heard() {
    let undoable = || vec![task("t").undoable().timeout(Millis(100)).attempts(1)];
    let plan = || Plan { timeout: Some(Millis::from_mins(1)), ..plan(undoable()) };
    let (lease, settles) = (limits::SESSION_LEASE, limits::EFFECT_SETTLES_AFTER);

    let mut by_timeout = Case::of(plan());
    by_timeout.claim().after(Millis(100)).tells(Case::step_timeout);
    let mut by_deadline = Case::of(plan());
    by_deadline.claim().until_wake().tell(Command::Tick);
    let mut by_engine = Case::of(plan());
    by_engine.claim();
    let command = Command::FailRun { reason: Reason::Backout, error: error(ErrorClass::Terminal) };
    by_engine.ask_by(command, CommandOrigin::system(by_engine.now)).unwrap();
    for case in [by_timeout, by_deadline, by_engine] {
        assert_eq!(case.state(), RunState::RollingBack);
        assert_eq!(case.row().eligible_at, Some(case.now + lease + settles));
    }

    let mut lost = Case::of(plan());
    lost.claim();
    lost.ask_by(lost.lease_expired(), CommandOrigin::timeout(lost.now)).unwrap();
    assert_eq!(lost.state(), RunState::RollingBack);
    assert_eq!(lost.row().eligible_at, Some(lost.now + settles), "its lease is over");

    let mut reported = Case::of(plan());
    reported.claim().dies();
    assert_eq!(reported.state(), RunState::RollingBack);
    assert_eq!(reported.row().eligible_at, Some(reported.now), "its worker has said that it has ended");
}

/// A read that arrives late does no harm; its worker may be at it for as long as its lease.
#[test]
fn a_rollback_does_not_wait_for_what_a_lost_read_has_sent() {
    let started = || {
        let read = task("r").effect(EffectClass::Read).timeout(Millis(100)).attempts(1);
        let mut case = Case::of(plan(vec![task("t").undoable(), read]));
        case.run_step().claim();
        case
    };
    let mut lost = started();
    lost.tells(Case::lease_expired);
    assert_eq!((lost.state(), lost.row().eligible_at), (RunState::RollingBack, Some(lost.now)));
    let mut timed_out = started();
    timed_out.after(Millis(100)).tells(Case::step_timeout);
    assert_eq!(timed_out.row().eligible_at, Some(timed_out.now + limits::SESSION_LEASE));
}

#[test]
fn the_engine_can_fail_a_run() {
    let fail = || Command::FailRun { reason: Reason::FailedAssignment, error: error(ErrorClass::Terminal) };
    let mut ready = Case::of(tasks(2));
    ready.tell(fail());
    assert_eq!(ready.steps(), [StepState::Failed, StepState::Pending]);
    let mut paused = Case::of(tasks(1));
    paused.tell(pause()).tell(fail());
    for case in [&ready, &paused] {
        assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::FailedAssignment)));
    }
    let mut pausing = Case::of(plan(vec![task("t").when_failed(OnFailure::Pause)]));
    assert_eq!(pausing.tell(fail()).state(), RunState::Paused, "an operator can help against this");
    let mut canceling = Case::of(tasks(1));
    canceling.claim().tell(cancel(false));
    assert!(matches!(canceling.refuse(fail()), Rejection::InvalidRunState { .. }));
}

/// The worker's own word comes too late, whatever the cause was called.
#[test]
fn a_run_that_was_failed_from_outside_has_not_recorded_the_workers_report() {
    let mut case = Case::of(plan(vec![task("t")]));
    case.claim().tell(Command::FailRun { reason: Reason::Backout, error: error(ErrorClass::Terminal) });
    assert!(!crate::decide::is_recorded(&case.run, 0, 1));
    let told = case.step(0).last_error.as_ref().unwrap();
    assert_eq!((told.code.as_str(), told.message.as_str()), ("RUN_BACKOUT", "E: it went wrong"));
}

/// The cancel was acknowledged, so the run ends as canceled, even if its rollback gets stuck.
#[test]
fn a_run_that_is_being_canceled_cannot_be_failed() {
    let mut case = Case::of(plan(vec![task("t").undoable(), task("u")]));
    case.run_step().tell(cancel(true)).claim().dies();
    assert_eq!(case.state(), RunState::Paused);
    let no = case.refuse(Command::FailRun { reason: Reason::Backout, error: error(ErrorClass::Terminal) });
    assert!(matches!(no, Rejection::InvalidRunState { .. }), "{no}");
    case.tell(cancel(false));
    assert_eq!(case.state(), RunState::Canceled);
}

/// A lost attempt has reported nothing, whatever fails the run afterwards: its report is refused and not taken for recorded.
#[test]
fn a_run_that_fails_after_a_lost_attempt_has_not_heard_its_report() {
    let mut case = Case::of(tasks(2));
    case.claim().tells(Case::lease_expired);
    assert_eq!(case.step(0).state(), StepState::Ready);
    case.tell(Command::FailRun { reason: Reason::Backout, error: error(ErrorClass::Terminal) });
    assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::Backout)));
    assert!(!crate::decide::is_recorded(&case.run, 0, 1), "{:?}", case.step(0).last_error);
}
