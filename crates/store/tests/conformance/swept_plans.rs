//! Retention of what belongs to no run: plans that no run uses, lanes of servers that are gone.

use std::sync::Arc;
use std::time::Duration;

use interlock_core::ids::{RunId, SessionId};
use interlock_core::plan::{Plan, StepSpec};
use interlock_core::time::{Millis, Timestamp};
use interlock_store::{Seal, Store, StoreUrl, Sweep};
use uuid::Uuid;

use crate::harness::{NOW, StartOptions, TestDatabase, World, fresh, plan_of, tasks};

crate::on_every_store!(a_plan_goes_with_its_last_run, a_start_and_a_sweep_do_not_miss_each_other);

fn days(count: u64) -> Timestamp {
    NOW + Millis::from_hours(24 * count)
}

async fn sweep(store: &Store, now: Timestamp) -> u64 {
    store.write(Sweep::new(now)).await.unwrap()
}

/// A plan that no other test run has.
fn plan_number(number: u64) -> Arc<Plan> {
    plan_of(vec![StepSpec::task(format!("step{number}"), "noop")])
}

/// An id that an instant begins.
fn id_at(at: Timestamp) -> RunId {
    let fresh = fresh().as_u128() & ((1 << 80) - 1);
    RunId(Uuid::from_u128((at.0 as u128) << 80 | fresh))
}

fn wanted_at(at: Timestamp) -> StartOptions {
    StartOptions { at: Some(at), id: Some(id_at(at)), ..StartOptions::default() }
}

async fn has_plan(world: &World, plan: &Plan) -> bool {
    // Another store has nothing in memory.
    world.store.plan_is_stored(world.tenant, plan.encode().0).await.unwrap()
}

async fn a_plan_goes_with_its_last_run(database: &TestDatabase) {
    let world = database.world().await;
    let (short, long) = (plan_number(1), plan_number(2));
    let mut done = world.start(&short, StartOptions::default()).await;
    let live = world.start(&long, StartOptions::default()).await;
    world.finish(&mut done, SessionId(fresh())).await;

    sweep(&world.store, days(90)).await;
    assert!(has_plan(&world, &short).await, "its run is there");
    sweep(&world.store, days(91)).await;
    assert!(world.store.load_runs(&[(done.tenant, done.id)]).await.unwrap().is_empty());
    assert!(has_plan(&world, &short).await, "a plan stays a day longer than its run");
    sweep(&world.store, days(92)).await;
    assert!(!has_plan(&world, &short).await);
    assert!(has_plan(&world, &long).await, "a run lives that uses it");
    // Whatever the writer remembers, a start brings its plan.
    let again = world.start(&short, wanted_at(days(92))).await;
    assert!(has_plan(&world, &short).await);
    assert_eq!(world.load(&again).await, again);
    assert_eq!(world.load(&live).await, live);
    // Also after the span in which it is looked at again.
    sweep(&world.store, days(92 + 92)).await;
    assert!(has_plan(&world, &long).await && has_plan(&world, &short).await);
    assert_eq!(world.findings().await, []);
}

/// Starts of old plans on one server while another one sweeps, again and again.
async fn a_start_and_a_sweep_do_not_miss_each_other(database: &TestDatabase) {
    let world = database.world().await;
    let other = match &database.url {
        StoreUrl::Sqlite(_) => world.store.clone(),
        _ => database.open().await,
    };
    for round in 0..40 {
        let began = days(1_000 * round);
        let plans: Vec<_> = (0..5).map(|number| plan_number(100 * round + number)).collect();
        for plan in &plans {
            let mut run = world.start(plan, wanted_at(began)).await;
            run.apply(&world.store.submit(crate::harness::command(&run, cancel(), began)).await.unwrap());
        }
        let now = began + Millis::from_hours(24 * 92);
        let starts = plans.iter().map(|plan| world.start(plan, wanted_at(now)));
        let (_, started) = futures::join!(sweep(&other, now), futures::future::join_all(starts));
        assert_eq!(world.findings().await, [], "round {round}");
        for run in started {
            assert_eq!(world.load(&run).await, run);
        }
    }
}

fn cancel() -> interlock_core::decide::Command {
    interlock_core::decide::Command::Cancel { reason: "enough".into(), rollback: false }
}

