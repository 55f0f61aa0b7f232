//! Caps hold at every instant, over several servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::rig::{Database, done, ends, engine, plan, start, stop, tenant, work};
use interlock_core::plan::StepSpec;
use interlock_core::state::RunState;

const CAP: u32 = 5;

/// Counts the live claims from outside the engines, again and again, while they work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn never_more_live_claims_than_the_cap_over_two_servers() {
    let database = Database::postgres().await;
    let (one, two) = (engine(&database).await, engine(&database).await);
    let tenant = tenant(&one, |tenant| tenant.caps.max_concurrency = Some(CAP)).await;
    let running = Arc::new(AtomicU32::new(0));
    let peak = Arc::new(AtomicU32::new(0));
    for engine in [&one, &two] {
        let (running, peak) = (Arc::clone(&running), Arc::clone(&peak));
        work(engine, 16, move |_| {
            let (running, peak) = (Arc::clone(&running), Arc::clone(&peak));
            async move {
                peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(5)).await;
                running.fetch_sub(1, Ordering::SeqCst);
                done("1")
            }
        });
    }
    let plan = plan(vec![StepSpec::task("a", "a"), StepSpec::task("b", "b")]);
    let mut runs = Vec::new();
    for number in 0..60 {
        let engine = if number % 2 == 0 { &one } else { &two };
        runs.push(engine.start(start(tenant, &plan, "null")).await.unwrap().run);
    }
    let counting = tokio::spawn({
        let store = one.store().clone();
        async move {
            let mut most = 0;
            loop {
                most = most.max(store.stats().await.unwrap().live_claims);
                assert!(most <= u64::from(CAP), "{most} live claims at one instant");
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
    });
    for run in runs {
        assert_eq!(ends(&one, tenant, run).await, RunState::Succeeded);
    }
    assert!(!counting.is_finished(), "the count went over the cap");
    counting.abort();
    let peak = peak.load(Ordering::SeqCst);
    assert!((2..=CAP).contains(&peak), "{peak} tasks at the same time");
    stop(one).await;
    stop(two).await;
}
