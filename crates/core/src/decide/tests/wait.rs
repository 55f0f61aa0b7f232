//! Waits: a signal, a timer, a timeout; on the `wait` kind and on a task that waits.

use super::case::{Answer, Answers, Case, json, pause};
use super::plans::{Tuned, plan, signal, task, tasks, timer};
use crate::decide::{Command, Outcome, Rendered};
use crate::limits;
use crate::plan::{Accept, OnFailure, StepSpec, WaitFor, Work};
use crate::rejection::Rejection;
use crate::run::Phase;
use crate::run::change::SideWrite;
use crate::state::{Reason, RunState, StepState, TaskType};
use crate::time::{Millis, Timestamp};

pub fn waiting(case: &Case, timeout: Option<Millis>) -> Command {
    case.reports(Outcome::Waiting { signal: "go".into(), key: "k".into(), timeout, outbound: Vec::new() })
}

#[test]
fn a_signal_ends_a_wait_step_and_is_its_output() {
    let mut case = Case::of(plan(vec![signal("w", None), task("t")]));
    assert_eq!((case.state(), case.row().wake_at), (RunState::WaitingSignal, None));
    case.tells(|case| case.wake(r#"{"by":"ann"}"#));
    assert_eq!(case.steps(), [StepState::Succeeded, StepState::Ready]);
    assert_eq!(case.step(0).output, Some(json(r#"{"by":"ann"}"#)));
    assert!(matches!(
        case.change.side.as_slice(),
        [SideWrite::CloseWait { position: 0 }, SideWrite::ConsumeSignal { position: 0, .. }]
    ));
    assert_eq!(case.state(), RunState::Running);
}

#[test]
fn a_signal_makes_a_task_ready_with_its_payload() {
    let mut case = Case::of(tasks(1));
    case.claim().tells(|case| waiting(case, None));
    case.tells(|case| case.wake("7"));
    assert_eq!(case.state(), RunState::Running);
    case.claim();
    let Phase::Running { wake: Some(wake), .. } = &case.step(0).phase else { panic!() };
    assert_eq!((wake.task_type, wake.payload.clone()), (TaskType::Signal, Some(json("7"))));
    assert_eq!((case.step(0).attempt, case.step(0).failures), (2, 0));
}

#[test]
fn a_timeout_fails_a_wait_step_and_wakes_a_task() {
    let mut case = Case::of(plan(vec![signal("w", Some(Millis(100)))]));
    assert!(matches!(case.refuse(Command::Tick), Rejection::InvalidTransition { .. }));
    case.after(Millis(100)).tell(Command::Tick);
    assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::WaitTimeout)));
    assert_eq!(case.step(0).last_error.as_ref().unwrap().code, "WAIT_TIMEOUT");

    let mut case = Case::of(tasks(1));
    case.claim().tells(|case| waiting(case, Some(Millis(100)))).until_wake().tell(Command::Tick).claim();
    let Phase::Running { wake: Some(wake), .. } = &case.step(0).phase else { panic!() };
    assert_eq!((wake.task_type, wake.payload.clone()), (TaskType::WaitingTimeout, None));
    assert_eq!(case.step(0).failures, 0, "not its fault");
}

#[test]
fn restart_to_the_wait_that_a_paused_run_stands_at_opens_it_anew() {
    let mut case = Case::of(plan(vec![signal("w", None), task("t")]));
    case.tell(pause()).tell(Command::RestartFrom { position: 0 });
    assert_eq!((case.state(), case.step(0).iteration), (RunState::WaitingSignal, 1));
    let waits = |write: &&SideWrite| matches!(write, SideWrite::CloseWait { .. } | SideWrite::OpenWait { .. });
    let waits: Vec<_> = case.change.side.iter().filter(waits).collect();
    assert!(matches!(waits[..], [SideWrite::CloseWait { position: 0 }, SideWrite::OpenWait { position: 0, .. }]));
    case.tells(|case| case.wake("1"));
    assert_eq!(case.steps(), [StepState::Succeeded, StepState::Ready]);

    let mut timed = Case::of(plan(vec![timer("w", Millis(100))]));
    timed.after(Millis(60)).tell(pause()).tell(Command::RestartFrom { position: 0 });
    timed.after(Millis(60));
    assert!(matches!(timed.refuse(Command::Tick), Rejection::InvalidTransition { .. }), "the timer began anew");
    timed.after(Millis(40)).tell(Command::Tick);
    assert_eq!(timed.state(), RunState::Succeeded);
}

#[test]
fn restart_from_before_a_wait_closes_it() {
    let mut case = Case::of(plan(vec![task("t"), signal("w", None)]));
    case.run_step().tell(pause()).tell(Command::RestartFrom { position: 0 });
    assert_eq!(case.steps(), [StepState::Ready, StepState::Pending]);
    assert!(case.change.side.iter().any(|write| matches!(write, SideWrite::CloseWait { position: 1 })));
    assert!(!case.change.side.iter().any(|write| matches!(write, SideWrite::OpenWait { .. })));

    let mut task = Case::of(tasks(1));
    task.claim().tells(|case| waiting(case, None)).tell(pause()).tell(Command::RestartFrom { position: 0 });
    assert_eq!((task.steps(), task.step(0).iteration), (vec![StepState::Ready], 1));
    assert!(task.change.side.iter().any(|write| matches!(write, SideWrite::CloseWait { position: 0 })));
}

#[test]
fn a_wait_that_timed_out_follows_the_rule() {
    let step = signal("w", Some(Millis(100))).when_failed(OnFailure::Pause);
    let mut case = Case::of(plan(vec![step]));
    case.until_wake().tell(Command::Tick);
    assert_eq!((case.state(), case.row().wake_at), (RunState::Paused, None));
}

#[test]
fn a_timer_succeeds_when_it_is_due_and_no_signal_ends_it() {
    let mut case = Case::of(plan(vec![timer("t", Millis(100)), task("u")]));
    assert_eq!(case.state(), RunState::WaitingSignal);
    assert!(!case.change.side.iter().any(|side| matches!(side, SideWrite::OpenWait { .. })));
    let wake = case.wake("1");
    assert!(matches!(case.refuse(wake), Rejection::InvalidTransition { .. }));
    case.after(Millis(99)).refuse(Command::Tick);
    case.after(Millis(1)).tell(Command::Tick);
    assert_eq!(case.steps(), [StepState::Succeeded, StepState::Ready]);
}

fn until(bound: Option<Timestamp>) -> Case {
    let work = Work::Wait { until: WaitFor::Until("${{ inputs.at }}".into()), timeout: None };
    let mut opening = super::case::Opening::of(plan(vec![StepSpec::new("u", work)]));
    opening.answers = Answers::from([(0, Answer::Renders(Rendered { wait_until: bound, ..Rendered::default() }))]);
    opening.start()
}

#[test]
fn a_timer_may_be_given_an_instant() {
    let at = super::case::START + Millis(5_000);
    let mut case = until(Some(at));
    assert_eq!(case.row().wake_at, Some(at));
    case.until_wake().tell(Command::Tick);
    assert_eq!(case.state(), RunState::Succeeded);
    let mut past = until(Some(Timestamp(1)));
    assert_eq!(past.tell(Command::Tick).state(), RunState::Succeeded);
}

#[test]
fn which_signals_count() {
    let accept_from = |accept| {
        let until = WaitFor::Signal { signal: "go".into(), key: None, accept };
        let step = StepSpec::new("w", Work::Wait { until, timeout: None });
        let mut case = Case::of(plan(vec![task("t"), step]));
        case.claim().after(Millis(30)).complete();
        let Phase::WaitingSignal(wait) = &case.step(1).phase else { panic!() };
        let awaited = wait.signal.clone().unwrap();
        assert_eq!(awaited.key, "INC-1", "the subject is the key by default");
        awaited.accept_from
    };
    // The server that receives a signal may have a clock that is behind this one's.
    let skew = crate::limits::CLOCK_SKEW_TOLERATED;
    assert_eq!(accept_from(Accept::SinceRun), super::case::START - skew);
    assert_eq!(accept_from(Accept::SinceStep), super::case::START + Millis(30) - skew);
    assert_eq!(accept_from(Accept::Any), Timestamp(0));
}

#[test]
fn a_wait_on_the_runs_own_id_accepts_everything() {
    let probe = Case::of(plan(vec![task("t")]));
    let own = probe.run.id.to_string();
    let until = WaitFor::Signal { signal: "go".into(), key: Some(own), accept: Accept::SinceRun };
    let case = Case::of(plan(vec![StepSpec::new("w", Work::Wait { until, timeout: None })]));
    assert_eq!(case.run.id, probe.run.id, "each case has the same id");
    let Phase::WaitingSignal(wait) = &case.step(0).phase else { panic!() };
    assert_eq!(wait.signal.as_ref().unwrap().accept_from, Timestamp(0));
}

#[test]
fn while_paused_signals_and_timers_are_recorded() {
    let mut case = Case::of(plan(vec![signal("w", None), task("t")]));
    let wake = case.wake("1");
    case.tell(pause()).tell(wake);
    assert_eq!((case.state(), case.step(1).state()), (RunState::Paused, StepState::Ready));
    assert_eq!(case.row().eligible_at, None);
    case.tell(Command::Resume).claim();

    let mut case = Case::of(plan(vec![timer("w", Millis(5)), task("t")]));
    case.tell(pause()).until_wake().tell(Command::Tick);
    assert_eq!((case.state(), case.step(1).state()), (RunState::Paused, StepState::Ready));
}

#[test]
fn a_signal_for_a_step_that_does_not_wait_is_refused() {
    let mut case = Case::of(tasks(2));
    for position in [0, 1, 9] {
        let Command::Wake { signal, payload, .. } = case.wake("1") else { unreachable!() };
        let no = case.refuse(Command::Wake { position, signal, payload, broadcast: false });
        assert!(matches!(no, Rejection::InvalidTransition { .. }), "{no}");
    }
}

#[test]
fn a_signal_comes_once_and_loses_against_the_clock() {
    let mut case = Case::of(plan(vec![signal("w", Some(Millis(100))), task("t")]));
    case.until_wake().tell(Command::Tick);
    assert!(case.state().is_terminal());
    let mut case = Case::of(plan(vec![signal("w", Some(Millis(100))), task("t")]));
    let (first, second) = (case.wake("1"), case.wake("2"));
    case.tell(first).refuse(second);
    case.after(Millis(100)).refuse(Command::Tick);
}

#[test]
fn a_signal_that_is_too_large_for_an_output_is_refused() {
    let mut case = Case::of(plan(vec![signal("w", None)]));
    let wake = case.wake(&format!("\"{}\"", "x".repeat(limits::PAYLOAD_BYTES_MAX)));
    assert!(matches!(case.refuse(wake), Rejection::TooLarge { .. }));
}
