//! Sessions: chaining, lost answers, leases, cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::fake::{Fake, LEASE, start, start_with};
use interlock_core::json::Json;
use interlock_core::state::EffectClass;
use interlock_core::work::CommandTerms;
use interlock_protocol::agent::ReportedOutcome;
use interlock_protocol::code;
use interlock_worker::{Tasks, WorkerError, WorkerOptions};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

/// A task that runs until the test opens the gate, and counts how often it began and was told to stop.
#[derive(Clone)]
struct Gated {
    gate: Arc<Semaphore>,
    begun: Arc<AtomicU32>,
    stopped: Arc<AtomicU32>,
}

impl Gated {
    fn new() -> Self {
        Self { gate: Arc::new(Semaphore::new(0)), begun: Arc::default(), stopped: Arc::default() }
    }

    fn tasks(&self) -> Tasks {
        let gated = self.clone();
        Tasks::new().task("gated", move |ctx, (): ()| {
            let Gated { gate, begun, stopped } = gated.clone();
            async move {
                begun.fetch_add(1, Ordering::Relaxed);
                tokio::select! {
                    biased;
                    permit = gate.acquire() => permit?.forget(),
                    () = ctx.cancellation().cancelled() => {
                        stopped.fetch_add(1, Ordering::Relaxed);
                        return Err(interlock_worker::TaskError::retryable("STOPPED", ""));
                    }
                }
                Ok(ctx.still_mine())
            }
        })
    }

    async fn begin(&self, fake: &Fake, count: u32) {
        fake.until("the task begins", |state| !state.calls.is_empty() && self.begun.load(Ordering::Relaxed) >= count)
            .await;
    }
}

fn completed(output: &str) -> ReportedOutcome {
    ReportedOutcome::Completed { output: Json::trusted(output) }
}

