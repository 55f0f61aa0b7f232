//! What `why` reads off a run, and that whatever it advises is accepted.

use super::case::{Case, Opening, cancel, pause, reassign, retry, roll_back, skip};
use super::plans::{Tuned as _, gate, plan, signal, task, tasks, timer};
use crate::decide::{Command, Queued};
use crate::ids::RunId;
use crate::json::Json;
use crate::limits;
use crate::plan::retry::ErrorClass;
use crate::plan::{OnDenial, OnFailure, Plan};
use crate::run::receipt::Receipt;
use crate::run::why::{Cause, Explanation, Heartbeat, LimitOf, Remedy, Surroundings, Throttle, WorkerSettings, why};
use crate::state::{ApprovalState, EffectClass, ReceiptState, RunState};
use crate::tenant::caps::ReachedCap;
use crate::time::Millis;

fn explain(case: &Case) -> Explanation {
    let explanation = why(&case.run, case.now, Surroundings { workers: Some(0), ..Surroundings::default() });
    assert_eq!(explanation.state, case.state());
    for remedy in &explanation.next {
        let command = match remedy {
            Remedy::Cancel => cancel(false),
            Remedy::Resume => Command::Resume,
            Remedy::Reassign => reassign(),
            Remedy::Retry if !case.state().is_terminal() => retry(),
            Remedy::Skip => skip(),
            Remedy::Rollback => roll_back(),
            Remedy::Approve => case.vote("bob", true),
            Remedy::Reject => case.vote("bob", false),
            Remedy::Signal => case.wake("1"),
            // What a worker, a person with facts, or a new run does.
            Remedy::Wait
            | Remedy::StartWorker
            | Remedy::SwitchOn
            | Remedy::Resolve
            | Remedy::Restart
            | Remedy::Retry => continue,
        };
        assert!(case.is_accepted(command), "{remedy} was advised for {explanation:?}");
    }
    explanation
}

fn first(case: &Case) -> Cause {
    explain(case).because.into_iter().next().expect("there is always a cause")
}

#[test]
fn an_unclaimed_step_names_its_queue_and_task() {
    let case = Case::of(tasks(1));
    let explanation = explain(&case);
    assert!(matches!(&explanation.because[..], [Cause::Unclaimed { queue, task: Some(_), workers: Some(0), .. }]
        if queue == "default"));
    assert_eq!(explanation.next, [Remedy::StartWorker, Remedy::Cancel]);
    let staffed = why(&case.run, case.now, Surroundings { workers: Some(3), ..Surroundings::default() });
    assert_eq!(staffed.next, [Remedy::Wait, Remedy::Cancel]);
}

