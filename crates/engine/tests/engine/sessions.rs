//! What sessions of workers are told and given, also after a restart, on both databases.

use std::time::Duration;

use crate::harness::{
    Database, PATIENCE, done, ends, engine, engine_with, hello, options, plan, plan_with, report, short_leases, start,
    stop, tenant,
};
use crate::on_both;
use interlock_core::ids::RunId;
use interlock_core::plan::StepSpec;
use interlock_core::plan::retry::{Backoff, RetryPolicy};
use interlock_core::rejection::Rejection;
use interlock_core::run::change::Context;
use interlock_core::state::{RunState, StepState};
use interlock_core::time::Millis;
use interlock_core::work::{Assignment, WorkerHello};
use interlock_engine::EngineError;

fn steps(count: u32) -> Vec<StepSpec> {
    (0..count).map(|number| StepSpec::task(format!("s{number}"), "work")).collect()
}

/// Goes on with a run for as long as its next step comes with the answer; answers how many steps that were.
async fn go_on(engine: &interlock_engine::Engine, session: interlock_core::ids::SessionId, first: Assignment) -> u32 {
    let (mut next, mut count) = (Some(first), 0);
    while let Some(assignment) = next {
        next = report(engine, session, &assignment, done("1")).await;
        count += 1;
    }
    count
}