#[tokio::test(start_paused = true)]
async fn the_next_step_comes_with_the_answer_and_needs_no_poll() {
    let fake = Fake::new();
    let running = start(&fake, Tasks::new().task("n", |_, n: u32| async move { Ok(n) }));
    fake.enqueue((1..=5).map(|n| fake.step("n", &n.to_string())).collect());
    fake.until("five reports", |state| state.reports.len() == 5).await;

    assert_eq!(fake.outcomes_reported(), ["1", "2", "3", "4", "5"].map(completed));
    let calls = fake.state().calls.clone();
    assert_eq!(calls.iter().filter(|call| **call == "complete").count(), 5);
    assert!(calls.iter().filter(|call| **call == "poll").count() <= 2, "{calls:?}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_report_whose_answer_was_lost_is_repeated_and_gets_the_same_next_step() {
    let fake = Fake::new();
    let ran = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&ran);
    let tasks = Tasks::new().task("n", move |_, n: u32| {
        counter.fetch_add(1, Ordering::Relaxed);
        async move { Ok(n) }
    });
    fake.set(|state| state.lose_completions = 3);
    let running = start(&fake, tasks);
    fake.enqueue(vec![fake.step("n", "1"), fake.step("n", "2")]);
    fake.until("two reports", |state| state.reports.len() == 2).await;

    assert_eq!(fake.outcomes_reported(), [completed("1"), completed("2")]);
    assert_eq!(ran.load(Ordering::Relaxed), 2, "no step ran twice");
    let calls = fake.state().calls.iter().filter(|call| **call == "complete").count();
    assert_eq!(calls, 5);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn one_heartbeat_renews_everything_that_is_held() {
    let fake = Fake::new();
    let gated = Gated::new();
    let running = start(&fake, gated.tasks());
    let mut held: Vec<_> = (0..3).map(|_| fake.enqueue_one("gated", "null")).collect();
    gated.begin(&fake, 3).await;
    fake.set(|state| state.heartbeats.clear());
    let from = Instant::now();
    fake.until("four heartbeats", |state| state.heartbeats.len() == 4).await;
    assert!((15..=20).contains(&from.elapsed().as_secs()), "every five seconds");
    held.sort_unstable();
    assert!(fake.state().heartbeats.iter().all(|heartbeat| heartbeat.held == held && !heartbeat.draining));
    assert!(fake.state().heartbeats[3].round_trip_ms.is_some(), "how long the one before took");
    assert!(!fake.state().round_trips.is_empty(), "the first poll tells how long the registration took");

    gated.gate.add_permits(3);
    fake.until("three reports", |state| state.reports.len() == 3).await;
    fake.set(|state| state.heartbeats.clear());
    fake.until("a heartbeat", |state| !state.heartbeats.is_empty()).await;
    assert!(fake.state().heartbeats[0].held.is_empty());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn no_more_is_taken_than_there_are_slots() {
    let fake = Fake::new();
    let gated = Gated::new();
    let options = WorkerOptions { slots: 2, ..WorkerOptions::default() };
    for _ in 0..5 {
        fake.enqueue_one("gated", "null");
    }
    let running = start_with(&fake, gated.tasks(), options);
    gated.begin(&fake, 2).await;
    sleep(Duration::from_mins(2)).await;
    assert_eq!(gated.begun.load(Ordering::Relaxed), 2);
    assert_eq!(fake.state().polls, [2]);
    gated.gate.add_permits(5);
    fake.until("all reports", |state| state.reports.len() == 5).await;
    assert!(fake.state().polls.iter().all(|max| *max <= 2));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_the_server_stops_is_told_and_given_back_uncharged() {
    let fake = Fake::new();
    let gated = Gated::new();
    let running = start(&fake, gated.tasks());
    let at = fake.enqueue_one("gated", "null");
    gated.begin(&fake, 1).await;
    fake.set(|state| state.stop.push(at));
    fake.until("a report", |state| !state.reports.is_empty()).await;
    assert_eq!(gated.stopped.load(Ordering::Relaxed), 1);
    assert_eq!(fake.outcomes_reported(), [ReportedOutcome::Released]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_does_not_listen_is_dropped_after_its_grace() {
    let fake = Fake::new();
    let tasks = Tasks::new().task("deaf", |_, (): ()| async move {
        std::future::pending::<()>().await;
        Ok(())
    });
    let running = start(&fake, tasks);
    let at = fake.enqueue_one("deaf", "null");
    fake.until("it is held", |state| state.heartbeats.last().is_some_and(|beat| beat.held == [at])).await;
    fake.set(|state| state.stop.push(at));
    fake.until("a report", |state| !state.reports.is_empty()).await;
    assert_eq!(fake.outcomes_reported(), [ReportedOutcome::Released]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_result_of_a_stale_attempt_is_dropped() {
    let fake = Fake::new();
    let gated = Gated::new();
    let running = start(&fake, gated.tasks());
    let at = fake.enqueue_one("gated", "null");
    gated.begin(&fake, 1).await;
    fake.set(|state| {
        state.stale.insert(at);
    });
    gated.gate.add_permits(1);
    fake.until("the attempt to report", |state| state.calls.contains(&"complete")).await;
    fake.set(|state| state.heartbeats.clear());
    fake.until("it is not held any more", |state| state.heartbeats.iter().any(|beat| beat.held.is_empty())).await;
    assert!(fake.outcomes_reported().is_empty());
    assert_eq!(fake.state().calls.iter().filter(|call| **call == "complete").count(), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_session_stops_and_gives_back_what_it_held_and_registers_again() {
    let fake = Fake::new();
    let gated = Gated::new();
    let running = start(&fake, gated.tasks());
    fake.enqueue_one("gated", "null");
    gated.begin(&fake, 1).await;
    fake.forget_sessions();
    fake.until("a second session", |state| state.calls.iter().filter(|call| **call == "register").count() == 2).await;
    assert_eq!(gated.stopped.load(Ordering::Relaxed), 1);
    assert_eq!(fake.outcomes_reported(), [ReportedOutcome::Released]);

    gated.gate.add_permits(1);
    fake.enqueue_one("gated", "null");
    fake.until("work in the new session", |state| state.reports.len() == 2).await;
    assert_eq!(fake.outcomes_reported(), [ReportedOutcome::Released, completed("true")]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_stops_commands_whatever_their_effect() {
    let fake = Fake::new();
    let gated = Gated::new();
    let running = start(&fake, gated.tasks());
    let mut command = fake.step("gated", "null");
    let profile = "dev-flex".to_owned();
    command.command = Some(Box::new(CommandTerms { profile, credentials: Vec::new(), undo: None, workdir: false }));
    fake.enqueue(vec![command]);
    fake.enqueue_one("gated", "null");
    gated.begin(&fake, 2).await;
    fake.set(|state| state.down = true);
    sleep(LEASE + Duration::from_secs(1)).await;
    assert_eq!(gated.stopped.load(Ordering::Relaxed), 1, "the command");
    fake.set(|state| state.down = false);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_credential_was_revoked_stops_what_it_holds() {
    let fake = Fake::new();
    let gated = Gated::new();
    let running = start(&fake, gated.tasks());
    fake.enqueue_one("gated", "null");
    gated.begin(&fake, 1).await;
    fake.set(|state| state.refuse_heartbeats = Some(code::UNAUTHORIZED));
    fake.until("a report", |state| !state.reports.is_empty()).await;
    assert_eq!(gated.stopped.load(Ordering::Relaxed), 1, "before its lease has run out");
    fake.set(|state| state.refuse_heartbeats = None);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_stops_only_what_must_not_run_twice_and_late_results_are_offered() {
    let fake = Fake::new();
    let gated = Gated::new();
    let running = start(&fake, gated.tasks());
    let mut unsafe_step = fake.step("gated", "null");
    unsafe_step.effect = EffectClass::Unsafe;
    fake.enqueue(vec![unsafe_step]);
    fake.enqueue_one("gated", "null");
    gated.begin(&fake, 2).await;

    fake.set(|state| state.down = true);
    sleep(LEASE + Duration::from_secs(1)).await;
    assert_eq!(gated.stopped.load(Ordering::Relaxed), 1, "the unsafe one");
    gated.gate.add_permits(1);
    sleep(LEASE * 3).await;

    fake.set(|state| state.down = false);
    fake.until("both reports", |state| state.reports.len() == 2).await;
    let mut outcomes = fake.outcomes_reported();
    outcomes.sort_by_key(|outcome| *outcome == ReportedOutcome::Released);
    // It ended after the lease had run out, and could have asked.
    assert_eq!(outcomes, [completed("false"), ReportedOutcome::Released]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_waited_for_and_one_that_refuses_is_not() {
    let fake = Fake::new();
    fake.set(|state| state.down = true);
    let running = start(&fake, Tasks::new().task("n", |_, n: u32| async move { Ok(n) }));
    fake.until("some tries", |state| state.calls.len() > 5).await;
    fake.set(|state| state.down = false);
    fake.enqueue_one("n", "1");
    fake.until("a report", |state| state.reports.len() == 1).await;
    running.stop().await;

    fake.set(|state| state.refuse_registration = true);
    let refused = start(&fake, Tasks::new());
    let WorkerError::Refused { code, .. } = refused.worker.await.unwrap().unwrap_err();
    assert_eq!(code, "UNAUTHORIZED");
}

#[tokio::test(start_paused = true)]
async fn an_assignment_that_arrives_twice_runs_once() {
    let fake = Fake::new();
    let gated = Gated::new();
    let running = start(&fake, gated.tasks());
    let step = fake.step("gated", "null");
    fake.enqueue(vec![step.clone()]);
    gated.begin(&fake, 1).await;
    fake.enqueue(vec![step]);
    fake.until("it was handed out again", |state| state.polls.len() >= 3).await;
    gated.gate.add_permits(2);
    fake.until("a report", |state| !state.reports.is_empty()).await;
    assert_eq!(gated.begun.load(Ordering::Relaxed), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_says_what_it_can_do_unless_the_server_is_older() {
    for of_earlier_release in [false, true] {
        let fake = Fake::new();
        fake.set(|state| state.of_earlier_release = of_earlier_release);
        let running = start(&fake, Tasks::new().task("n", |_, n: u32| async move { Ok(n) }));
        fake.enqueue_one("n", "1");
        fake.until("a report", |state| state.reports.len() == 1).await;
        running.stop().await;
        let hellos = fake.state().hellos.clone();
        assert_eq!(hellos[0].tasks.as_deref(), Some(&["n".to_owned()][..]));
        assert_eq!(hellos[0].capabilities.as_deref(), Some(&["effects".to_owned()][..]));
        assert_eq!(hellos.last().unwrap().tasks.is_none(), of_earlier_release);
    }
}

/// Its name happens to be that of a task.
#[tokio::test(start_paused = true)]
async fn a_step_of_another_kind_is_not_run_as_a_task() {
    let fake = Fake::new();
    let running = start(&fake, Tasks::new().task("transform", |_, (): ()| async move { Ok(1) }));
    let mut step = fake.step("transform", "null");
    step.kind = interlock_core::state::StepKind::Transform;
    assert_eq!(fake.run_one(step).await, ReportedOutcome::UnknownTask);
    running.stop().await;
}
