//! Signals: none hides another, and what a server promised before it died is kept by the next one.

use std::sync::Arc;
use std::time::Duration;

use interlock_core::ids::{ServerId, TenantId};
use interlock_core::json::Json;
use interlock_core::limits;
use interlock_core::plan::{Accept, StepSpec, WaitFor, Work};
use interlock_core::state::RunState;
use interlock_core::time::Timestamp;
use interlock_engine::audit::Actor;
use interlock_engine::clock::Clock;
use interlock_engine::commands::announce::Origin;
use interlock_engine::commands::signal::{SignalRequest, Signaled};
use interlock_engine::deliver::NoOtherDestinations;
use interlock_engine::ids::IdSource;
use interlock_engine::{ApplyWorkflow, Engine, EngineError, EngineOptions, Expected};
use interlock_store::{
    CommitFault, FaultFrom, Faults, Mode, NoFaults, Options, Page, RunFilter, SignalScope, SourceId, Store, StoreUrl,
    Tenant, forget_memory,
};
use uuid::Uuid;

use crate::harness::{self, Database, ends, plan, reaches, start, stop};
use crate::on_both;

const FILE: &str = "name: heal\non: { signal: { type: alarm } }\nsteps: [{ id: a, task: work }]\n";

async fn server(database: &str, number: u128, at: Timestamp, faults: Arc<dyn Faults>, loops: bool) -> Engine {
    let clock = Clock::starting_at(at);
    let ids = IdSource::seeded(clock.clone(), number as u64);
    let options = EngineOptions {
        ids,
        clock,
        expressions_in_place: true,
        loops,
        ..EngineOptions::new(Arc::new(NoOtherDestinations))
    };
    let store_options = Options { mode: Mode::Inline(faults), ..Options::new(ServerId(Uuid::from_u128(number))) };
    let store = Store::open(&StoreUrl::SqliteMemory(database.to_owned()), store_options).await.unwrap();
    Engine::open(store, options).await.unwrap()
}

fn alarm(tenant: TenantId, source_id: Option<&str>) -> SignalRequest {
    SignalRequest {
        tenant,
        signal_type: "alarm".into(),
        key: "db-1".into(),
        payload: Json::trusted("1"),
        source_id: source_id.map(SourceId::of_tenant),
        broadcast: false,
        run: None,
    }
}

fn of_eve() -> Origin {
    Origin { by: Some("eve".into()), ..Origin::default() }
}

async fn runs(engine: &Engine, tenant: TenantId) -> usize {
    let page = Page { limit: 10, after: None };
    let runs = engine.store().list_runs(tenant, &RunFilter::default(), page).await.unwrap();
    // The sender of a signal that starts a run counts as its starter, and does not approve it.
    assert!(runs.iter().all(|run| run.started_by.as_deref() == Some("eve")), "{runs:?}");
    runs.len()
}

/// Announces a signal on a server that dies after `commits`, then lets another one live for a while.
async fn survives(commits: u32, source_id: Option<&str>) -> (usize, usize) {
    let database = format!("announced-{commits}-{}", source_id.is_some());
    let began = Timestamp(1_720_000_000_000);
    let faults = Arc::new(FaultFrom::new(CommitFault::Died));
    let first = server(&database, 1, began, Arc::<FaultFrom>::clone(&faults), false).await;
    let tenant = TenantId(Uuid::from_u128(7));
    first.tenants().put(Tenant::new(tenant, "one", first.now())).await.unwrap();
    let file = ApplyWorkflow {
        tenant,
        file: "heal.yaml".into(),
        source: FILE.into(),
        name: None,
        expected: Expected::Anything,
        person: None,
        by: Actor::system(),
    };
    first.workflows().apply(file).await.unwrap();
    faults.after(commits);
    let cut = tokio::time::timeout(
        Duration::from_secs(1),
        Box::pin(first.signals().announce(alarm(tenant, source_id), of_eve())),
    )
    .await;
    assert!(cut.is_err(), "the server dies on the way");
    let signals = first.store().pending_signals(tenant, "alarm", "db-1", Timestamp(0), 10).await.unwrap().len();
    drop(first);

    let later = Timestamp(began.0 + 6 * 60_000);
    let second = server(&database, 2, later, Arc::new(NoFaults), true).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let started = runs(&second, tenant).await;
    // It is done with: nothing comes after it, also not from a sender that tries again.
    if source_id.is_some() && signals == 1 {
        let again = Box::pin(second.signals().announce(alarm(tenant, source_id), of_eve())).await.unwrap();
        assert_eq!(again.runs.len(), 1);
    }
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert_eq!(runs(&second, tenant).await, started);
    second.stop().await;
    forget_memory(&database);
    (signals, started)
}

