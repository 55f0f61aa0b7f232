//! Shutting down: running tasks may finish, the rest is given back, the session ends.

use std::time::Duration;

use crate::fake::{Fake, start};
use interlock_core::json::Json;
use interlock_protocol::agent::ReportedOutcome;
use interlock_worker::Tasks;
use tokio::time::{Instant, sleep};

fn tasks() -> Tasks {
    Tasks::new()
        .task("slow", |_, secs: u64| async move {
            sleep(Duration::from_secs(secs)).await;
            Ok(secs)
        })
        .task("polite", |ctx, (): ()| async move {
            ctx.cancellation().cancelled().await;
            Ok("cleaned up")
        })
}

async fn hold(fake: &Fake, count: usize) {
    fake.until("held", |state| state.heartbeats.last().is_some_and(|beat| beat.held.len() == count)).await;
}

#[tokio::test(start_paused = true)]
async fn what_runs_may_finish_and_nothing_new_begins() {
    let fake = Fake::new();
    let running = start(&fake, tasks());
    fake.enqueue(vec![fake.step("slow", "20"), fake.step("slow", "1")]);
    hold(&fake, 1).await;
    running.shutdown.cancel();
    fake.until("the server knows", |state| state.heartbeats.last().is_some_and(|beat| beat.draining)).await;
    fake.enqueue_one("slow", "1");
    running.stop().await;

    assert_eq!(fake.outcomes_reported(), [ReportedOutcome::Completed { output: Json::trusted("20") }]);
    let state = fake.state();
    assert!(!state.reports[0].claim_next);
    assert_eq!(state.unregistered.len(), 1);
    assert_eq!(state.calls.last(), Some(&"unregister"));
}

#[tokio::test(start_paused = true)]
async fn what_does_not_finish_in_time_is_given_back() {
    let fake = Fake::new();
    let running = start(&fake, tasks());
    fake.enqueue_one("slow", "100000");
    fake.enqueue_one("polite", "null");
    hold(&fake, 2).await;
    let from = Instant::now();
    running.stop().await;

    let mut outcomes = fake.outcomes_reported();
    outcomes.sort_by_key(|outcome| *outcome == ReportedOutcome::Released);
    let polite = ReportedOutcome::Completed { output: Json::trusted(r#""cleaned up""#) };
    assert_eq!(outcomes, [polite, ReportedOutcome::Released]);
    assert_eq!(fake.state().unregistered.len(), 1);
    assert!(from.elapsed() < Duration::from_secs(45), "{:?}", from.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_does_not_keep_the_worker_from_leaving() {
    let fake = Fake::new();
    let running = start(&fake, tasks());
    fake.enqueue_one("slow", "1");
    hold(&fake, 0).await;
    fake.set(|state| state.down = true);
    let from = Instant::now();
    running.stop().await;
    assert!(from.elapsed() < Duration::from_secs(10), "{:?}", from.elapsed());
}

/// An operator takes it out of service: what runs finishes, however long it takes, and the process ends by itself.
#[tokio::test(start_paused = true)]
async fn a_worker_that_is_told_to_drain_finishes_and_leaves() {
    let fake = Fake::new();
    let running = start(&fake, tasks());
    fake.enqueue(vec![fake.step("slow", "3600"), fake.step("slow", "1")]);
    hold(&fake, 1).await;
    fake.set(|state| state.drain = Some("an operator"));
    fake.until("the worker knows", |state| state.heartbeats.last().is_some_and(|beat| beat.draining)).await;
    fake.enqueue_one("slow", "1");
    running.worker.await.unwrap().unwrap();
    assert_eq!(fake.outcomes_reported(), [ReportedOutcome::Completed { output: Json::trusted("3600") }]);
    assert_eq!(fake.state().unregistered.len(), 1);
}
