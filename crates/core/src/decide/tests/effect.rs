//! Effects: the intent before, the outcome after, and the budget of writes.

use std::sync::Arc;

use super::case::{Case, Opening, Ruled, cancel, claimer, json};
use super::plans::{Tuned as _, plan, task, tasks};
use super::wait::waiting;
use crate::decide::{Command, Completion, Outcome};
use crate::governance::judge::Decision;
use crate::json::Json;
use crate::plan::retry::{ErrorClass, StepError};
use crate::plan::{OnFailure, Plan};
use crate::rejection::{Rejection, WRITES_EXHAUSTED};
use crate::run::change::SideWrite;
use crate::run::receipt::Receipt;
use crate::state::{EffectClass, Reason, ReceiptState, RunState, StepState};

#[test]
fn only_an_unsafe_effect_is_open_until_its_outcome() {
    for effect in EffectClass::ALL {
        let mut case = Case::of(tasks(1));
        case.claim().tells(|case| case.intent(*effect));
        assert_eq!(case.names(), ["receipt.recorded"]);
        assert!(matches!(case.change.side.as_slice(), [SideWrite::PutReceipt(_)]));
        assert_eq!(case.step(0).open_intent.is_some(), *effect == EffectClass::Unsafe, "{effect}");
    }
}

#[test]
fn an_outcome_closes_the_intent() {
    for state in [ReceiptState::Succeeded, ReceiptState::Failed] {
        let mut case = Case::of(tasks(1));
        case.claim().tells(|case| case.intent(EffectClass::Unsafe)).tells(|case| case.outcome(state));
        assert_eq!(case.step(0).open_intent, None);
        let [SideWrite::PutReceipt(receipt)] = case.change.side.as_slice() else { panic!() };
        assert_eq!((receipt.state, receipt.late), (state, false));
        case.tells(Case::lease_expired);
        assert_eq!(case.step(0).state(), StepState::Ready, "the outcome is known, so there is no doubt");
    }
}

#[test]
fn an_outcome_must_be_one() {
    let mut case = Case::of(tasks(1));
    case.claim().tells(|case| case.intent(EffectClass::Unsafe));
    for state in [ReceiptState::Intent, ReceiptState::InDoubt] {
        let no = case.refuse(case.outcome(state));
        assert!(matches!(no, Rejection::InvalidInput { .. }), "{no}");
    }
    case.tells(Case::lease_expired);
    assert_eq!(case.step(0).state(), StepState::InDoubt);
}

/// The same effect once more, where nobody knows what became of the try before.
fn again(case: &Case, effect: EffectClass) -> Command {
    match case.intent(effect) {
        Command::RecordIntent { position, attempt, mut receipt, grant, hold, .. } => {
            receipt.unsettled = true;
            Command::RecordIntent { position, attempt, receipt, grant, again: true, hold }
        }
        _ => unreachable!("it is granted"),
    }
}

#[test]
fn a_refused_try_does_not_settle_an_earlier_one() {
    let mut case = Case::of(tasks(1));
    case.claim().tells(|case| again(case, EffectClass::Keyed));
    let [SideWrite::PutReceipt(intent)] = case.change.side.as_slice() else { panic!() };
    let intent = intent.clone();
    assert_eq!(intent.reported(false), Some(ReceiptState::InDoubt));
    assert_eq!(intent.reported(true), Some(ReceiptState::Succeeded));
    let tells = |case: &Case, state| {
        let receipt = Box::new(Receipt { state, ..(*intent).clone() });
        Command::RecordOutcome { position: 0, attempt: case.step(0).attempt, receipt }
    };
    let no = case.refuse(tells(&case, ReceiptState::Failed));
    assert!(matches!(no, Rejection::InvalidInput { .. }), "{no}");
    case.tells(|case| tells(case, ReceiptState::InDoubt));
    let [SideWrite::PutReceipt(kept)] = case.change.side.as_slice() else { panic!() };
    assert_eq!(kept.state, ReceiptState::InDoubt);
    assert_eq!(case.step(0).state(), StepState::Running, "the attempt itself goes on");
}

#[test]
fn what_may_have_happened_is_not_repeated_as_unsafe() {
    let mut case = Case::of(tasks(1));
    case.claim();
    let no = case.refuse(again(&case, EffectClass::Unsafe));
    assert!(matches!(no, Rejection::EffectRecorded { .. }), "{no}");
}

