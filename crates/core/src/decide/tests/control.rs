//! The operator's directives.

use super::case::{Answer, Answers, Case, Opening, cancel, json, pause, retry, roll_back, skip};
use super::plans::{Tuned, conditional, gate, plan, signal, task, tasks};
use crate::decide::Command;
use crate::limits;
use crate::plan::retry::ErrorClass;
use crate::plan::{OnDenial, OnFailure, Plan};
use crate::rejection::Rejection;
use crate::run::Phase;
use crate::state::{Reason, RunState, StepState};
use crate::time::Millis;

fn failed(steps: usize) -> Case {
    let mut case = Case::of(Plan { on_failure: Some(OnFailure::Pause), ..tasks(steps) });
    case.claim().dies();
    case
}

#[test]
fn pause_and_resume_come_back_to_where_the_run_was() {
    let mut retrying = Case::of(tasks(1));
    retrying.claim().fails(ErrorClass::Unavailable);
    let mut running = Case::of(tasks(1));
    running.claim();
    let cases = vec![
        Case::of(tasks(1)),
        running,
        retrying,
        Case::of(plan(vec![signal("w", None)])),
        Case::of(plan(vec![gate("g", OnDenial::Fail)])),
    ];
    for mut case in cases {
        let (state, row) = (case.state(), case.row());
        case.tell(pause());
        assert_eq!((case.state(), case.names()), (RunState::Paused, vec!["session.paused"]));
        assert_eq!(case.run.notes.pause.as_ref().unwrap().by.as_deref(), Some("ann@example.com"));
        assert!(matches!(case.refuse(pause()), Rejection::InvalidRunState { .. }));
        case.tell(Command::Resume);
        assert_eq!((case.state(), case.names()), (state, vec!["session.resumed"]));
        let expected = crate::run::change::LiveRow { version: case.run.version, ..row };
        assert_eq!(case.row(), expected, "nothing is forgotten over a pause");
        assert!(matches!(case.refuse(Command::Resume), Rejection::InvalidRunState { .. }));
    }
}

#[test]
fn resume_is_refused_where_a_directive_is_due() {
    let mut case = failed(2);
    let no = case.refuse(Command::Resume);
    assert_eq!(no.code(), "RUN_DIRECTIVE_DUE");
}

#[test]
fn retry_is_a_new_iteration_with_a_fresh_budget() {
    let mut case = failed(1);
    case.tell(retry());
    let step = case.step(0);
    assert_eq!((step.iteration, step.failures, step.attempt), (1, 0, 1));
    assert_eq!((step.state(), step.last_error.as_ref()), (StepState::Ready, None));
    assert_eq!((case.state(), case.run.reason), (RunState::Running, None));
    case.run_step();
    assert_eq!((case.state(), case.step(0).attempt), (RunState::Succeeded, 2));
}

