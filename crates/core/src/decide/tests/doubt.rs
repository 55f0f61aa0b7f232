//! Doubt: an effect was sent and it is not known whether it happened.

use super::case::{Case, cancel, error, json, pause, retry, roll_back, skip};
use super::plans::{Tuned, plan, task};
use super::wait::waiting;
use crate::decide::{Command, Outcome, is_recorded};
use crate::json::Json;
use crate::limits;
use crate::machine::step::Resolution;
use crate::plan::retry::{ErrorClass, StepError};
use crate::plan::{OnFailure, Plan};
use crate::rejection::Rejection;
use crate::run::Phase;
use crate::run::change::SideWrite;
use crate::state::{EffectClass, Reason, ReceiptState, RunState, StepState};
use crate::time::Millis;

fn unsafe_step() -> crate::plan::StepSpec {
    task("pay").effect(EffectClass::Unsafe).attempts(3)
}

fn doubtful() -> Case {
    let mut case = Case::of(plan(vec![unsafe_step(), task("ship")]));
    case.claim().tells(|case| case.intent(EffectClass::Unsafe)).tells(Case::lease_expired);
    case
}

/// A doubt that can be resolved either way: what was on its way has arrived.
fn settled() -> Case {
    let mut case = doubtful();
    case.after(limits::EFFECT_SETTLES_AFTER);
    case
}

fn resolve(resolution: Resolution, output: Option<Json>) -> Command {
    Command::Resolve { position: 0, resolution, output, reason: "looked it up".into() }
}

#[test]
fn a_doubt_stops_the_run_and_every_way_of_going_on_blindly() {
    let mut case = doubtful();
    assert_eq!((case.state(), case.run.reason), (RunState::Paused, Some(Reason::InDoubt)));
    assert_eq!((case.row().eligible_at, case.row().wake_at), (None, None));
    assert!(case.names().contains(&"execution.step.in_doubt"));
    assert!(matches!(case.change.side.as_slice(),
        [SideWrite::PutReceipt(receipt)] if receipt.state == ReceiptState::InDoubt));
    for command in
        [Command::Claim { session: super::case::session(1) }, Command::Resume, retry(), skip(), Command::Tick]
    {
        case.refuse(command);
    }
    for is_paused in [false, true] {
        if is_paused {
            case.tell(pause());
        }
        let no = case.refuse(Command::Resume);
        assert_eq!(no.code(), "RUN_DIRECTIVE_DUE");
        for no in [no, case.refuse(retry()), case.refuse(skip()), case.refuse(Command::RestartFrom { position: 0 })] {
            assert!(no.to_string().contains("is in doubt") && no.to_string().contains("run resolve"), "{no}");
        }
    }
}

/// The rollback goes on, and the doubt that it has ended is no step of its own.
#[test]
fn a_resolution_of_a_step_that_is_being_undone_is_refused_for_that_step() {
    let mut case = Case::of(plan(vec![task("a").undoable(), unsafe_step().undoable()]));
    case.run_step().claim().tells(|case| case.intent(EffectClass::Unsafe)).tells(Case::lease_expired).tell(roll_back());
    let of_step =
        Command::Resolve { position: 1, resolution: Resolution::Happened, output: None, reason: "looked it up".into() };
    let no = case.refuse(of_step);
    assert!(matches!(&no, Rejection::InvalidTransition { from: StepState::Canceled, .. }), "{no}");
}

/// What undoes it looks at the receipt: the outcome is the best evidence there is, also while the rollback waits for it.
#[test]
fn an_outcome_is_kept_of_an_effect_that_is_about_to_be_undone() {
    for state in [ReceiptState::Succeeded, ReceiptState::Failed] {
        let mut case = Case::of(plan(vec![task("a").undoable(), unsafe_step().undoable()]));
        case.run_step().claim().tells(|case| case.intent(EffectClass::Unsafe)).tells(Case::lease_expired);
        let Command::RecordOutcome { position, attempt, receipt } = case.outcome(state) else { unreachable!() };
        case.tell(roll_back());
        let before = (case.state(), case.step(1).clone());
        let other = Command::RecordOutcome { position, attempt: attempt + 1, receipt: receipt.clone() };
        assert!(matches!(case.refuse(other), Rejection::StaleAttempt { .. }));
        case.tell(Command::RecordOutcome { position, attempt, receipt });
        let [SideWrite::PutReceipt(kept)] = case.change.side.as_slice() else { panic!("{:?}", case.change.side) };
        assert_eq!((kept.state, kept.late), (state, true));
        assert_eq!((case.state(), case.step(1).clone()), before, "what was ordered goes on");
    }
}

