//! Readers of events miss nothing and see nothing twice, however commits and readers interleave.

use std::collections::HashMap;
use std::time::Duration;

use crate::harness::{Database, PATIENCE, done, ends, engine, engine_with, options, plan, start, stop, tenant, work};
use crate::on_both;
use interlock_core::ids::{OutboundId, RunId, ServerId, TenantId};
use interlock_core::plan::StepSpec;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::trigger::EndpointState;
use interlock_engine::{Engine, EngineOptions};
use interlock_store::{AddOutbound, OpenError, Options, OutboundRow, RaiseEpoch, Secrets, Store, Sweep};

on_both! {
    async fn a_tenants_feed_is_complete_ordered_and_without_repeats(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        work(&engine, 32, |_| async { done("1") });
        let plan = plan(vec![StepSpec::task("a", "a"), StepSpec::task("b", "b"), StepSpec::task("c", "c")]);
        let (read_to, mut read) = tokio::sync::watch::channel(0);
        let reading = tokio::spawn({
            let engine = engine.clone();
            async move {
                let (mut cursor, mut seen) = (0, HashMap::<RunId, u64>::new());
                let mut reads = 0u32;
                loop {
                    // A reader that reconnects all the time, from where it was.
                    let mut watcher = engine.events().watch_tenant(tenant, cursor);
                    let Ok(events) = watcher.next_of_tenant().await else { return seen };
                    reads += 1;
                    let take = if reads.is_multiple_of(3) { events.len().div_ceil(2) } else { events.len() };
                    for event in events.into_iter().take(take) {
                        assert_eq!(event.cursor, cursor + 1, "cursors are dense");
                        let last = seen.insert(event.run, event.seq).unwrap_or(0);
                        assert_eq!(event.seq, last + 1, "a run's events come in order, once");
                        cursor = event.cursor;
                    }
                    read_to.send_replace(cursor);
                }
            }
        });
        let runs: Vec<RunId> = {
            let handle = engine.runs();
            let starts = (0..200).map(|_| handle.start(start(tenant, &plan, "null")));
            futures::future::join_all(starts).await.into_iter().map(|started| started.unwrap().run).collect()
        };
        let mut events = 0;
        for run in &runs {
            ends(&engine, tenant, *run).await;
            events += engine.store().run_overview(tenant, *run).await.unwrap().unwrap().version;
        }
        tokio::time::timeout(PATIENCE, read.wait_for(|cursor| *cursor >= events)).await.expect("all is read").unwrap();
        engine.stop().await;
        let seen = reading.await.unwrap();
        assert_eq!(seen.len(), runs.len());
        for run in runs {
            let overview = engine.store().run_overview(tenant, run).await.unwrap().unwrap();
            assert_eq!(seen[&run], overview.version, "{run}");
        }
        stop(engine).await;
    }

    async fn readers_and_the_publisher_go_past_swept_runs(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        work(&engine, 32, |_| async { done("1") });
        let plan = plan(vec![StepSpec::task("a", "a")]);
        // More than one page of the publisher's.
        let handle = engine.runs();
        let starts = (0..200).map(|_| handle.start(start(tenant, &plan, "null")));
        let mut events = 0;
        for started in futures::future::join_all(starts).await {
            let run = started.unwrap().run;
            ends(&engine, tenant, run).await;
            events += engine.store().run_overview(tenant, run).await.unwrap().unwrap().version;
        }
        let mut before = engine.events().watch_tenant(tenant, 0);
        while before.cursor() < events {
            tokio::time::timeout(PATIENCE, before.next_of_tenant()).await.unwrap().unwrap();
        }
        let kept = Millis::from_hours(24 * 30);
        let mut sweep = Sweep::new(engine.now() + Millis::from_hours(24));
        (sweep.runs_kept, sweep.sessions_kept, sweep.groups_kept) = (Some(Millis::from_hours(1)), kept, kept);
        engine.store().write(sweep).await.unwrap();
        let endpoint = endpoint(tenant, OutboundId(engine.fresh_id()), engine.now());
        engine.store().write(AddOutbound(endpoint.clone())).await.unwrap();
        let run = engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
        ends(&engine, tenant, run).await;
        let mut watcher = engine.events().watch_tenant(tenant, 0);
        let next = tokio::time::timeout(PATIENCE, watcher.next_of_tenant()).await;
        assert_eq!(next.expect("it gets past them").unwrap()[0].run, run);
        let queued = async {
            loop {
                let messages = engine.store().messages(tenant, endpoint.id, None, 100).await.unwrap();
                if messages.iter().any(|message| message.run == run) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, queued).await.expect("the publisher gets past them");
        stop(engine).await;
    }
}

/// An address that is told of everything, from the beginning.
fn endpoint(tenant: TenantId, id: OutboundId, now: Timestamp) -> OutboundRow {
    OutboundRow {
        tenant,
        id,
        name: None,
        url: "https://example.com/hook".to_owned(),
        description: None,
        events: None,
        workflows: None,
        secrets: Secrets { current: "unused".to_owned(), previous: None },
        state: EndpointState::Enabled,
        note: None,
        fed_to: 0,
        fed_at: now,
        failing_since: None,
        created_at: now,
        created_by: None,
    }
}

/// A server dies with groups that are not sealed, as a tool without loops leaves them: another server seals them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_survivor_seals_what_a_dead_server_left() {
    let database = Database::postgres().await;
    let survivor = engine(&database).await;
    let tenant = tenant(&survivor, |_| {}).await;
    // Past the seal at its start, and what the tenant's own commit brings.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let dying = engine_with(&database, EngineOptions { loops: false, ..options() }).await;
    let run = dying.runs().start(start(tenant, &plan(vec![StepSpec::task("a", "a")]), "null")).await.unwrap().run;
    stop(dying).await;
    let mut watcher = survivor.events().watch_tenant(tenant, 0);
    let sealed = tokio::time::timeout(PATIENCE, watcher.next_of_tenant()).await;
    let events = sealed.expect("the survivor has sealed it").unwrap();
    assert_eq!((events[0].run, events[0].cursor), (run, 1));
    stop(survivor).await;
}