/// Whatever the worker calls its next try: what may have happened is not denied by a read, and a read leaves nothing open.
#[test]
fn a_read_settles_nothing_and_leaves_nothing_open() {
    let mut case = Case::of(tasks(1));
    case.claim().tells(|case| again(case, EffectClass::Keyed));
    let [SideWrite::PutReceipt(keyed)] = case.change.side.as_slice() else { panic!() };
    let read = Receipt { effect: EffectClass::Read, ..(**keyed).clone() };
    assert!(read.leaves_unsettled() && !read.is_repeatable_as(EffectClass::Unsafe), "it has taken over another effect");
    let only_read = Receipt { unsettled: false, ..read.clone() };
    assert!(!only_read.leaves_unsettled() && only_read.is_repeatable_as(EffectClass::Unsafe));
    let known = Receipt { state: ReceiptState::Failed, ..read };
    assert!(!known.leaves_unsettled());
}

#[test]
fn effects_come_one_after_the_other() {
    let mut case = Case::of(tasks(1));
    case.claim().tells(|case| case.intent(EffectClass::Unsafe));
    let no = case.refuse(case.intent(EffectClass::Read));
    assert!(matches!(no, Rejection::InvalidInput { .. }), "{no}");
    let no = case.refuse(waiting(&case, None));
    assert!(matches!(no, Rejection::InvalidInput { .. }), "{no}");
    case.tells(|case| case.outcome(ReceiptState::Succeeded)).tells(|case| case.intent(EffectClass::Unsafe));
}

#[test]
fn an_intent_belongs_to_the_running_attempt() {
    let mut case = Case::of(tasks(1));
    let stale = case.refuse(case.intent(EffectClass::Unsafe));
    assert!(matches!(stale, Rejection::StaleAttempt { .. }), "{stale}");
    case.claim();
    let Command::RecordIntent { position, attempt, mut receipt, grant, again, hold } = case.intent(EffectClass::Unsafe)
    else {
        unreachable!()
    };
    receipt.state = ReceiptState::Succeeded;
    let no = case.refuse(Command::RecordIntent { position, attempt, receipt, grant, again, hold });
    assert!(matches!(no, Rejection::InvalidInput { .. }), "{no}");
}

#[test]
fn writes_are_counted_over_the_run_and_reads_are_free() {
    let mut case = Case::of(Plan { writes_max: Some(2), ..plan(vec![task("a"), task("b")]) });
    case.claim().tells(|case| case.intent(EffectClass::Keyed)).tells(|case| case.intent(EffectClass::Read));
    case.complete().claim().tells(|case| case.intent(EffectClass::Unsafe));
    case.tells(|case| case.outcome(ReceiptState::Succeeded));
    assert_eq!(case.run.notes.writes, 2);
    let no = case.refuse(case.intent(EffectClass::Idempotent));
    assert!(matches!(no, Rejection::WritesExhausted { max: 2, .. }), "{no}");
    case.tells(|case| case.intent(EffectClass::Read)).complete();
    assert_eq!(case.state(), RunState::Succeeded);
}

/// The step that fails for it ends the run with that reason; what was done can still be undone.
#[test]
fn used_up_writes_end_the_run_and_do_not_hold_up_its_rollback() {
    let steps = || vec![task("a").undoable(), task("b")];
    let spent = |class| StepError::new(class, WRITES_EXHAUSTED, "no more");
    let mut case = Case::of(Plan { writes_max: Some(1), on_failure: Some(OnFailure::Fail), ..plan(steps()) });
    case.claim().tells(|case| case.intent(EffectClass::Keyed)).complete().claim();
    case.refuse(case.intent(EffectClass::Keyed));
    // No other try could change it, whatever the worker says of its class.
    case.tells(|case| case.reports(Outcome::Retry { error: spent(ErrorClass::Unavailable), backoff: None }));
    assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::WritesExhausted)));

    let mut undone = Case::of(Plan { writes_max: Some(1), ..plan(steps()) });
    undone.claim().tells(|case| case.intent(EffectClass::Keyed)).complete().claim();
    undone.tells(|case| case.reports(Outcome::Dead { error: spent(ErrorClass::Terminal) }));
    assert_eq!(undone.state(), RunState::RollingBack);
    undone.claim().tells(|case| case.intent(EffectClass::Keyed)).complete();
    assert_eq!(undone.run.notes.writes, 1);

    let mut unlimited = Case::of(tasks(1));
    unlimited.claim().tells(|case| case.reports(Outcome::Dead { error: spent(ErrorClass::Terminal) }));
    assert_eq!(unlimited.run.reason, Some(Reason::StepFailed), "a worker cannot say so by itself");
}