#[test]
fn it_happened() {
    let mut case = doubtful();
    case.tell(resolve(Resolution::Happened, Some(json("42"))));
    assert_eq!(case.steps(), [StepState::Succeeded, StepState::Ready]);
    assert_eq!((case.state(), case.run.reason), (RunState::Running, None));
    assert_eq!(case.step(0).output, Some(json("42")));
    let told = case.step(0).last_error.as_ref().map(|error| error.code.as_str());
    assert_eq!(told, Some("RESOLVED_HAPPENED"), "its worker never said so");
    let [SideWrite::PutReceipt(receipt)] = case.change.side.as_slice() else { panic!() };
    assert_eq!((receipt.state, receipt.response.clone()), (ReceiptState::Succeeded, Some(json("42"))));
}

#[test]
fn it_did_not_happen() {
    let mut case = settled();
    case.tell(resolve(Resolution::DidNotHappen, None));
    assert_eq!(case.step(0).state(), StepState::Ready);
    assert_eq!((case.step(0).failures, case.step(0).open_intent), (1, None));
    let [SideWrite::PutReceipt(receipt)] = case.change.side.as_slice() else { panic!() };
    assert_eq!(receipt.state, ReceiptState::Failed);
    case.claim();
    assert_eq!(case.step(0).attempt, 2);
}

#[test]
fn it_failed() {
    let mut case = settled();
    case.tell(resolve(Resolution::Failed, None));
    assert_eq!((case.step(0).state(), case.state()), (StepState::Failed, RunState::Failed));
    assert_eq!(case.run.reason, Some(Reason::StepFailed));
    assert_eq!(case.step(0).last_error.as_ref().unwrap().message, "looked it up");
}

#[test]
fn a_failed_resolution_follows_the_rule() {
    let mut case = Case::of(plan(vec![unsafe_step().when_failed(OnFailure::Pause)]));
    case.claim().tells(|case| case.intent(EffectClass::Unsafe)).tells(Case::lease_expired);
    case.after(limits::EFFECT_SETTLES_AFTER).tell(resolve(Resolution::Failed, None));
    assert_eq!((case.state(), case.step(0).state()), (RunState::Paused, StepState::Failed));
}

#[test]
fn a_resolution_needs_a_doubt_and_has_a_limit() {
    for resolution in Resolution::ALL {
        let mut case = Case::of(plan(vec![unsafe_step()]));
        case.claim();
        let no = case.refuse(resolve(*resolution, None));
        assert!(matches!(no, Rejection::InvalidTransition { .. }), "{no}");
    }
    let mut case = doubtful();
    let reason = "x".repeat(limits::REASON_BYTES_MAX + 1);
    let (position, resolution, output) = (0, Resolution::Happened, None);
    let no = case.refuse(Command::Resolve { position, resolution, output, reason });
    assert!(matches!(no, Rejection::TooLarge { .. }), "{no}");
}

/// A failing report that leaves an unsafe effect open is the same doubt.
#[test]
fn a_failure_with_an_open_effect_is_a_doubt() {
    for outcome in [
        Outcome::Retry { error: error(ErrorClass::Unavailable), backoff: None },
        Outcome::Dead { error: error(ErrorClass::Terminal) },
    ] {
        let mut case = Case::of(plan(vec![unsafe_step()]));
        case.claim().tells(|case| case.intent(EffectClass::Unsafe)).tells(|case| case.reports(outcome));
        assert_eq!((case.step(0).state(), case.step(0).failures), (StepState::InDoubt, 1));
        assert!(!is_recorded(&case.run, 0, 1));
    }
}

/// The attempt that was given up speaks after all: the best evidence there is.
#[test]
fn a_late_outcome_settles_the_receipt_and_the_step_runs_again() {
    for state in [ReceiptState::Succeeded, ReceiptState::Failed] {
        let mut case = doubtful();
        case.tells(|case| case.outcome(state));
        let [SideWrite::PutReceipt(receipt)] = case.change.side.as_slice() else { panic!() };
        assert_eq!((receipt.state, receipt.late), (state, true));
        assert_eq!((case.step(0).state(), case.state()), (StepState::Ready, RunState::Running));
        assert_eq!(case.run.reason, None);
        assert_eq!(case.step(0).iteration, 0, "the same scope, so the key answers with this receipt");
        case.run_step();
    }
}