#[tokio::test(start_paused = true)]
async fn a_signal_that_is_stored_starts_its_run_whatever_becomes_of_the_server() {
    for source_id in [None, Some("m-1")] {
        assert_eq!(Box::pin(survives(0, source_id)).await, (0, 0), "what was not stored was not promised");
        assert_eq!(Box::pin(survives(1, source_id)).await, (1, 1), "it was stored, and the run was not started");
        assert_eq!(Box::pin(survives(2, source_id)).await, (1, 1), "the run was started, and that was not recorded");
    }
}

on_both! {
    async fn another_signal_under_a_name_is_refused(database: &Database) {
        let engine = harness::engine(database).await;
        let tenant = harness::tenant(&engine, |_| {}).await;
        for (scope, is_of_key) in
            [(SignalScope::Tenant, false), (SignalScope::Message, false), (SignalScope::Request, true)]
        {
            let send = async |payload: &str| {
                let source_id = Some(SourceId { scope: scope.clone(), name: "m-1".into() });
                let request = SignalRequest { payload: Json::trusted(payload), source_id, ..alarm(tenant, None) };
                engine.signals().signal(request).await
            };
            let first = send(r#"{"a":1,"b":2}"#).await;
            assert!(matches!(first, Ok(Signaled::Stored(_))), "{scope:?}: {first:?}");
            let again = send(r#"{ "b": 2, "a": 1 }"#).await;
            assert!(matches!(again, Ok(Signaled::Duplicate)), "{scope:?}: {again:?}");
            match send(r#"{"a":1,"b":3}"#).await {
                // A name that follows from a key is not the sender's to change.
                Err(EngineError::IdempotencyMismatch) if is_of_key => {}
                Err(EngineError::SourceIdTaken { name }) if !is_of_key => assert_eq!(name, "m-1"),
                other => panic!("{scope:?}: {other:?}"),
            }
        }
        let stored = engine.store().pending_signals(tenant, "alarm", "db-1", Timestamp(0), 10).await.unwrap();
        assert_eq!(stored.len(), 3);
        stop(engine).await;
    }

    async fn old_signals_hide_no_new_one(database: &Database) {
        let engine = harness::engine(database).await;
        let tenant = harness::tenant(&engine, |_| {}).await;
        // More than are looked at at once, of a key that was used long before.
        for _ in 0..70 {
            engine.signals().signal(alarm(tenant, None)).await.unwrap();
        }
        tokio::time::sleep(limits::CLOCK_SKEW_TOLERATED.as_duration() + Duration::from_millis(5)).await;
        let wait = |accept| {
            let until = WaitFor::Signal { signal: "alarm".into(), key: Some("db-1".into()), accept };
            plan(vec![StepSpec::new("wait", Work::Wait { until, timeout: None })])
        };
        let run = engine.runs().start(start(tenant, &wait(Accept::SinceRun), "null")).await.unwrap().run;
        reaches(&engine, tenant, run, RunState::WaitingSignal).await;
        engine.signals().signal(alarm(tenant, None)).await.unwrap();
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        // Those before are for waits that accept any.
        let run = engine.runs().start(start(tenant, &wait(Accept::Any), "null")).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        stop(engine).await;
    }

    async fn waits_without_a_signal_stand_in_nobodys_way(database: &Database) {
        let engine = harness::engine(database).await;
        let tenant = harness::tenant(&engine, |_| {}).await;
        let wait = |accept| {
            let until = WaitFor::Signal { signal: "alarm".into(), key: Some("db-1".into()), accept };
            plan(vec![StepSpec::new("wait", Work::Wait { until, timeout: None })])
        };
        engine.signals().signal(alarm(tenant, None)).await.unwrap();
        tokio::time::sleep(limits::CLOCK_SKEW_TOLERATED.as_duration() + Duration::from_millis(5)).await;
        for _ in 0..70 {
            engine.runs().start(start(tenant, &wait(Accept::SinceRun), "null")).await.unwrap();
        }
        let run = engine.runs().start(start(tenant, &wait(Accept::Any), "null")).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        stop(engine).await;
    }

    async fn one_for_everybody_is_heard_once_by_each(database: &Database) {
        let engine = harness::engine(database).await;
        let tenant = harness::tenant(&engine, |_| {}).await;
        let wait = |key: &str| {
            let until =
                WaitFor::Signal { signal: "alarm".into(), key: Some("db-1".into()), accept: Accept::Any };
            StepSpec::new(key, Work::Wait { until, timeout: None })
        };
        let (once, twice) = (plan(vec![wait("a")]), plan(vec![wait("a"), wait("b")]));
        let mut waiting = Vec::new();
        for _ in 0..3 {
            waiting.push(engine.runs().start(start(tenant, &once, "null")).await.unwrap().run);
        }
        let stays = engine.runs().start(start(tenant, &twice, "null")).await.unwrap().run;
        for run in waiting.iter().chain([&stays]) {
            reaches(&engine, tenant, *run, RunState::WaitingSignal).await;
        }
        engine.signals().signal(SignalRequest { broadcast: true, ..alarm(tenant, None) }).await.unwrap();
        for run in waiting {
            assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        }
        // A later wait gets it as well; a run that has had it waits for another.
        let later = engine.runs().start(start(tenant, &once, "null")).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, later).await, RunState::Succeeded);
        assert_eq!(engine.store().load_runs(&[(tenant, stays)]).await.unwrap()[0].position, 1);
        assert_eq!(engine.store().unmatched(10).await.unwrap(), []);
        engine.signals().signal(alarm(tenant, None)).await.unwrap();
        assert_eq!(ends(&engine, tenant, stays).await, RunState::Succeeded);
        assert!(engine.store().check().await.unwrap().is_empty());
        stop(engine).await;
    }
}