#[test]
fn a_task_that_no_worker_knows_is_named_and_offered_again_ever_later() {
    let mut case = Case::of(tasks(1));
    let mut pauses = Vec::new();
    for attempt in 1..=6 {
        case.claim();
        case.tell(Command::UnknownTask { position: 0, attempt });
        let explanation = explain(&case);
        assert_eq!(explanation.next, [Remedy::StartWorker, Remedy::Cancel]);
        assert_eq!(case.step(0).last_error.as_ref().unwrap().code, "TASK_UNKNOWN");
        let [Cause::UnknownTask { queue, task, next_attempt_at }] = &explanation.because[..] else {
            panic!("{explanation:?}")
        };
        assert!(queue == "default" && !task.is_empty());
        pauses.push(next_attempt_at.since(case.now).0);
        case.now = *next_attempt_at;
    }
    assert_eq!(pauses, [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
    assert_eq!(case.run.current().failures, 0, "it costs the step nothing");
}

#[test]
fn a_limit_holds_only_what_could_be_claimed() {
    let throttle = Throttle::new(LimitOf::Workflow, ReachedCap::Concurrency { max: 1 });
    let around = Surroundings { workers: Some(1), throttle: Some(throttle), ..Surroundings::default() };
    let mut case = Case::of(tasks(1));
    let held = why(&case.run, case.now, around);
    assert!(matches!(held.because[..], [Cause::Throttled(shown)] if shown == throttle));
    assert_eq!(held.next, [Remedy::Wait, Remedy::Cancel]);
    let unstaffed = why(&case.run, case.now, Surroundings { workers: Some(0), ..around });
    assert!(matches!(unstaffed.because[..], [Cause::Throttled(_), Cause::Unclaimed { .. }]));
    case.claim();
    let running = why(&case.run, case.now, around);
    assert!(matches!(running.because[..], [Cause::Running { .. }]));
}

/// Long before the step is taken back: a reader of `why` must not be told to wait for a dead process.
#[test]
fn a_worker_that_has_fallen_silent_is_named_within_seconds() {
    let mut case = Case::of(tasks(1));
    case.claim();
    let lease = case.now + Millis::from_secs(20);
    let after = |seconds: u64, workers: u32| {
        let around = Surroundings {
            workers: Some(workers),
            heartbeat: Some(Heartbeat::At(case.now)),
            worker: Some(("mill-7", lease)),
            ..Surroundings::default()
        };
        why(&case.run, case.now + Millis::from_secs(seconds), around)
    };
    let [Cause::Running { worker, expected_every_ms, .. }] = &after(9, 0).because[..] else {
        panic!("{:?}", after(9, 0))
    };
    assert_eq!((worker.as_deref(), *expected_every_ms), (Some("mill-7"), Some(Millis(5_000))), "it is late");
    let heard = after(6, 0);
    let [Cause::Running { expected_every_ms, .. }] = &heard.because[..] else { panic!("{heard:?}") };
    assert_eq!(*expected_every_ms, None);
    let silent = after(12, 0);
    let [Cause::Silent { worker, last_heartbeat_at, lease_expires_at, .. }] = &silent.because[..] else {
        panic!("{silent:?}")
    };
    assert_eq!((worker.as_deref(), *last_heartbeat_at, *lease_expires_at), (Some("mill-7"), case.now, Some(lease)));
    assert_eq!(silent.next, [Remedy::StartWorker, Remedy::Cancel], "no other worker would take it");
    assert_eq!(after(12, 1).next, [Remedy::Wait, Remedy::Cancel]);
    assert!(matches!(after(301, 0).because[..], [Cause::Orphaned { .. }]));
}

#[test]
fn a_worker_is_late_and_silent_by_how_often_it_renews_its_session() {
    let mut case = Case::of(tasks(1));
    case.claim();
    let after = |seconds: u64, renewal: Millis| {
        let around = Surroundings {
            heartbeat: Some(Heartbeat::At(case.now)),
            settings: WorkerSettings { renewal, ..WorkerSettings::default() },
            ..Surroundings::default()
        };
        match &why(&case.run, case.now + Millis::from_secs(seconds), around).because[..] {
            [Cause::Running { expected_every_ms, .. }] => Ok(*expected_every_ms),
            [Cause::Silent { .. }] => Err("silent"),
            [Cause::Orphaned { .. }] => Err("orphaned"),
            other => panic!("{other:?}"),
        }
    };
    let minute = Millis::from_mins(1);
    for (seconds, told) in [(61, Ok(None)), (62, Ok(Some(minute))), (121, Ok(Some(minute))), (122, Err("silent"))] {
        assert_eq!(after(seconds, minute), told, "{seconds} s");
    }
    for (seconds, told) in [(480, "silent"), (481, "orphaned")] {
        assert_eq!(after(seconds, minute), Err(told), "eight renewals, not five minutes: {seconds} s");
    }
    let second = Millis::from_secs(1);
    for (seconds, told) in [(2, Ok(None)), (3, Ok(Some(second))), (4, Err("silent"))] {
        assert_eq!(after(seconds, second), told, "{seconds} s");
    }
}

#[test]
fn a_running_step_a_retry_and_a_timer_say_until_when() {
    let mut case = Case::of(tasks(1));
    case.claim();
    assert!(matches!(first(&case), Cause::Running { attempt: 1, .. }));
    case.fails(ErrorClass::Unavailable);
    match first(&case) {
        Cause::Backoff { failures: 1, next_attempt_at, error, .. } => {
            assert!(next_attempt_at > case.now && error.code == "E");
        }
        // Full jitter may draw no wait at all.
        other => assert!(matches!(other, Cause::Unclaimed { .. }), "{other:?}"),
    }
    let case = Case::of(plan(vec![timer("t", Millis(500))]));
    assert_eq!(first(&case), Cause::Timer { until: case.now + Millis(500) });
}

#[test]
fn a_rollback_says_what_it_waits_for() {
    let mut case = Case::of(plan(vec![task("a").undoable().attempts(1)]));
    case.claim().tells(Case::lease_expired);
    let because = explain(&case).because;
    let settled_at = case.now + limits::EFFECT_SETTLES_AFTER;
    assert!(because.contains(&Cause::Settling { until: settled_at }), "{because:?}");
}

#[test]
fn waits_name_whom_they_wait_for() {
    let case = Case::of(plan(vec![signal("w", Some(Millis(100))), task("t")]));
    assert!(matches!(first(&case), Cause::Signal { key, until: Some(_), .. } if key == "INC-1"));
    assert_eq!(explain(&case).next, [Remedy::Signal, Remedy::Cancel]);

    let case = Case::of(plan(vec![gate("g", OnDenial::Fail)]));
    assert!(matches!(first(&case), Cause::Approval { needed: 1.., .. }));
    assert_eq!(explain(&case).next, [Remedy::Approve, Remedy::Reject, Remedy::Cancel]);
}

#[test]
fn a_pause_says_who_and_a_due_directive_which() {
    let mut case = Case::of(tasks(1));
    case.tell(pause());
    assert!(matches!(first(&case), Cause::Paused { by: Some(by), .. } if by == "ann@example.com"));
    assert_eq!(explain(&case).next, [Remedy::Resume, Remedy::Cancel]);

    let mut case = Case::of(Plan { on_failure: Some(OnFailure::Pause), ..tasks(2) });
    case.claim().dies();
    let explanation = explain(&case);
    assert!(explanation.because.iter().any(|cause| matches!(cause, Cause::StepFailed { error: Some(_), .. })));
    // There is nothing to undo yet.
    assert_eq!(explanation.next, [Remedy::Retry, Remedy::Skip, Remedy::Cancel]);

    let steps = vec![task("t").undoable(), task("u")];
    let mut case = Case::of(Plan { on_failure: Some(OnFailure::Pause), ..plan(steps) });
    case.run_step().claim().dies();
    assert_eq!(explain(&case).next, [Remedy::Retry, Remedy::Skip, Remedy::Rollback, Remedy::Cancel]);

    let mut case = Case::of(plan(vec![gate("g", OnDenial::Pause), task("t")]));
    case.tells(|case| case.vote("bob", false));
    let explanation = explain(&case);
    let denied = |cause: &Cause| matches!(cause, Cause::Denied { state: ApprovalState::Rejected, .. });
    assert!(explanation.because.iter().any(denied), "{explanation:?}");
}

#[test]
fn a_doubt_is_for_a_person_and_an_end_is_an_end() {
    let mut case = Case::of(tasks(1));
    case.claim().tells(|case| case.intent(EffectClass::Unsafe));
    case.tells(Case::lease_expired);
    assert!(explain(&case).because.iter().any(|cause| matches!(cause, Cause::Doubt { .. })));
    assert_eq!(explain(&case).next, [Remedy::Resolve, Remedy::Cancel]);

    // A canceled run tells the doubt that it left, and is not offered for a retry before it is settled.
    let found = explain(&case).because.into_iter().find_map(|cause| match cause {
        Cause::Doubt { receipt, step } => Some((receipt, step)),
        _ => None,
    });
    let (id, step) = found.unwrap();
    assert_eq!(step.as_deref(), Some(case.run.spec(0).key.as_str()));
    case.tells(|_| cancel(false));
    let left = Receipt {
        id,
        position: 0,
        iteration: 0,
        attempt: 1,
        key: "bank#1".to_owned(),
        effect: EffectClass::Unsafe,
        state: ReceiptState::InDoubt,
        request: Json::null(),
        response: None,
        intent_at: case.now,
        outcome_at: None,
        late: false,
        unsettled: false,
        bundle: None,
    };
    let around = Surroundings { left_in_doubt: std::slice::from_ref(&left), ..Surroundings::default() };
    let explanation = why(&case.run, case.now, around);
    assert!(matches!(&explanation.because[..], [Cause::Ended { .. }, Cause::Doubt { .. }]), "{explanation:?}");
    assert_eq!(explanation.next, [Remedy::Resolve]);
    assert_eq!(why(&case.run, case.now, Surroundings::default()).next, [Remedy::Retry, Remedy::Restart]);

    let mut case = Case::of(tasks(1));
    case.run_step();
    assert_eq!(case.state(), RunState::Succeeded);
    assert!(matches!(explain(&case).because[..], [Cause::Ended { .. }]));
    assert!(explain(&case).next.is_empty());

    let mut case = Case::of(tasks(1));
    case.claim().dies();
    let explanation = explain(&case);
    assert!(matches!(&explanation.because[..], [Cause::Ended { .. }, Cause::StepFailed { .. }]));
    assert_eq!(explanation.next, [Remedy::Retry, Remedy::Restart]);
}

#[test]
fn a_queued_run_names_the_one_that_holds_its_subject() {
    let opening = Opening { queued: Some(Queued { cancels: false }), ..Opening::of(tasks(1)) };
    let case = opening.start();
    let holder = RunId(uuid::Uuid::from_u128(77));
    let around = Surroundings { holder: Some((holder, RunState::Paused)), ..Surroundings::default() };
    let explanation = why(&case.run, case.now, around);
    let [Cause::Queued { subject, held_by, holder_state }] = &explanation.because[..] else {
        panic!("{explanation:?}")
    };
    assert_eq!((Some(subject), *held_by), (case.run.header.subject.as_ref(), Some(holder)));
    assert_eq!(*holder_state, Some(RunState::Paused));
    assert_eq!(explanation.next, [Remedy::Wait, Remedy::Cancel]);
}