#[test]
fn a_late_outcome_of_another_attempt_or_effect_is_stale() {
    let mut case = doubtful();
    let Command::RecordOutcome { position, attempt, receipt } = case.outcome(ReceiptState::Succeeded) else {
        unreachable!()
    };
    let mut other = receipt.clone();
    other.id = crate::ids::ReceiptId(case.fresh_id());
    for command in [
        Command::RecordOutcome { position, attempt: attempt + 1, receipt: receipt.clone() },
        Command::RecordOutcome { position, attempt, receipt: other },
        Command::RecordOutcome { position: 1, attempt, receipt: receipt.clone() },
        Command::RecordOutcome { position: 9, attempt, receipt },
    ] {
        let no = case.refuse(command);
        assert!(matches!(no, Rejection::StaleAttempt { .. }), "{no}");
    }
}

#[test]
fn a_signal_is_not_lost_in_the_doubt() {
    let settle: [fn(&Case) -> Command; 2] =
        [|_| resolve(Resolution::DidNotHappen, None), |case| case.outcome(ReceiptState::Failed)];
    for settles in settle {
        let mut case = Case::of(plan(vec![unsafe_step()]));
        case.claim().tells(|case| waiting(case, None)).tells(|case| case.wake(r#"{"paid":true}"#));
        case.claim().tells(|case| case.intent(EffectClass::Unsafe)).tells(Case::lease_expired);
        case.after(limits::EFFECT_SETTLES_AFTER).tells(settles).claim();
        let Phase::Running { wake: Some(wake), .. } = &case.step(0).phase else { panic!("{:?}", case.step(0)) };
        assert_eq!(wake.payload, Some(json(r#"{"paid":true}"#)));
    }
}

#[test]
fn an_operator_who_paused_the_doubt_resumes_after_the_resolution() {
    let mut case = settled();
    case.tell(pause()).tell(resolve(Resolution::DidNotHappen, None));
    assert_eq!((case.state(), case.run.reason), (RunState::Paused, None));
    case.tell(Command::Resume).claim();
}

#[test]
fn a_doubt_can_be_canceled_and_the_receipt_stays_open() {
    let mut case = doubtful();
    let receipt = case.open_receipt().unwrap();
    case.tell(cancel(false));
    assert_eq!((case.state(), case.step(0).state()), (RunState::Canceled, StepState::Canceled));
    assert_eq!(case.receipts[&receipt.id].state, ReceiptState::InDoubt);
}

#[test]
fn a_doubt_can_be_rolled_back() {
    let mut case = Case::of(plan(vec![unsafe_step().undoable()]));
    case.claim().tells(|case| case.intent(EffectClass::Unsafe)).tells(Case::lease_expired);
    case.tell(roll_back());
    assert_eq!(case.state(), RunState::RollingBack);
    assert_eq!(case.steps(), [StepState::Canceled, StepState::Ready]);
    case.after(limits::EFFECT_SETTLES_AFTER).run_step();
    assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::RolledBack)));
    assert_eq!(case.run.notes.compensation_log.len(), 1);
}

/// Whatever ends the attempt, the receipt says what the step says.
#[test]
fn a_deadline_and_a_release_move_the_receipt_too() {
    let deadline = Plan { timeout: Some(Millis::from_mins(1)), ..plan(vec![task("t").effect(EffectClass::Unsafe)]) };
    for ends in [|_: &Case| Command::Tick, Case::release] {
        let mut case = Case::of(deadline.clone());
        case.claim().tells(|case| case.intent(EffectClass::Unsafe)).until_wake().tells(ends);
        assert_eq!(case.step(0).state(), StepState::InDoubt);
        assert_eq!(case.open_receipt().unwrap().state, ReceiptState::InDoubt);
    }
}

type Ends = fn(&Case) -> Command;

/// What was sent before the worker was lost may arrive later; and a worker that was not lost may be sending still.
#[test]
fn that_it_did_not_happen_is_believed_when_nothing_can_arrive_any_more() {
    let (settles, lease) = (limits::EFFECT_SETTLES_AFTER, limits::SESSION_LEASE);
    let after_the_lease = Millis(lease.0 + settles.0);
    let deadline = || Plan { timeout: Some(Millis::from_mins(1)), ..plan(vec![unsafe_step().timeout(Millis(500))]) };
    let ends: [(&str, Ends, Millis); 5] = [
        ("lost lease", Case::lease_expired, settles),
        ("failing report", |case| case.reports(Outcome::Dead { error: error(ErrorClass::Terminal) }), settles),
        ("step timeout", Case::step_timeout, after_the_lease),
        ("release", Case::release, after_the_lease),
        ("deadline", |_| Command::Tick, after_the_lease),
    ];
    for (what, ends, wait) in ends {
        for resolution in [Resolution::DidNotHappen, Resolution::Failed, Resolution::Happened] {
            let mut case = Case::of(deadline());
            case.claim().tells(|case| case.intent(EffectClass::Unsafe));
            case.after(if what == "deadline" { Millis::from_mins(1) } else { Millis(500) }).tells(ends);
            assert_eq!(case.step(0).state(), StepState::InDoubt, "{what}");
            if resolution == Resolution::Happened {
                case.tell(resolve(resolution, None));
                continue;
            }
            let under_way =
                |after| Rejection::EffectUnderWay { run: case.run.id, step: case.run.spec(0).key.clone(), after };
            let (early, late) = (under_way(wait), under_way(Millis(1)));
            assert_eq!(case.refuse(resolve(resolution, None)), early, "{what}");
            case.after(Millis(wait.0 - 1));
            assert_eq!(case.refuse(resolve(resolution, None)), late, "{what}");
            case.after(Millis(1)).tell(resolve(resolution, None));
        }
    }
}

/// Who cancels a run in doubt does not make the one wait longer who says what became of the effect.
#[test]
fn a_doubt_that_was_there_before_a_cancel_has_waited_already() {
    let mut case = Case::of(plan(vec![unsafe_step()]));
    case.claim().tells(|case| case.intent(EffectClass::Unsafe)).tells(Case::lease_expired);
    let (known_at, receipt) = (case.now + limits::EFFECT_SETTLES_AFTER, case.open_receipt().unwrap());
    case.after(Millis(20_000)).tell(cancel(false));
    assert_eq!((case.state(), case.run.notes.doubt_known_at), (RunState::Canceled, Some(known_at)));
    let after_end = case.now + limits::SESSION_LEASE + limits::EFFECT_SETTLES_AFTER;
    assert_eq!(receipt.deniable_from(&case.run, after_end), known_at);
    assert_eq!(receipt.deniable_from(&case.run, known_at - Millis(1)), known_at - Millis(1));

    // What a worker still had when the run was canceled may be on its way from then on.
    let mut case = Case::of(plan(vec![unsafe_step()]));
    case.claim().tells(|case| case.intent(EffectClass::Unsafe));
    let mut receipt = case.open_receipt().unwrap();
    receipt.state = ReceiptState::InDoubt;
    // As an earlier cancel with a rollback leaves it, about another step.
    case.run.notes.doubt_known_at = Some(case.now);
    case.tell(cancel(false)).tells(Case::lease_expired);
    assert_eq!((case.state(), case.run.notes.doubt_known_at), (RunState::Canceled, None));
    let after_end = case.now + limits::SESSION_LEASE + limits::EFFECT_SETTLES_AFTER;
    assert_eq!(receipt.deniable_from(&case.run, after_end), after_end);
}

#[test]
fn what_may_still_arrive_is_not_undone_before_it_has() {
    let settles = limits::EFFECT_SETTLES_AFTER;
    let mut case = Case::of(plan(vec![unsafe_step().undoable()]));
    case.claim().tells(|case| case.intent(EffectClass::Unsafe)).tells(Case::lease_expired);
    let lost_at = case.now;
    case.after(Millis(1_000)).tell(roll_back());
    assert_eq!(case.row().eligible_at, Some(lost_at + settles));

    let mut case = Case::of(plan(vec![unsafe_step().undoable()]));
    case.claim().tells(|case| case.intent(EffectClass::Unsafe)).tell(cancel(true)).tells(Case::lease_expired);
    assert_eq!(case.row().eligible_at, Some(case.now + settles));
}

/// Of a keyed effect no intent stays open, and a lost worker may still send it all the same.
#[test]
fn what_a_lost_worker_may_still_send_is_not_undone_before_it_has_arrived() {
    let (settles, lease) = (limits::EFFECT_SETTLES_AFTER, limits::SESSION_LEASE);
    let keyed = || task("pay").effect(EffectClass::Keyed).undoable().timeout(Millis(500));
    let started = |plan: Plan| {
        let mut case = Case::of(plan);
        case.claim().tells(|case| case.intent(EffectClass::Keyed));
        case
    };
    let pausing = || Plan { on_failure: Some(OnFailure::Pause), ..plan(vec![keyed().attempts(1)]) };

    let mut lost = started(plan(vec![keyed().attempts(1)]));
    lost.tells(Case::lease_expired);
    assert_eq!((lost.state(), lost.row().eligible_at), (RunState::RollingBack, Some(lost.now + settles)));

    let mut timed_out = started(plan(vec![keyed().attempts(1)]));
    timed_out.after(Millis(500)).tells(Case::step_timeout);
    assert_eq!(timed_out.row().eligible_at, Some(timed_out.now + lease + settles));

    for ends in [Case::lease_expired, Case::release] {
        let mut canceled = started(plan(vec![keyed()]));
        canceled.tell(cancel(true)).tells(ends);
        assert_eq!(canceled.row().eligible_at, Some(canceled.now + settles));
    }

    // Its worker may be the first to notice that the time is up, and drops the call.
    let mut dropped = started(plan(vec![keyed().attempts(1)]));
    let late = StepError::new(ErrorClass::Timeout, "STEP_TIMEOUT", "the step ran longer than its timeout");
    dropped.tells(|case| case.reports(Outcome::Retry { error: late, backoff: None }));
    assert_eq!((dropped.state(), dropped.row().eligible_at), (RunState::RollingBack, Some(dropped.now + settles)));

    // Another try does not call back what the first one has sent, whatever its worker says of itself.
    let mut retried = started(plan(vec![keyed().attempts(3)]));
    retried.tells(Case::lease_expired);
    let lost_at = retried.now;
    retried.claim().after(Millis(10)).dies();
    assert_eq!((retried.state(), retried.row().eligible_at), (RunState::RollingBack, Some(lost_at + settles)));

    // A person who has it undone waits for no more than is left of that.
    for (looked_for, waits) in [(Millis(1_000), true), (settles, false)] {
        let mut by_hand = started(pausing());
        by_hand.tells(Case::lease_expired);
        let lost_at = by_hand.now;
        by_hand.after(looked_for).tell(roll_back());
        let expected = if waits { lost_at + settles } else { by_hand.now };
        assert_eq!((by_hand.state(), by_hand.row().eligible_at), (RunState::RollingBack, Some(expected)));
    }

    let mut reported = started(plan(vec![keyed().attempts(1)]));
    reported.dies();
    assert_eq!(reported.row().eligible_at, Some(reported.now), "its worker says that it has ended");
}

#[test]
fn a_success_with_an_open_effect_is_refused() {
    let mut case = Case::of(plan(vec![unsafe_step()]));
    case.claim().tells(|case| case.intent(EffectClass::Unsafe));
    let report = case.reports(Outcome::Completed { output: json("1") });
    assert!(case.refuse(report).to_string().contains("record it first"));
    case.tells(|case| case.outcome(ReceiptState::Succeeded)).complete();
    assert_eq!(case.state(), RunState::Succeeded);
}

#[test]
fn a_declared_effect_class_can_only_be_tightened() {
    for (declared, told, counts) in [
        (EffectClass::Unsafe, EffectClass::Keyed, EffectClass::Unsafe),
        (EffectClass::Keyed, EffectClass::Unsafe, EffectClass::Unsafe),
        (EffectClass::Read, EffectClass::Keyed, EffectClass::Keyed),
        (EffectClass::Unsafe, EffectClass::Read, EffectClass::Read),
    ] {
        let mut case = Case::of(plan(vec![task("pay").effect(declared)]));
        case.claim().tells(|case| case.intent(told));
        let [SideWrite::PutReceipt(receipt)] = case.change.side.as_slice() else { panic!() };
        assert_eq!(receipt.effect, counts, "{declared} {told}");
    }
}
