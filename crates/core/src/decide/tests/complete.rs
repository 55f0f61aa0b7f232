//! What a worker reports, and the budget of failures.

use super::case::{Answer, Case, asks, cancel, error, json, pause, retry};
use super::plans::{Tuned, gate, plan, task, tasks};
use crate::decide::{Command, Completion, Outbound, Outcome, ended_by_report, is_recorded};
use crate::json::Json;
use crate::limits;
use crate::plan::retry::{Backoff, ErrorClass, RetryPolicy, StepError};
use crate::plan::{OnDenial, OnFailure, Plan, StepSpec};
use crate::rejection::Rejection;
use crate::run::change::{ClaimChange, SideWrite};
use crate::state::{Detail, EffectClass, Reason, RunState, StepState};
use crate::time::{Millis, Timestamp};

#[test]
fn completed_goes_on_and_the_last_one_ends_the_run() {
    let mut case = Case::of(tasks(2));
    case.run_step();
    assert_eq!(case.steps(), [StepState::Succeeded, StepState::Ready]);
    assert_eq!(case.names(), ["execution.step.completed"]);
    assert_eq!(case.step(0).output, Some(json(r#"{"ok":true}"#)));
    assert_eq!(case.change.claim, ClaimChange::Release);
    case.after(Millis(250)).run_step();
    assert_eq!(case.state(), RunState::Succeeded);
    assert_eq!(case.names(), ["execution.step.completed", "session.completed"]);
    let end = case.change.end.as_deref().unwrap();
    assert_eq!(end.output, Some(json(r#"{"ok":true}"#)));
    assert_eq!((end.duration_ms, end.error.as_ref(), end.reason), (250, None, None));
}

/// `max_attempts` counts attempts: the step fails for good with the failure that spends the budget.
#[test]
fn the_budget_is_spent_by_failures() {
    for max in 1..=4 {
        let mut case = Case::of(plan(vec![task("t").attempts(max)]));
        for failure in 1..=max {
            case.claim().fails(ErrorClass::Unavailable);
            assert_eq!(case.step(0).failures, failure);
            let expected = if failure < max { StepState::Ready } else { StepState::Failed };
            assert_eq!(case.step(0).state(), expected, "failure {failure} of {max}");
        }
        assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::StepFailed)));
        assert_eq!(case.change.end.as_deref().unwrap().error, Some(error(ErrorClass::Unavailable)));
    }
}

#[test]
fn only_some_classes_are_tried_again() {
    for class in ErrorClass::ALL {
        let mut case = Case::of(tasks(1));
        case.claim().fails(*class);
        let expected = if class.is_retryable() { StepState::Ready } else { StepState::Failed };
        assert_eq!(case.step(0).state(), expected, "{class}");
    }
}

#[test]
fn a_retry_waits_and_says_so() {
    let mut case = Case::of(plan(vec![task("t").attempts(3)]));
    case.claim().fails(ErrorClass::Timeout);
    assert_eq!(case.row().eligible_at, Some(case.now + Millis(500)));
    assert_eq!((case.state(), case.run.detail), (RunState::Running, Some(Detail::Retrying)));
    assert_eq!(case.names(), ["execution.step.retrying"]);
    assert_eq!(case.step(0).last_error, Some(error(ErrorClass::Timeout)));
}

#[test]
fn a_handler_may_name_its_own_delay_within_limits() {
    for (asked, given) in [(Millis(7), Millis(7)), (Millis(u64::MAX), limits::BACKOFF_MAX)] {
        let mut case = Case::of(tasks(1));
        case.claim();
        let error = error(ErrorClass::RateLimited);
        case.tell(case.reports(Outcome::Retry { error, backoff: Some(asked) }));
        assert_eq!(case.row().eligible_at, Some(case.now + given));
    }
}

#[test]
fn a_retry_is_never_planned_past_the_deadline() {
    let mut step = task("t");
    step.retry = Some(RetryPolicy { max_attempts: 3, backoff: Backoff::Fixed { delay: Millis::from_mins(10) } });
    let mut case = Case::of(Plan { timeout: Some(Millis::from_mins(1)), ..plan(vec![step]) });
    case.claim().fails(ErrorClass::Unavailable);
    assert_eq!(case.row().eligible_at, case.run.header.deadline_at);
}

#[test]
fn dead_is_final_whatever_its_class() {
    for class in ErrorClass::ALL {
        let mut case = Case::of(tasks(1));
        case.claim();
        case.tell(case.reports(Outcome::Dead { error: error(*class) }));
        assert_eq!(case.step(0).state(), StepState::Failed, "{class}");
        assert_eq!(case.step(0).failures, 1);
        assert!(!case.step(0).last_error.as_ref().unwrap().class.is_retryable());
    }
}

#[test]
fn a_failed_step_follows_the_rule() {
    for rule in [Some(OnFailure::Fail), Some(OnFailure::Pause), Some(OnFailure::Rollback), None] {
        let mut case = Case::of(Plan { on_failure: rule, ..tasks(2) });
        case.claim().dies();
        let paused = rule == Some(OnFailure::Pause);
        // There is nothing to undo, so a rollback fails at once.
        assert_eq!(case.state(), if paused { RunState::Paused } else { RunState::Failed }, "{rule:?}");
        assert_eq!(case.steps(), [StepState::Failed, StepState::Pending]);
        assert_eq!(case.run.reason, Some(Reason::StepFailed));
    }
    let mut case =
        Case::of(Plan { on_failure: Some(OnFailure::Pause), ..plan(vec![task("t").when_failed(OnFailure::Fail)]) });
    assert_eq!(case.claim().dies().state(), RunState::Failed, "the step's rule is the nearer one");
}

#[test]
fn a_waiting_report_opens_the_wait_and_sends_with_it() {
    let mut case = Case::of(tasks(1));
    case.claim();
    case.after(Millis(10));
    let outbound = vec![Outbound { destination: "erp".into(), payload: json("{}") }];
    case.tell(case.reports(Outcome::Waiting {
        signal: "answer".into(),
        key: "42".into(),
        timeout: Some(Millis(100)),
        outbound,
    }));
    assert_eq!(case.state(), RunState::WaitingSignal);
    assert_eq!(case.change.claim, ClaimChange::Release);
    assert_eq!(case.row().wake_at, Some(case.now + Millis(100)));
    let [SideWrite::Outbox(_), SideWrite::OpenWait { awaited, .. }] = case.change.side.as_slice() else {
        panic!("{:?}", case.change.side)
    };
    // The answer may overtake the question's own commit.
    let since_run = Timestamp(case.run.header.created_at.0 - limits::CLOCK_SKEW_TOLERATED.0 as i64);
    assert_eq!(awaited.accept_from, since_run, "an answer may have come to a lost attempt");
    assert_eq!(case.step(0).failures, 0);
}

/// What only reads was not judged for what it changes, and a message changes something.
#[test]
fn a_step_that_reads_sends_no_message() {
    let waiting = |outbound| Outcome::Waiting { signal: "s".into(), key: "k".into(), timeout: None, outbound };
    let mut case = Case::of(plan(vec![task("a").effect(EffectClass::Read)]));
    case.claim();
    let message = Outbound { destination: "erp".into(), payload: json("{}") };
    let refused = case.refuse(case.reports(waiting(vec![message])));
    assert_eq!(refused.code(), "INPUT_INVALID");
    assert!(refused.to_string().contains("`effect: read`"), "{refused}");
    case.tell(case.reports(waiting(Vec::new())));
    assert_eq!(case.state(), RunState::WaitingSignal);
}

#[test]
fn a_wait_has_limits() {
    let waiting = |signal: &str, key: &str, count: usize, payload: Json| Outcome::Waiting {
        signal: signal.into(),
        key: key.into(),
        timeout: None,
        outbound: vec![Outbound { destination: "d".into(), payload }; count],
    };
    let mut case = Case::of(tasks(1));
    case.claim();
    let long = "x".repeat(limits::KEY_BYTES_MAX + 1);
    let too_large = json(&format!("\"{}\"", "x".repeat(limits::PAYLOAD_BYTES_MAX)));
    let bad = [
        waiting("", "k", 0, Json::null()),
        waiting(&long, "k", 0, Json::null()),
        waiting("s", &long, 0, Json::null()),
        waiting("s", "k", limits::OUTBOUND_PER_CHANGE_MAX + 1, Json::null()),
        waiting("s", "k", 1, too_large),
    ];
    for outcome in bad {
        let no = case.refuse(case.reports(outcome));
        assert!(matches!(no, Rejection::InvalidInput { .. } | Rejection::TooLarge { .. }), "{no}");
    }
    case.tell(case.reports(waiting("s", "k", limits::OUTBOUND_PER_CHANGE_MAX, Json::null())));
}

#[test]
fn an_output_has_a_limit_and_an_error_is_cut() {
    let mut case = Case::of(tasks(1));
    case.claim();
    let text = "x".repeat(limits::PAYLOAD_BYTES_MAX);
    let no = case.refuse(case.reports(Outcome::Completed { output: json(&format!("\"{text}\"")) }));
    assert!(matches!(no, Rejection::TooLarge { what: "the output", .. }), "{no}");
    let error = StepError { class: ErrorClass::Invalid, code: text.clone(), message: text };
    case.tell(case.reports(Outcome::Dead { error }));
    let kept = case.step(0).last_error.clone().unwrap();
    assert!(kept.message.len() <= limits::ERROR_BYTES_MAX + 4 && kept.code.len() <= limits::NAME_BYTES_MAX);
}

/// The attempt alone fences: whatever does not name the running one changes nothing.
#[test]
fn a_stale_attempt_changes_nothing() {
    let mut case = Case::of(tasks(2));
    case.claim().fails(ErrorClass::Unavailable).claim();
    for (position, attempt) in [(0, 1), (0, 3), (1, 0), (1, 2), (9, 2)] {
        let outcome = Outcome::Completed { output: Json::null() };
        let completion = Completion { position, attempt, ..case.completion(outcome) };
        for command in [
            Command::Complete(completion),
            Command::Release { position, attempt, cost: None },
            Command::LeaseExpired { position, attempt },
            Command::StepTimeout { position, attempt },
        ] {
            let no = case.refuse(command);
            assert!(matches!(no, Rejection::StaleAttempt { .. }), "{no}");
        }
    }
    case.complete();
}

/// Expiry permits a reclaim, it does not invalidate: only the next claim, or the reaper, ends an attempt.
#[test]
fn a_late_report_of_the_current_attempt_is_accepted() {
    let mut case = Case::of(tasks(1));
    case.claim().after(Millis::from_hours(5)).complete();
    assert_eq!(case.state(), RunState::Succeeded);
}

#[test]
fn a_report_that_was_recorded_is_known() {
    let recorded = |case: &Case| is_recorded(&case.run, 0, 1);
    let mut case = Case::of(tasks(2));
    assert!(!recorded(&case));
    case.claim();
    assert!(!recorded(&case));
    case.complete();
    assert!(recorded(&case) && !is_recorded(&case.run, 0, 2) && !is_recorded(&case.run, 7, 1));

    let started = || {
        let mut case = Case::of(plan(vec![task("t").timeout(Millis(5))]));
        case.claim();
        case
    };
    let mut retried = started();
    retried.fails(ErrorClass::Unavailable);
    assert!(recorded(&retried));
    for end in [Case::lease_expired, Case::release, Case::step_timeout] {
        let mut given_up = started();
        given_up.after(Millis(5)).tells(end);
        assert!(!recorded(&given_up), "{:?}", given_up.change.journal);
    }
    let mut canceled = started();
    canceled.tell(cancel(false)).tells(Case::lease_expired);
    assert!(!recorded(&canceled));
}

/// An attempt that was given up has no report, whatever the step has come to since.
#[test]
fn a_report_that_was_never_recorded_is_not_known_when_people_are_asked_again() {
    let guarded = || task("t").effect(EffectClass::Keyed).timeout(Millis(5)).attempts(1);
    let timed_out = |rule: OnDenial, step: StepSpec| {
        let mut case = Case::of(plan(vec![gate("ok", rule), step]));
        case.tells(|case| case.vote("rob", true)).claim();
        // So that a step whose rule is to fail waits for a directive as well.
        if case.run.spec(1).on_failure.is_none() {
            case.tell(pause());
        }
        case.after(Millis(5)).tells(Case::step_timeout).tell(retry());
        assert_eq!((case.state(), case.step(1).state()), (RunState::WaitingApproval, StepState::WaitingApproval));
        assert!(!is_recorded(&case.run, 1, 1), "its gate is asked again, and nothing is known of the attempt");
        case
    };
    let mut refused = timed_out(OnDenial::Pause, guarded().when_failed(OnFailure::Pause));
    refused.tells(|case| case.vote("rob", false));
    let mut expired = timed_out(OnDenial::Pause, guarded().when_failed(OnFailure::Pause));
    while expired.state() == RunState::WaitingApproval {
        expired.until_wake().tell(Command::Tick);
    }
    for (case, code) in [(refused, "APPROVAL_REJECTED"), (expired, "APPROVAL_EXPIRED")] {
        assert_eq!((case.state(), case.step(1).state()), (RunState::Paused, StepState::WaitingApproval));
        assert_eq!(case.step(1).last_error.as_ref().unwrap().code, code);
        assert!(!is_recorded(&case.run, 1, 1), "{code}");
    }
    let mut failed = timed_out(OnDenial::Fail, guarded());
    failed.tells(|case| case.vote("rob", false));
    assert_eq!((failed.state(), failed.step(1).state()), (RunState::Failed, StepState::Failed));
    assert!(!is_recorded(&failed.run, 1, 1), "that people refuse another try is no report");
}

/// What keeps a step from being claimed again does not say how its last attempt ended.
#[test]
fn a_step_that_is_kept_from_the_next_worker_shows_a_report_only_where_it_had_one() {
    let withheld = |case: &mut Case| {
        let command = case.until_eligible().withhold_step(asks()).unwrap();
        case.tell(command);
        assert_eq!(case.step(0).state(), StepState::WaitingApproval);
    };
    let mut released = Case::of(plan(vec![task("t").attempts(3)]));
    released.claim().tells(Case::release);
    withheld(&mut released);
    assert!(!is_recorded(&released.run, 0, 1));
    let mut reported = Case::of(plan(vec![task("t").attempts(3)]));
    reported.claim().fails(ErrorClass::Unavailable);
    withheld(&mut reported);
    assert!(is_recorded(&reported.run, 0, 1), "it has said that it failed");

    let mut step = task("t").attempts(1).when_failed(OnFailure::Pause);
    step.condition = Some("inputs.go".into());
    let mut unbound = Case::of(plan(vec![step]));
    unbound.claim().tells(Case::lease_expired);
    unbound.answers.insert(0, Answer::Broken);
    unbound.tell(Command::RestartFrom { position: 0 });
    assert_eq!(unbound.step(0).last_error, Some(error(ErrorClass::Invalid)));
    assert!(!is_recorded(&unbound.run, 0, 1), "it could not begin again, and the attempt before that was lost");
}

/// What the events of each way to end an attempt say about its worker's report.
#[test]
fn the_history_tells_whether_an_attempt_was_ended_by_its_report() {
    let started = || {
        let mut case = Case::of(plan(vec![task("t").timeout(Millis(5))]));
        case.claim();
        case
    };
    let told = |case: &Case| case.events().iter().find_map(|event| ended_by_report(event, 0));
    let mut done = started();
    assert_eq!(told(&done), Some(false), "the start of an attempt ends the one before");
    done.complete();
    assert_eq!(told(&done), Some(true));
    let mut retried = started();
    retried.fails(ErrorClass::Unavailable);
    assert_eq!(told(&retried), Some(true));
    assert_eq!(retried.events().iter().find_map(|event| ended_by_report(event, 1)), None, "that is another step");
    for end in [Case::lease_expired, Case::release, Case::step_timeout] {
        let mut given_up = started();
        given_up.after(Millis(5)).tells(end);
        assert_eq!(told(&given_up), Some(false), "{:?}", given_up.change.journal);
    }
}

#[test]
fn a_failing_attempt_of_a_paused_run_leaves_it_paused() {
    let mut case = Case::of(tasks(1));
    case.claim().tell(pause()).dies();
    assert_eq!((case.state(), case.step(0).state()), (RunState::Paused, StepState::Failed));
    assert!(matches!(case.refuse(Command::Resume), Rejection::DirectiveDue { .. }));
}

#[test]
fn a_paused_run_whose_last_step_completes_has_succeeded() {
    let mut case = Case::of(tasks(1));
    case.claim().tell(pause()).complete();
    assert_eq!(case.state(), RunState::Succeeded);
}

/// What changes something is judged again before it is tried again, as by any worker that comes for it.
#[test]
fn a_retry_that_is_due_at_once_can_be_claimed_in_the_same_change_where_it_only_reads() {
    for (effect, expected) in
        [(EffectClass::Read, (StepState::Running, 2)), (EffectClass::Keyed, (StepState::Ready, 1))]
    {
        let mut step = task("a");
        step.effect = Some(effect);
        let mut case = Case::of(plan(vec![step]));
        case.claim();
        let outcome = Outcome::Retry { error: error(ErrorClass::Unavailable), backoff: Some(Millis::ZERO) };
        let completion = case.completion(outcome);
        case.tell(Command::Complete(Completion { claim_next: Some(super::case::claimer(1)), ..completion }));
        assert_eq!((case.step(0).state(), case.step(0).attempt), expected, "{effect:?}");
    }
}

/// What attempts cost adds up, whatever becomes of them; once it is too much, nothing more is begun that changes something.
#[test]
fn what_is_spent_counts_and_ends_the_run() {
    let spending = |max: Option<u64>| {
        let mut plan = plan(vec![task("a"), task("b"), task("c")]);
        plan.rules.spend_max_micros = max;
        Case::of(plan)
    };
    let ends = |case: &mut Case, outcome: Outcome, micros: u64| {
        case.claim();
        let cost = Some(Box::new(crate::cost::Cost { micros, ..Default::default() }));
        case.tell(Command::Complete(Completion { cost, ..case.completion(outcome) }));
    };
    let done = || Outcome::Completed { output: Json::null() };
    let mut free = spending(None);
    ends(&mut free, done(), 70);
    ends(&mut free, done(), 70);
    assert_eq!((free.run.notes.spent_micros, free.run.position), (140, 2));

    let mut capped = spending(Some(100));
    ends(&mut capped, done(), 70);
    assert_eq!(capped.run.state, RunState::Running);
    ends(&mut capped, done(), 30);
    assert_eq!((capped.run.state, capped.run.reason), (RunState::Failed, Some(Reason::SpendExhausted)));
    let error = capped.step(2).last_error.clone().unwrap();
    assert_eq!(error.code, crate::rejection::SPEND_EXHAUSTED);
    assert!(error.message.contains("0.0001"), "{}", error.message);

    // A try that costs too much is the last one.
    let mut failing = spending(Some(100));
    let again = Outcome::Retry { error: StepError::new(ErrorClass::Unavailable, "X", "x"), backoff: None };
    ends(&mut failing, again, 100);
    assert_eq!((failing.run.state, failing.run.reason), (RunState::Failed, Some(Reason::SpendExhausted)));
}

/// What is spent is told in the unit that the workflow names, and amounts of another one are not taken for it.
#[test]
fn costs_are_counted_in_the_unit_of_the_workflow() {
    let mut plan = plan(vec![task("a"), task("b")]);
    plan.rules.spend_max_micros = Some(2_000_000);
    plan.rules.spend_unit = Some("credits".into());
    let mut case = Case::of(plan);
    case.claim();
    let report = |case: &Case, unit: Option<&str>| {
        let unit = unit.map(str::to_owned);
        let cost = Some(Box::new(crate::cost::Cost { micros: 2_000_000, unit, ..Default::default() }));
        Command::Complete(Completion { cost, ..case.completion(Outcome::Completed { output: Json::null() }) })
    };
    let refused = case.refuse(report(&case, Some("USD")));
    assert_eq!(refused.code(), "INPUT_INVALID");
    assert!(refused.to_string().contains("counts in `credits`"), "{refused}");
    assert_eq!(case.run.notes.spent_micros, 0, "nothing of it counts");
    case.tell(report(&case, None));
    assert_eq!((case.run.notes.spent_micros, case.run.notes.spent_unit.as_deref()), (2_000_000, Some("credits")));
    assert_eq!((case.run.state, case.run.reason), (RunState::Failed, Some(Reason::SpendExhausted)));
    let error = case.step(1).last_error.clone().unwrap();
    assert!(error.message.contains("has spent 2 of the 2 credits that `limits.spend` allows"), "{}", error.message);
}

/// A model without a known price has used up what was left to spend.
#[test]
fn what_has_no_price_counts_as_all_that_is_left() {
    for cost in [None, Some(crate::cost::Cost { unpriced: true, ..Default::default() })] {
        let model = crate::plan::Work::Model { model: "m".into(), with: None };
        let mut plan = plan(vec![crate::plan::StepSpec::new("ask", model), task("b")]);
        plan.rules.spend_max_micros = Some(100);
        let mut case = Case::of(plan);
        case.claim();
        let outcome = Outcome::Completed { output: Json::null() };
        case.tell(Command::Complete(Completion { cost: cost.map(Box::new), ..case.completion(outcome) }));
        assert_eq!((case.run.notes.spent_micros, case.run.reason), (100, Some(Reason::SpendExhausted)));
        assert!(case.run.notes.unpriced, "the tenant's rules may limit what is spent too");
        let error = case.step(1).last_error.clone().unwrap();
        assert!(
            error.message.contains("the price of something that the run has used is not known"),
            "{}",
            error.message
        );
        assert!(
            crate::decide::resume(&case.run, None).unwrap().used.unpriced,
            "a run that goes on with it knows it too"
        );
    }
}

/// One of the ways in which an attempt ends without a report.
type AttemptEnd = fn(&mut Case);

/// A model that may have been asked is paid for, though its worker does not say so: the run does not ask again and again.
#[test]
fn a_model_step_without_a_report_has_an_unknown_cost() {
    let asking = |max: Option<u64>| {
        let model = crate::plan::Work::Model { model: "m".into(), with: None };
        let mut spec = crate::plan::StepSpec::new("ask", model);
        spec.timeout = Some(Millis::from_secs(5));
        let mut plan = plan(vec![spec, task("b")]);
        plan.rules.spend_max_micros = max;
        let mut case = Case::of(plan);
        case.claim();
        case
    };
    let ways: [(&str, AttemptEnd); 4] = [
        ("LEASE_EXPIRED", |case| {
            case.tells(Case::lease_expired);
        }),
        ("STEP_TIMEOUT", |case| {
            case.after(Millis::from_secs(6)).tells(Case::step_timeout);
        }),
        ("RELEASED", |case| {
            case.tells(Case::release);
        }),
        ("RUN_DEADLINE", |case| {
            let error = StepError::new(ErrorClass::Timeout, "RUN_DEADLINE", "too long");
            case.tell(Command::FailRun { reason: Reason::Deadline, error });
        }),
    ];
    for (code, end) in ways {
        let mut capped = asking(Some(100));
        end(&mut capped);
        assert_eq!((capped.run.state, capped.run.notes.spent_micros), (RunState::Failed, 100), "{code}");
        assert!(capped.run.notes.unpriced, "{code}");
        let error = capped.step(0).last_error.clone().unwrap();
        assert_eq!(error.code, code);
        if code != "RUN_DEADLINE" {
            assert_eq!(capped.run.reason, Some(Reason::SpendExhausted), "{code}");
            assert!(error.message.contains("is not known"), "{}", error.message);
        }
        let mut free = asking(None);
        end(&mut free);
        assert!(free.run.notes.unpriced, "{code}: the tenant's rules may limit what is spent");
        assert_eq!(free.run.state == RunState::Failed, code == "RUN_DEADLINE", "{code}: another try");
    }
    // A worker that says what it has cost is believed, and what never reached it has cost nothing.
    let (mut told, mut unsent) = (asking(Some(100)), asking(Some(100)));
    let cost = Some(Box::new(crate::cost::Cost { micros: 40, ..Default::default() }));
    let (position, attempt) = (0, 1);
    told.tell(Command::Release { position, attempt, cost });
    assert_eq!((told.run.notes.spent_micros, told.run.notes.unpriced), (40, false));
    assert_eq!(told.run.current().state(), StepState::Ready);
    unsent.tell(Command::Undelivered { position, attempt });
    assert_eq!((unsent.run.notes.spent_micros, unsent.run.notes.unpriced), (0, false));
}