#[test]
fn retry_may_change_the_input_within_limits() {
    let mut case = failed(1);
    let large = json(&format!("\"{}\"", "x".repeat(limits::PAYLOAD_BYTES_MAX)));
    assert!(matches!(case.refuse(Command::Retry { input: Some(large) }), Rejection::TooLarge { .. }));
    case.tell(Command::Retry { input: Some(json(r#"{"fixed":true}"#)) });
    assert_eq!(case.run.input(0), json(r#"{"fixed":true}"#));
}

#[test]
fn retry_opens_a_wait_anew() {
    let mut case = Case::of(plan(vec![signal("w", Some(Millis(10))).when_failed(OnFailure::Pause)]));
    case.until_wake().tell(Command::Tick).tell(retry());
    assert_eq!((case.state(), case.row().wake_at), (RunState::WaitingSignal, Some(case.now + Millis(10))));
}

#[test]
fn retry_and_skip_need_a_paused_run_and_a_step_that_stopped_it() {
    for command in [retry(), skip()] {
        let mut active = Case::of(tasks(1));
        assert!(matches!(active.refuse(command.clone()), Rejection::InvalidRunState { .. }));
        active.claim().tell(pause());
        assert!(matches!(active.refuse(command.clone()), Rejection::InvalidTransition { .. }), "it still runs");
        let mut ready = Case::of(tasks(1));
        ready.tell(pause());
        assert!(matches!(ready.refuse(command), Rejection::InvalidTransition { .. }), "it has not failed");
    }
}

/// An expression that cannot be evaluated will not be better for asking again.
#[test]
fn a_step_that_could_not_be_bound_needs_an_input() {
    let mut opening = Opening::of(Plan { on_failure: Some(OnFailure::Pause), ..conditional(1) });
    opening.answers = Answers::from([(0, Answer::Broken)]);
    let mut case = opening.start();
    assert_eq!((case.state(), case.step(0).state()), (RunState::Paused, StepState::Failed));
    assert!(matches!(case.refuse(retry()), Rejection::InvalidInput { .. }));
    case.tell(Command::Retry { input: Some(json("1")) }).run_step();
    assert_eq!(case.state(), RunState::Succeeded);
}

#[test]
fn skip_keeps_its_reason_and_goes_on() {
    let mut case = failed(2);
    for reason in ["", "  "] {
        let no = case.refuse(Command::Skip { reason: reason.into(), voter: None });
        assert!(matches!(no, Rejection::InvalidInput { .. }));
    }
    case.tell(skip());
    assert_eq!(case.steps(), [StepState::Skipped, StepState::Ready]);
    assert!(matches!(&case.step(0).phase, Phase::Skipped { why } if why == "done by hand"));
    assert_eq!(case.names(), ["execution.step.skipped", "session.resumed"]);
    let mut last = failed(1);
    assert_eq!(last.tell(skip()).state(), RunState::Succeeded);
}

#[test]
fn reasons_have_a_limit() {
    let reason = "x".repeat(limits::REASON_BYTES_MAX + 1);
    let mut case = failed(1);
    for command in [
        Command::Pause { reason: reason.clone() },
        Command::Skip { reason: reason.clone(), voter: None },
        Command::Rollback { reason: reason.clone(), from: None },
        Command::Cancel { reason, rollback: false },
    ] {
        assert!(matches!(case.refuse(command), Rejection::TooLarge { what: "the reason", .. }));
    }
}

fn stopped_at_the_third() -> Case {
    let mut case = Case::of(Plan { on_failure: Some(OnFailure::Pause), ..tasks(4) });
    case.run_step().run_step().claim().dies();
    case
}

#[test]
fn restart_goes_back_and_runs_everything_from_there_again() {
    use StepState::{Pending, Ready, Succeeded};
    let mut case = stopped_at_the_third();
    case.tell(Command::RestartFrom { position: 1 });
    assert_eq!(case.steps(), [Succeeded, Ready, Pending, Pending]);
    let iterations: Vec<_> = case.run.steps.iter().map(|step| step.iteration).collect();
    assert_eq!(iterations, [0, 1, 1, 0]);
    let attempts: Vec<_> = case.run.steps.iter().map(|step| step.attempt).collect();
    assert_eq!(attempts, [1, 1, 1, 0], "attempts are never reused");
    assert_eq!(case.step(1).result(), None);
    case.run_step().run_step().run_step();
    assert_eq!(case.state(), RunState::Succeeded);
    assert_eq!(case.step(2).attempt, 2);
}

#[test]
fn restart_from_the_first_and_from_the_failed_step() {
    for position in [0, 2] {
        let mut case = stopped_at_the_third();
        case.tell(Command::RestartFrom { position });
        assert_eq!((case.run.position, case.state()), (position, RunState::Running));
        for _ in position..4 {
            case.run_step();
        }
        assert_eq!(case.state(), RunState::Succeeded);
    }
}

#[test]
fn restart_binds_and_judges_anew() {
    use StepState::{Pending, Ready, Skipped, Succeeded};
    let mut case = Case::of(Plan { on_failure: Some(OnFailure::Pause), ..conditional(4) });
    case.run_step().run_step().claim().dies();
    case.answers = Answers::from([(1, Answer::ConditionFalse), (2, Answer::input(r#"{"again":1}"#))]);
    case.tell(Command::RestartFrom { position: 1 });
    assert_eq!(case.steps(), [Succeeded, Skipped, Ready, Pending]);
    assert_eq!(case.run.input(2), json(r#"{"again":1}"#));
}

#[test]
fn what_cannot_be_restarted() {
    let mut case = stopped_at_the_third();
    for position in [4, 99] {
        assert!(matches!(case.refuse(Command::RestartFrom { position }), Rejection::UnknownStep { .. }));
    }
    let no = case.refuse(Command::RestartFrom { position: 3 });
    assert_eq!(no.code(), "STEP_NOT_REACHED");
    assert!(no.to_string().contains("`t3`") && no.to_string().contains("stands at `t2`"), "{no}");
    let restart = Command::RestartFrom { position: 0 };
    let mut active = Case::of(tasks(1));
    assert!(matches!(active.refuse(restart.clone()), Rejection::InvalidRunState { .. }));
    let mut running = Case::of(tasks(1));
    running.claim().tell(pause());
    assert!(matches!(running.refuse(restart.clone()), Rejection::InvalidRunState { .. }));
    let mut rolled = Case::of(plan(vec![task("a").undoable(), task("b").when_failed(OnFailure::Pause)]));
    rolled.run_step().claim().dies().tell(roll_back()).tell(pause());
    assert!(matches!(rolled.refuse(restart.clone()), Rejection::InvalidRunState { .. }));
}

#[test]
fn a_run_that_was_paused_before_it_started_is_pending_again() {
    let mut case = Case::of(tasks(1));
    case.tell(pause()).tell(Command::Resume);
    assert_eq!(case.state(), RunState::Pending);
    let mut gated = Case::of(plan(vec![gate("g", OnDenial::Pause), task("t")]));
    gated.tells(|case| case.vote("ann", false)).tell(skip());
    assert_eq!(gated.state(), RunState::Pending);
}

#[test]
fn a_directive_ends_the_pause_for_good() {
    for command in [retry(), skip(), Command::RestartFrom { position: 0 }, cancel(true)] {
        let mut case = Case::of(plan(vec![task("a").undoable(), task("b").when_failed(OnFailure::Pause), task("c")]));
        case.run_step().claim().dies();
        assert_eq!((case.state(), case.run.reason), (RunState::Paused, Some(Reason::StepFailed)));
        case.tell(command);
        assert_eq!(case.run.notes.pause, None);
    }
}

/// Its deadline would end the pause and undo what may have been done since the backup.
#[test]
fn a_paused_run_is_parked_as_well() {
    let mut case = Case::of(Plan { timeout: Some(Millis(1_000)), ..tasks(2) });
    case.tell(pause()).tell(Command::Park);
    assert_eq!((case.state(), case.run.reason), (RunState::Paused, Some(Reason::Restored)));
    assert_eq!(case.row().wake_at, None);
    case.after(Millis(1_000)).refuse(Command::Tick);
    case.tell(Command::Resume);
    assert!(!case.run.notes.restored && case.run.reason.is_none());
}
