//! Caps hold at every instant, over several servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::harness::{Database, done, ends, engine, plan, plan_with, start, stop, tenant, work};
use interlock_core::plan::StepSpec;
use interlock_core::run::why::{LimitOf, Throttle};
use interlock_core::state::RunState;
use interlock_core::tenant::caps::ReachedCap;
use interlock_engine::EncodedPlan;
use tokio::sync::Semaphore;

const CAP: u32 = 5;
/// Less than what forty pauses would take, and many times what a busy machine needs without them.
const WITHOUT_PAUSES: Duration = Duration::from_secs(35);

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
                tokio::time::sleep(Duration::from_millis(20)).await;
                running.fetch_sub(1, Ordering::SeqCst);
                done("1")
            }
        });
    }
    let plan = plan(vec![StepSpec::task("a", "a"), StepSpec::task("b", "b")]);
    let mut runs = Vec::new();
    for number in 0..60 {
        let engine = if number % 2 == 0 { &one } else { &two };
        runs.push(engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run);
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

fn narrow(max: u32) -> Arc<EncodedPlan> {
    plan_with(vec![StepSpec::task("a", "a"), StepSpec::task("b", "b")], |plan| {
        plan.workflow = "narrow".into();
        plan.rules.concurrency_max = Some(max);
    })
}

/// Two servers, each with room for all, on one workflow that may have a few claims, while another one has none of that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn never_more_live_claims_of_a_workflow_than_it_may_have_over_two_servers() {
    let database = Database::postgres().await;
    let (one, two) = (engine(&database).await, engine(&database).await);
    let tenant = tenant(&one, |_| {}).await;
    for engine in [&one, &two] {
        work(engine, 16, |_| async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            done("1")
        });
    }
    let counting = tokio::spawn({
        let store = one.store().clone();
        async move {
            let mut most = 0;
            loop {
                most = most.max(store.workflow_usage(tenant, "narrow").await.unwrap().live_claims);
                assert!(most <= CAP, "{most} live claims at one instant");
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
    });
    let (narrow, free) = (narrow(CAP), plan(vec![StepSpec::task("a", "a")]));
    let mut runs = Vec::new();
    for number in 0..60 {
        let engine = if number % 2 == 0 { &one } else { &two };
        runs.push(engine.runs().start(start(tenant, &narrow, "null")).await.unwrap().run);
        runs.push(engine.runs().start(start(tenant, &free, "null")).await.unwrap().run);
    }
    for run in runs {
        assert_eq!(ends(&one, tenant, run).await, RunState::Succeeded);
    }
    assert!(!counting.is_finished(), "the count went over the limit");
    counting.abort();
    stop(one).await;
    stop(two).await;
}

crate::on_both! {
    async fn a_workflow_at_its_limit_stands_in_nobodys_way(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let (narrow, free) = (narrow(1), plan(vec![StepSpec::task("free", "free")]));
        let gate = Arc::new(Semaphore::new(0));
        let mut held = Vec::new();
        for _ in 0..40 {
            held.push(engine.runs().start(start(tenant, &narrow, "null")).await.unwrap().run);
        }
        let opened = Arc::clone(&gate);
        // Room for a few only, so that those ahead would fill it.
        work(&engine, 4, move |assignment| {
            let gate = Arc::clone(&opened);
            async move {
                if assignment.handler != "free" {
                    gate.acquire().await.unwrap().forget();
                }
                done("1")
            }
        });
        for _ in 0..20 {
            let run = engine.runs().start(start(tenant, &free, "null")).await.unwrap().run;
            assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        }
        assert_eq!(engine.store().workflow_usage(tenant, "narrow").await.unwrap().live_claims, 1);
        // One of them has the claim, whichever it is; all others are told of the limit.
        let limit = Some(Throttle::new(LimitOf::Workflow, ReachedCap::Concurrency { max: 1 }));
        let mut told = 0;
        for run in &held {
            let waiting = engine.store().load_runs(&[(tenant, *run)]).await.unwrap().pop().unwrap();
            told += usize::from(engine.runs().throttle(&waiting).await.unwrap() == limit);
        }
        assert_eq!(told, held.len() - 1);
        // Each takes its turn as the one before ends: 40 runs, and none of them waits for a pause of a second to be over.
        let began = tokio::time::Instant::now();
        gate.add_permits(80);
        for run in held {
            assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        }
        assert!(began.elapsed() < WITHOUT_PAUSES, "{:?}", began.elapsed());
        stop(engine).await;
    }

    async fn runs_over_the_rate_of_a_workflow_are_delayed(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let plan = plan_with(vec![StepSpec::task("a", "a"), StepSpec::task("b", "b")], |plan| {
            plan.rules.runs_per_min_max = Some(30);
        });
        work(&engine, 8, |_| async { done("1") });
        let began = engine.now();
        let mut runs = Vec::new();
        for _ in 0..31 {
            runs.push(engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run);
        }
        for run in &runs {
            assert_eq!(ends(&engine, tenant, *run).await, RunState::Succeeded);
        }
        // Thirty at once, the next one two seconds later: its time, and neither a refusal nor a try every instant.
        let waited = engine.now().since(began).0;
        assert!((1_900..55_000).contains(&waited), "the last one waited {waited} ms");
        stop(engine).await;
    }
}
