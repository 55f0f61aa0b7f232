//! What the events of each way to end an attempt say of a report that comes afterwards.

use super::case::{Case, error};
use super::plans::{Tuned, plan, task};
use crate::decide::{AttemptEnding, Command, ComparedOutput, Outcome, Repeat};
use crate::json::Json;
use crate::plan::retry::{ErrorClass, StepError, TASK_UNKNOWN};
use crate::rejection::Rejection;
use crate::state::EffectClass;
use crate::time::Millis;
use crate::work::{AttemptRef, ReportedOutcome};

fn claimed() -> Case {
    let mut case = Case::of(plan(vec![task("t").timeout(Millis(5)).attempts(3)]));
    case.claim();
    case
}

/// A step with an open effect that must not be repeated.
fn acting() -> Case {
    let mut case = Case::of(plan(vec![task("t").effect(EffectClass::Unsafe)]));
    case.claim().tells(|case| case.intent(EffectClass::Unsafe));
    case
}

/// How the first attempt of the first step has ended, by the events of the last change.
fn ending(case: &Case) -> AttemptEnding {
    let mut end: Option<AttemptEnding> = None;
    for (seq, event) in (1..).zip(case.events()) {
        if let Some(known) = &mut end {
            known.hear(&event, seq, (0, 1));
        } else {
            end = AttemptEnding::of(&event, (seq, case.now), 0);
        }
    }
    end.unwrap_or_else(|| panic!("{:?}", case.events()))
}

fn repeat(case: &Case, end: &AttemptEnding, outcome: &ReportedOutcome) -> Repeat {
    let at = AttemptRef { tenant: case.run.tenant, run: case.run.id, position: 0, attempt: 1 };
    end.repeat(&case.run, at, outcome, None)
}

fn retry(error: StepError) -> ReportedOutcome {
    ReportedOutcome::Retry { error, backoff: None }
}

fn dead(error: StepError) -> ReportedOutcome {
    ReportedOutcome::Dead { error }
}

fn done() -> ReportedOutcome {
    ReportedOutcome::Completed { output: Json::null() }
}

#[test]
fn what_was_reported_first_stands() {
    let went_wrong = || error(ErrorClass::Unavailable);
    let mut completed = claimed();
    completed.complete();
    let mut failed = claimed();
    failed.fails(ErrorClass::Unavailable);
    let mut unknown = claimed();
    unknown.tell(Command::UnknownTask { position: 0, attempt: 1 });
    for (case, same, recorded) in [
        (&completed, done(), "completed"),
        (&failed, retry(went_wrong()), "failed"),
        (&unknown, ReportedOutcome::UnknownTask, "failed"),
    ] {
        let end = ending(case);
        assert!(end.is_settled());
        for outcome in [done(), retry(went_wrong()), dead(went_wrong()), ReportedOutcome::UnknownTask] {
            let expected = if outcome == same { Repeat::Same } else { Repeat::Other(recorded) };
            assert_eq!(repeat(case, &end, &outcome), expected, "{end:?} {outcome:?}");
        }
        assert_eq!(repeat(case, &end, &ReportedOutcome::Released), Repeat::Other(recorded), "{end:?}");
    }
    let told = unknown.step(0).last_error.as_ref().unwrap();
    assert_eq!(told.code, TASK_UNKNOWN);
}

#[test]
fn the_output_of_a_step_that_is_done_is_compared_where_it_can_be_had() {
    let mut case = claimed();
    case.complete();
    let end = ending(&case);
    assert_eq!(end.done_seq(), Some(1));
    let at = AttemptRef { tenant: case.run.tenant, run: case.run.id, position: 0, attempt: 1 };
    let beside = |is_same| end.repeat(&case.run, at, &done(), Some(ComparedOutput { is_same, is_resolved: false }));
    assert_eq!((beside(true), beside(false)), (Repeat::Same, Repeat::Other("completed")));
}

#[test]
fn a_wait_is_the_same_for_the_same_signal_until_the_same_instant() {
    let mut case = claimed();
    let (signal, key, timeout) = ("go".to_owned(), "INC-1".to_owned(), Some(Millis(50)));
    case.tell(case.reports(Outcome::Waiting { signal, key, timeout, outbound: Vec::new() }));
    let end = ending(&case);
    let told = |signal: &str, key: Option<&str>, timeout: Option<u64>| ReportedOutcome::Waiting {
        signal: signal.to_owned(),
        key: key.map(str::to_owned),
        timeout: timeout.map(Millis),
        outbound: Vec::new(),
    };
    for same in [told("go", Some("INC-1"), Some(50)), told("go", None, Some(50))] {
        assert_eq!(repeat(&case, &end, &same), Repeat::Same, "the subject is the key where none is named");
    }
    for other in [
        told("stop", None, Some(50)),
        told("go", Some("INC-2"), Some(50)),
        told("go", None, Some(51)),
        told("go", None, None),
        done(),
    ] {
        assert_eq!(repeat(&case, &end, &other), Repeat::Other("waiting"), "{other:?}");
    }
}