/// A run is made by a server whose clock is ahead; its signal comes to one whose clock is behind. Only PostgreSQL has
/// two servers at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_is_heard_though_the_servers_clocks_differ() {
    let database = &Database::postgres().await;
    let ahead = harness::engine(database).await;
    let behind = harness::engine(database).await;
    let tenant = harness::tenant(&ahead, |_| {}).await;
    ahead.clock().adjust(i64::try_from(limits::CLOCK_SKEW_TOLERATED.0).unwrap() / 2);
    let wait = |key: &str| {
        let until = WaitFor::Signal { signal: "alarm".into(), key: Some(key.into()), accept: Accept::SinceRun };
        plan(vec![StepSpec::new("wait", Work::Wait { until, timeout: None })])
    };
    for key in ["db-1", "${{ run.id }}"] {
        let run = ahead.runs().start(start(tenant, &wait(key), "null")).await.unwrap().run;
        reaches(&ahead, tenant, run, RunState::WaitingSignal).await;
        let key = if key == "db-1" { key.to_owned() } else { run.to_string() };
        behind.signals().signal(SignalRequest { key, ..alarm(tenant, None) }).await.unwrap();
        assert_eq!(ends(&ahead, tenant, run).await, RunState::Succeeded);
    }
    stop(behind).await;
    stop(ahead).await;
}