on_both! {
    async fn a_cancel_reaches_the_worker_also_after_a_restart(database: &Database) {
        let before = engine(database).await;
        let tenant = tenant(&before, |_| {}).await;
        let session = before.workers().register(hello(2)).await.unwrap().session;
        let mut held = Vec::new();
        for _ in 0..2 {
            before.runs().start(start(tenant, &plan(steps(1)), "null")).await.unwrap();
            held.extend(before.workers().poll(session, 1, PATIENCE).await.unwrap().into_iter().map(|got| got.at));
        }
        before.runs().cancel(tenant, held[0].run, "stop".into(), false, Context::operator("op")).await.unwrap();
        stop(before).await;
        let after = engine(database).await;
        assert_eq!(after.workers().heartbeat(session, &held, false).await.unwrap(), held[..1]);
        stop(after).await;
    }

    async fn an_open_poll_of_a_worker_whose_lease_is_over_is_given_nothing(database: &Database) {
        let engine = engine_with(database, short_leases()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let session = engine.workers().register(hello(2)).await.unwrap().session;
        let mut work = steps(1);
        work[0].retry = Some(RetryPolicy { max_attempts: 5, backoff: Backoff::Fixed { delay: Millis(0) } });
        let run = engine.runs().start(start(tenant, &plan(work), "null")).await.unwrap().run;
        assert_eq!(engine.workers().poll(session, 1, PATIENCE).await.unwrap().len(), 1);
        // A frozen worker: its connection is open, and it sends no heartbeats.
        let polling = engine.clone();
        let polling = tokio::spawn(async move { polling.workers().poll(session, 1, PATIENCE).await });
        let lost = async {
            while engine.store().steps(tenant, run).await.unwrap()[0].failures == 0 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, lost).await.expect("its step is taken back");
        tokio::time::sleep(Duration::from_secs(2)).await;
        let step = engine.store().steps(tenant, run).await.unwrap().swap_remove(0);
        assert_eq!((step.attempt, step.state), (1, StepState::Ready), "it waits for a worker that lives");
        polling.abort();
        stop(engine).await;
    }

    async fn the_last_place_is_for_a_tenant_below_its_share(database: &Database) {
        let engine = engine(database).await;
        let (busy, quiet) = (tenant(&engine, |_| {}).await, tenant(&engine, |_| {}).await);
        let session = engine.workers().register(hello(8)).await.unwrap().session;
        let queues = vec!["aside".into()];
        let aside = engine.workers().register(WorkerHello { queues, ..hello(4) }).await.unwrap().session;
        let (plan, on_the_side) = (plan(steps(1)), plan_with(steps(1), |plan| plan.steps[0].queue = "aside".into()));
        for _ in 0..20 {
            engine.runs().start(start(busy, &plan, "null")).await.unwrap();
        }
        // What was taken counts for a second or two, on whichever queue: so it is taken right before it has to count.
        let take_shares = async || {
            for tenant in [busy, busy, busy, quiet] {
                engine.runs().start(start(tenant, &on_the_side, "null")).await.unwrap();
                for claimed in engine.workers().poll(aside, 4, PATIENCE).await.unwrap() {
                    report(&engine, aside, &claimed, done("1")).await;
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        take_shares().await;
        let first = engine.workers().poll(session, 8, Duration::ZERO).await.unwrap();
        assert_eq!(first.len(), 7, "one place is kept");
        take_shares().await;
        assert!(engine.workers().poll(session, 1, Duration::ZERO).await.unwrap().is_empty());
        engine.runs().start(start(quiet, &plan, "null")).await.unwrap();
        let last = engine.workers().poll(session, 1, PATIENCE).await.unwrap();
        assert_eq!(last.iter().map(|claimed| claimed.at.tenant).collect::<Vec<_>>(), [quiet]);
        // A waiting run gets the place of one that has ended.
        report(&engine, session, &first[0], done("1")).await;
        assert_eq!(engine.workers().poll(session, 2, PATIENCE).await.unwrap().len(), 1);
        stop(engine).await;
    }

    async fn a_poll_gives_no_more_than_it_was_asked_for(database: &Database) {
        const BEFORE: usize = 15;
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let session = engine.workers().register(WorkerHello { tenant: Some(tenant), ..hello(20) }).await.unwrap().session;
        let plan = plan(steps(1));
        let mut held = Vec::new();
        for _ in 0..BEFORE {
            engine.runs().start(start(tenant, &plan, "null")).await.unwrap();
            held.extend(engine.workers().poll(session, 1, PATIENCE).await.unwrap());
        }
        // A poll for two waits while all the others end and as many runs are started.
        let workers = engine.workers();
        let mut polling = Box::pin(workers.poll(session, 2, PATIENCE));
        for _ in 0..3 {
            assert!(futures::poll!(&mut polling).is_pending());
            tokio::task::yield_now().await;
        }
        for claimed in &held {
            report(&engine, session, claimed, done("1")).await;
        }
        for _ in 0..BEFORE {
            engine.runs().start(start(tenant, &plan, "null")).await.unwrap();
        }
        let mut given = polling.await.unwrap();
        assert!(given.len() <= 2, "2 asked, {} given", given.len());
        // The rest comes with the next polls, each step once.
        while given.len() < BEFORE {
            let more = engine.workers().poll(session, 3, PATIENCE).await.unwrap();
            assert!((1..=3).contains(&more.len()), "3 asked, {} given", more.len());
            given.extend(more);
        }
        given.sort_by_key(|assignment| assignment.at.run);
        given.dedup_by_key(|assignment| assignment.at.run);
        assert_eq!(given.len(), BEFORE);
        let none = engine.workers().poll(session, 0, Duration::ZERO).await;
        assert!(matches!(none, Err(EngineError::Rejected(Rejection::InvalidInput { .. }))), "{none:?}");
        stop(engine).await;
    }

    async fn after_an_outage_a_step_past_its_timeout_has_one_lease_to_report(database: &Database) {
        let before = engine(database).await;
        let tenant = tenant(&before, |_| {}).await;
        let session = before.workers().register(hello(1)).await.unwrap().session;
        let mut slow = StepSpec::task("slow", "slow");
        slow.timeout = Some(Millis(500));
        let run = before.runs().start(start(tenant, &plan(vec![slow]), "null")).await.unwrap().run;
        let claimed = before.workers().poll(session, 1, PATIENCE).await.unwrap().pop().unwrap();
        stop(before).await;
        tokio::time::sleep(Duration::from_millis(600)).await;
        let after = engine(database).await;
        // The reaper has looked several times by now.
        tokio::time::sleep(Duration::from_millis(500)).await;
        report(&after, session, &claimed, done("1")).await;
        assert_eq!(ends(&after, tenant, run).await, RunState::Succeeded);
        stop(after).await;
    }

    async fn a_worker_of_two_queues_serves_both(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let on = |queue: &str| plan_with(steps(1), |plan| plan.steps[0].queue = queue.into());
        let (first, second) = (on("q1"), on("q2"));
        let older = engine.runs().start(start(tenant, &second, "null")).await.unwrap().run;
        for _ in 0..30 {
            engine.runs().start(start(tenant, &first, "null")).await.unwrap();
        }
        let queues = vec!["q1".into(), "q2".into()];
        let session = engine.workers().register(WorkerHello { queues, ..hello(1) }).await.unwrap().session;
        let mut got: Vec<RunId> = Vec::new();
        // Long before all of the other queue; on a busy machine a run may miss its turn.
        for _ in 0..10 {
            let assignment = engine.workers().poll(session, 1, PATIENCE).await.unwrap().pop().unwrap();
            got.push(assignment.at.run);
            go_on(&engine, session, assignment).await;
        }
        assert!(got.contains(&older), "{got:?}");
        stop(engine).await;
    }

    async fn under_a_cap_a_worker_lets_the_tenants_other_run_have_its_turn(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |tenant| tenant.caps.max_concurrency = Some(1)).await;
        let session = engine.workers().register(hello(2)).await.unwrap().session;
        let plan = plan(steps(100));
        engine.runs().start(start(tenant, &plan, "null")).await.unwrap();
        let first = engine.workers().poll(session, 1, PATIENCE).await.unwrap().pop().unwrap();
        let other = engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
        // Refused for the cap: it waits, throttled.
        assert!(engine.workers().poll(session, 1, Duration::from_millis(50)).await.unwrap().is_empty());
        let alone = go_on(&engine, session, first).await;
        assert!(alone <= 20, "{alone} steps of one run while another one waited");
        let next = engine.workers().poll(session, 1, PATIENCE).await.unwrap().pop().unwrap();
        assert_eq!(next.at.run, other);
        stop(engine).await;
    }
}

/// A worker that reaches two servers by turns: what one of them has seen of it is not what it does now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_to_two_servers_are_the_heartbeats_of_one_session() {
    let database = Database::postgres().await;
    let (one, two) = (engine(&database).await, engine(&database).await);
    let tenant = tenant(&one, |_| {}).await;
    // The clocks are moved on instead of waiting, so that a machine that stands still makes no heartbeat late. What the two know of
    // the database's time may differ by some milliseconds: a heartbeat is not that much short of one on the other's clock.
    let a_heartbeat = || {
        let renewal = i64::try_from(options().session_renewal.0).unwrap();
        for engine in [&one, &two] {
            engine.clock().adjust(renewal + 1_000);
        }
    };
    let session = one.workers().register(hello(2)).await.unwrap().session;
    one.runs().start(start(tenant, &plan(steps(1)), "null")).await.unwrap();
    let claimed = one.workers().poll(session, 1, PATIENCE).await.unwrap().pop().unwrap();
    // The answer is still on its way when the first heartbeat goes out.
    assert_eq!(one.workers().heartbeat(session, &[], false).await.unwrap(), []);
    for _ in 0..2 {
        a_heartbeat();
        assert_eq!(two.workers().heartbeat(session, &[claimed.at], false).await.unwrap(), []);
    }
    a_heartbeat();
    // Now its report is on its way: it has not been unlisted for a full heartbeat.
    assert_eq!(one.workers().heartbeat(session, &[], false).await.unwrap(), []);
    let outcome = interlock_core::work::Report {
        at: claimed.at,
        epoch: claimed.epoch,
        outcome: done("1"),
        claim_next: false,
        cost: None,
        credentials: Vec::new(),
    };
    assert!(two.workers().complete(session, outcome).await.unwrap().recorded);

    // What no server is told of for a full heartbeat goes back, whichever servers were told.
    one.runs().start(start(tenant, &plan(steps(1)), "null")).await.unwrap();
    let lost = one.workers().poll(session, 1, PATIENCE).await.unwrap().pop().unwrap();
    assert_eq!(one.workers().heartbeat(session, &[], false).await.unwrap(), []);
    assert_eq!(
        two.workers().heartbeat(session, &[], false).await.unwrap(),
        [],
        "a repeat at once is no second heartbeat"
    );
    assert_eq!(two.workers().heartbeat(session, &[lost.at], false).await.unwrap(), []);
    assert_eq!(one.workers().heartbeat(session, &[], false).await.unwrap(), []);
    a_heartbeat();
    two.workers().heartbeat(session, &[], false).await.unwrap();
    let again = two.workers().poll(session, 1, PATIENCE).await.unwrap().pop().unwrap();
    assert_eq!((again.at.run, again.at.attempt), (lost.at.run, 2));
    stop(one).await;
    stop(two).await;
}