/// A step that changes something counts once, whether it names an effect or not, and however often it is tried.
#[test]
fn a_step_that_names_no_effect_is_a_write_too() {
    let steps = vec![task("a"), task("b"), task("c")];
    let mut case = Case::of(Plan { writes_max: Some(2), on_failure: Some(OnFailure::Fail), ..plan(steps) });
    case.tells(Case::claim_judged);
    assert_eq!(case.run.notes.writes, 1);
    case.fails(ErrorClass::Unavailable).until_eligible().tells(Case::claim_judged);
    assert_eq!(case.run.notes.writes, 1, "another try is the same write");
    case.tells(|case| case.intent(EffectClass::Keyed));
    assert_eq!(case.run.notes.writes, 1, "the effect that it names is that write");
    case.tells(|case| case.intent(EffectClass::Keyed));
    assert_eq!(case.run.notes.writes, 2, "and this is another one");
    case.complete().tells(Case::claim_judged);
    assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::WritesExhausted)));
}

/// What only reads is free, and where neither the workflow nor a rule looks at writes, nothing is noted.
#[test]
fn a_claim_is_counted_where_it_matters() {
    let mut reads = Case::of(Plan { writes_max: Some(0), ..plan(vec![task("a").effect(EffectClass::Read)]) });
    reads.claim().complete();
    assert_eq!(reads.state(), RunState::Succeeded);
    let mut unlimited = Case::of(tasks(1));
    unlimited.tells(Case::claim_judged);
    assert_eq!((unlimited.run.notes.writes, unlimited.run.notes.claim_write), (0, None));
    let judge = Arc::new(Ruled { decision: Decision::Allow, bundle: 7 });
    let mut ruled = Opening { judge, ..Opening::of(tasks(1)) }.start();
    ruled.tells(Case::claim_judged);
    assert_eq!(ruled.run.notes.writes, 1, "rules look at the run, and may look at its writes");
    assert_eq!(ruled.run.notes.writes_besides(0, 0), 0, "the step's own effect is not one more");
}

/// A step that is handed on in the commit of another one is counted as well, and is not handed on where no write is left.
#[test]
fn steps_that_are_handed_on_are_counted() {
    let on = |case: &Case| {
        let outcome = Outcome::Completed { output: Json::null() };
        Command::Complete(Completion { claim_next: Some(claimer(1)), ..case.completion(outcome) })
    };
    let steps = vec![task("a"), task("b"), task("c")];
    let mut case = Case::of(Plan { writes_max: Some(2), on_failure: Some(OnFailure::Fail), ..plan(steps) });
    case.tells(Case::claim_judged).tells(on);
    assert_eq!((case.step(1).state(), case.run.notes.writes), (StepState::Running, 2));
    case.tells(on);
    assert_eq!(case.step(2).state(), StepState::Ready, "a worker that comes for it ends the run");
    case.tells(Case::claim_judged);
    assert_eq!(case.run.reason, Some(Reason::WritesExhausted));
}

#[test]
fn no_writes_at_all_is_a_limit_too() {
    let mut case = Case::of(Plan { writes_max: Some(0), ..tasks(1) });
    case.claim();
    assert!(matches!(case.refuse(case.intent(EffectClass::Keyed)), Rejection::WritesExhausted { max: 0, .. }));
    case.tells(|case| case.intent(EffectClass::Read));
}

#[test]
fn a_response_is_kept_as_it_came() {
    let mut case = Case::of(tasks(1));
    case.claim().tells(|case| case.intent(EffectClass::Unsafe));
    let Command::RecordOutcome { position, attempt, mut receipt } = case.outcome(ReceiptState::Succeeded) else {
        unreachable!()
    };
    receipt.response = Some(json(r#"{ "id": 1 }"#));
    case.tell(Command::RecordOutcome { position, attempt, receipt: receipt.clone() });
    assert_eq!(case.receipts[&receipt.id].response, receipt.response);
}

/// A cancel is decided at once: nothing further starts.
#[test]
fn a_run_that_is_being_canceled_begins_no_effect() {
    let mut case = Case::of(tasks(1));
    case.claim().tell(cancel(false));
    for effect in EffectClass::ALL {
        let no = case.refuse(case.intent(*effect));
        assert!(matches!(no, Rejection::Canceling { .. }), "{no}");
    }
}