#[test]
fn an_attempt_that_was_given_up_has_no_report() {
    for end in [Case::lease_expired, Case::step_timeout] {
        let mut case = claimed();
        case.after(Millis(5)).tells(end);
        let end = ending(&case);
        for outcome in [done(), retry(error(ErrorClass::Unavailable)), ReportedOutcome::Released] {
            assert_eq!(repeat(&case, &end, &outcome), Repeat::New, "{end:?} {outcome:?}");
        }
    }
    for give_back in [Case::release, Case::left_out] {
        let mut case = claimed();
        case.tells(give_back);
        let end = ending(&case);
        assert_eq!(end, AttemptEnding::GivenBack);
        assert_eq!(repeat(&case, &end, &ReportedOutcome::Released), Repeat::Same);
        assert_eq!(repeat(&case, &end, &done()), Repeat::New);
    }
}

/// Codes and classes that the server ends attempts with are taken from workers too.
#[test]
fn an_error_of_a_worker_that_reads_like_the_servers_is_known_by_its_words() {
    let spent = |message: &str| StepError::new(ErrorClass::Terminal, "RUN_WRITES_EXHAUSTED", message);
    let mut case = claimed();
    case.tell(case.reports(Outcome::Dead { error: spent("no more") }));
    let end = ending(&case);
    assert_eq!(repeat(&case, &end, &dead(spent("no more"))), Repeat::Same);
    assert_eq!(repeat(&case, &end, &dead(spent("some more"))), Repeat::New);
    assert_eq!(repeat(&case, &end, &done()), Repeat::New);
}

/// Why there was no other try may stand behind the worker's words, and an error may be longer than is kept.
#[test]
fn an_error_is_the_same_as_it_is_kept() {
    let case = claimed();
    let said = StepError::new(ErrorClass::Unavailable, "E", "no");
    let kept = |message: &str| AttemptEnding::Failed { error: StepError { message: message.into(), ..said.clone() } };
    let told = |end: AttemptEnding| repeat(&case, &end, &retry(said.clone()));
    assert_eq!(told(kept("no; the run has spent 3 of the 2 that `limits.spend` allows")), Repeat::Same);
    assert_eq!(told(kept("nothing")), Repeat::Other("failed"));
    let denied = StepError { class: ErrorClass::Denied, ..said.clone() };
    let mut refused = claimed();
    refused.tell(refused.reports(Outcome::Dead { error: denied.clone() }));
    assert_eq!(repeat(&refused, &ending(&refused), &dead(denied)), Repeat::Same, "only a decision denies");
    let long = StepError { message: "x".repeat(100_000), ..said };
    let mut cut = claimed();
    cut.tell(cut.reports(Outcome::Retry { error: long.clone(), backoff: None }));
    assert_eq!(repeat(&cut, &ending(&cut), &retry(long)), Repeat::Same);
}

#[test]
fn a_doubt_knows_the_report_that_has_led_to_it() {
    let went_wrong = || error(ErrorClass::Unavailable);
    let mut case = acting();
    case.fails(ErrorClass::Unavailable);
    let end = ending(&case);
    assert!(!end.is_settled(), "its worker may say that it was done");
    assert_eq!(repeat(&case, &end, &retry(went_wrong())), Repeat::Same);
    assert_eq!(repeat(&case, &end, &dead(went_wrong())), Repeat::Other("failed"));
    assert_eq!(repeat(&case, &end, &done()), Repeat::New);
    // Events of earlier releases have no error: the step has, while it is in doubt.
    let silent = AttemptEnding::InDoubt { error: None, done: None };
    assert_eq!(repeat(&case, &silent, &retry(went_wrong())), Repeat::Same);
    assert_eq!(repeat(&case, &silent, &dead(went_wrong())), Repeat::Other("failed"));

    let mut lost = acting();
    lost.tells(Case::lease_expired);
    let mut given_back = acting();
    given_back.tells(Case::release);
    for (case, of_release) in [(&lost, Repeat::New), (&given_back, Repeat::Same)] {
        let end = ending(case);
        assert_eq!(repeat(case, &end, &retry(went_wrong())), Repeat::New, "{end:?}");
        assert_eq!(repeat(case, &end, &ReportedOutcome::Released), of_release, "{end:?}");
    }
}

#[test]
fn a_refusal_says_what_has_become_of_the_attempt() {
    let run = claimed().run.id;
    let told = |given, current| Rejection::StaleAttempt { run, position: 0, given, current }.to_string();
    assert!(told(1, 2).contains("attempt 1 of the step at position 0"), "{}", told(1, 2));
    assert!(told(1, 2).contains("is over: attempt 2 has taken its place; drop the result"), "{}", told(1, 2));
    assert!(told(1, 1).contains("is over, or another session has it; drop the result"), "{}", told(1, 1));
    assert!(told(7, 1).contains("has not begun: the last one is attempt 1"), "{}", told(7, 1));
    assert!(told(1, 0).contains("has not begun: no attempt of the step has"), "{}", told(1, 0));
}