/// The start has written its rows and not committed: the sweep, which cannot see them, waits and leaves the plan.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_waits_for_a_start_that_is_under_way() {
    let database = TestDatabase::postgres().await;
    let world = database.world().await;
    let plan = plan_number(7);
    let mut old = world.start(&plan, StartOptions::default()).await;
    world.finish(&mut old, SessionId(fresh())).await;
    let StoreUrl::Postgres(url) = &database.url else { panic!("not PostgreSQL") };
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let now = days(92);
    let used = interlock_store::sql::hot::PLAN_USE.postgres;
    let hash = plan.encode().0;
    client.batch_execute("BEGIN").await.unwrap();
    let tenant = world.tenant.as_bytes().as_slice();
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
        [&tenant, &hash.0.as_slice(), &"demo", &1i64, &"{}", &now.0];
    client.execute(used, &values).await.unwrap();
    let store = world.store.clone();
    let mut sweeping = tokio::spawn(async move { sweep(&store, now).await });
    let early = tokio::time::timeout(Duration::from_millis(500), &mut sweeping).await;
    assert!(early.is_err(), "the sweep waits for the row");
    client.batch_execute("COMMIT").await.unwrap();
    sweeping.await.unwrap();
    assert!(world.store.load_runs(&[(old.tenant, old.id)]).await.unwrap().is_empty(), "the old run is gone");
    assert!(has_plan(&world, &plan).await, "and its plan is not, because another run uses it");
    world.store.close().await;
}

pub async fn count(database: &TestDatabase, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    match &database.url {
        StoreUrl::Postgres(url) => {
            let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
            tokio::spawn(connection);
            client.query_one(&sql, &[]).await.unwrap().get(0)
        }
        _ => rusqlite::Connection::open(database.path()).unwrap().query_row(&sql, [], |row| row.get(0)).unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lanes_of_a_server_that_is_gone_go_on_sqlite() {
    let database = TestDatabase::file();
    lanes_go(&database).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lanes_of_a_server_that_is_gone_go_on_postgres() {
    let database = TestDatabase::postgres().await;
    lanes_go(&database).await;
}

async fn lanes_go(database: &TestDatabase) {
    let world = database.world().await;
    let lanes_each = count(database, "lanes").await;
    let mut first = world.start(&tasks(1), StartOptions::default()).await;
    world.finish(&mut first, SessionId(fresh())).await;
    let tenant = world.tenant;
    world.store.close().await;

    let world = World { store: database.open().await, tenant };
    world.store.keep_lanes(NOW).await.unwrap();
    sweep(&world.store, NOW).await;
    assert_eq!(count(database, "lanes").await, 2 * lanes_each);
    let later = days(8);
    world.store.keep_lanes(later).await.unwrap();
    sweep(&world.store, later).await;
    let left = count(database, "lanes").await;
    assert!(left > lanes_each, "what the first server committed is not sealed yet");
    let sealed = Seal { now: later, limit: 1_000 };
    world.store.write(sealed).await.unwrap();
    sweep(&world.store, later).await;
    assert!(count(database, "lanes").await > lanes_each, "its last commit is the newest: no clock may go below it");
    // In every lane that runs go through.
    for _ in 0..40 {
        world.start(&tasks(1), wanted_at(later)).await;
    }
    sweep(&world.store, later).await;
    assert_eq!(count(database, "lanes").await, lanes_each);
    assert!(count(database, "feed_positions").await <= lanes_each);
    world.store.write(sealed).await.unwrap();
    let events = world.store.tenant_events(tenant, 0, 1_000).await.unwrap().events;
    assert!(events.iter().any(|event| event.run == first.id), "what it committed stays on record");
    assert_eq!(events.iter().map(|event| event.run).collect::<std::collections::HashSet<_>>().len(), 41);
    world.store.close().await;
}

/// A server that was taken for dead, and comes back: what it commits is late in the feed, not lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_comes_back_takes_its_lanes_again() {
    let database = TestDatabase::postgres().await;
    let silent = database.world().await;
    let other = World { store: database.open().await, tenant: silent.tenant };
    let later = days(8);
    sweep(&other.store, NOW).await;
    for _ in 0..40 {
        other.start(&tasks(1), wanted_at(later)).await;
    }
    other.store.keep_lanes(later).await.unwrap();
    let before = count(&database, "lanes").await;
    sweep(&other.store, later).await;
    assert!(count(&database, "lanes").await < before, "it has said nothing for a week");

    let run = silent.start(&tasks(1), wanted_at(later)).await;
    sweep(&other.store, later).await;
    silent.store.keep_lanes(later).await.unwrap();
    other.store.write(Seal { now: later, limit: 1_000 }).await.unwrap();
    let events = other.store.tenant_events(silent.tenant, 0, 1_000).await.unwrap().events;
    assert!(events.iter().any(|event| event.run == run.id));
    let newest = database.open().await;
    assert_eq!(count(&database, "lanes").await, before + before / 2, "and no other lane has had their numbers");
    for store in [silent.store, other.store, newest] {
        store.close().await;
    }
}