/// A server that lives through a restore says so, and takes nothing more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_database_was_restored_stops() {
    let database = Database::postgres().await;
    let engine = engine(&database).await;
    let tenant = tenant(&engine, |_| {}).await;
    let plan = plan(vec![StepSpec::task("a", "a")]);
    engine.runs().start(start(tenant, &plan, "null")).await.unwrap();
    let tool = Options::new(ServerId(options().ids.fresh()));
    let refused = interlock_store::restore(None, &database.url, tool.clone()).await.unwrap_err();
    assert!(matches!(refused, OpenError::InService { .. }), "not under a server: {refused}");
    // It happens all the same where the database does not know of the server: in a failover, for one.
    let store = Store::open(&database.url, tool).await.unwrap();
    store.write(RaiseEpoch).await.unwrap();
    store.close().await;
    let noticed = async {
        loop {
            if let Err(error) = engine.runs().start(start(tenant, &plan, "null")).await {
                return error.to_string();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let error = tokio::time::timeout(PATIENCE, noticed).await.unwrap();
    assert!(error.contains("restored from a backup") && error.contains("restart"), "{error}");
    stop(engine).await;
}

/// Two servers commit and seal side by side: the cursor has no hole, and no event comes twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_seal_one_feed() {
    let database = Database::postgres().await;
    let engines = [engine(&database).await, engine(&database).await];
    let tenant = tenant(&engines[0], |_| {}).await;
    for engine in &engines {
        work(engine, 16, |_| async { done("1") });
    }
    let plan = plan(vec![StepSpec::task("a", "a"), StepSpec::task("b", "b"), StepSpec::task("c", "c")]);
    let mut runs = Vec::new();
    let handles = engines.each_ref().map(Engine::runs);
    for _ in 0..5 {
        let starts = (0..40).map(|number| handles[number % 2].start(start(tenant, &plan, "null")));
        runs.extend(futures::future::join_all(starts).await.into_iter().map(|started| started.unwrap().run));
    }
    let mut expected = HashMap::new();
    for run in runs {
        ends(&engines[0], tenant, run).await;
        let overview = engines[0].store().run_overview(tenant, run).await.unwrap().unwrap();
        expected.insert(run, overview.version);
    }
    let total: u64 = expected.values().sum();
    let (mut cursor, mut seen) = (0, HashMap::<RunId, u64>::new());
    let mut watcher = engines[1].events().watch_tenant(tenant, 0);
    while cursor < total {
        let next = tokio::time::timeout(PATIENCE, watcher.next_of_tenant()).await;
        for event in next.expect("everything is sealed in time").unwrap() {
            assert_eq!(event.cursor, cursor + 1, "cursors are dense");
            let last = seen.insert(event.run, event.seq).unwrap_or(0);
            assert_eq!(event.seq, last + 1, "a run's events come in order, once");
            cursor = event.cursor;
        }
    }
    assert_eq!((cursor, seen), (total, expected));
    for engine in engines {
        stop(engine).await;
    }
}
