//! Several servers on one PostgreSQL.

use std::sync::Arc;

use interlock_core::decide::Command;
use interlock_core::ids::SessionId;
use interlock_core::plan::Plan;
use interlock_core::tenant::caps::Caps;
use interlock_store::{
    ExpireSessions, Options, PutTenant, ReadError, Refusal, Seal, Store, StoreUrl, SubmitError, Tenant,
};

use crate::harness::{
    NOW, StartOptions, TestDatabase, World, admin, command, fresh, options, start_set, tasks, tenant_id,
};
use crate::limits::limited;

const CAP: u32 = 4;
const TERMINATE: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'interlock'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cap_holds_over_two_servers() {
    let caps = Caps { max_concurrency: Some(CAP), max_runs_per_min: None };
    it_holds_over_two_servers(caps, &tasks(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workflows_limit_holds_over_two_servers() {
    let caps = Caps { max_concurrency: Some(CAP), max_runs_per_min: None };
    it_holds_over_two_servers(Caps::default(), &limited("narrow", 1, caps)).await;
}

async fn it_holds_over_two_servers(caps: Caps, plan: &Arc<Plan>) {
    let database = TestDatabase::postgres().await;
    let world = database.world().await;
    let tenant = tenant_id(5);
    world.store.write(PutTenant(Tenant { caps, ..Tenant::new(tenant, "capped", NOW) })).await.unwrap();
    let stores = [world.store.clone(), database.open().await];
    let worlds = stores.map(|store| World { store, tenant });
    let mut runs = Vec::new();
    for _ in 0..60 {
        runs.push(worlds[0].start(plan, StartOptions::default()).await);
    }
    // Both servers claim and complete what they can, while the test counts.
    let session = SessionId(fresh());
    let work = |world: World, mut runs: Vec<interlock_core::run::Run>| {
        tokio::spawn(async move {
            let mut finished = 0;
            while !runs.is_empty() {
                let mut left = Vec::new();
                let claims = runs.into_iter().map(|run| {
                    let world = world.clone();
                    async move {
                        let claim = command(&run, Command::Claim { session }, NOW);
                        (world.store.submit(claim).await, run)
                    }
                });
                for (answer, mut run) in futures::future::join_all(claims).await {
                    match answer {
                        Ok(change) => {
                            run.apply(&change);
                            world.finish(&mut run, session).await;
                            finished += 1;
                        }
                        Err(SubmitError::Refused(Refusal::Throttled | Refusal::WorkflowThrottled { .. })) => {
                            left.push(run);
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
                runs = left;
            }
            finished
        })
    };
    let second = runs.split_off(30);
    let mut tasks = [work(worlds[0].clone(), runs), work(worlds[1].clone(), second)];
    let mut most = 0;
    while tasks.iter().any(|task| !task.is_finished()) {
        most = most.max(worlds[1].store.claims_of(session).await.unwrap().len());
    }
    for task in &mut tasks {
        assert_eq!(task.await.unwrap(), 30);
    }
    assert!(most >= 1 && most <= CAP as usize, "{most} claims at once");
    drop(worlds);
    drop(world);
}

/// What a server that is stopped in the middle of a transaction holds: a capped tenant's row, and the sealer's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_server_holds_nobody_up_for_long() {
    let database = TestDatabase::postgres().await;
    let world = database.world().await;
    let tenant = tenant_id(6);
    let caps = Caps { max_concurrency: Some(CAP), max_runs_per_min: None };
    world.store.write(PutTenant(Tenant { caps, ..Tenant::new(tenant, "capped", NOW) })).await.unwrap();
    let capped = World { store: world.store.clone(), tenant };
    let StoreUrl::Postgres(url) = database.url.clone() else { panic!("not PostgreSQL") };
    let (frozen, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    frozen.batch_execute(interlock_store::sql::COMMITTER_SETTINGS).await.unwrap();
    let locks = "BEGIN; SELECT 1 FROM tenants FOR UPDATE; SELECT value FROM meta WHERE key = 'seal' FOR UPDATE";
    frozen.batch_execute(locks).await.unwrap();
    #[expect(clippy::disallowed_methods, reason = "how long others are held up is what is promised")]
    let began = std::time::Instant::now();
    let claimed = StartOptions { claim: Some(SessionId(fresh())), ..StartOptions::default() };
    let plan = tasks(1);
    futures::join!(capped.start(&plan, claimed), async {
        world.store.write(Seal { now: NOW, limit: 10 }).await.unwrap();
    });
    let waited = began.elapsed();
    // The database ends what the frozen one holds after three seconds; without that it would be held for ever.
    assert!(waited < std::time::Duration::from_secs(30), "the others waited for {waited:?}");
    assert!(frozen.batch_execute("COMMIT").await.is_err(), "what the frozen one had begun is undone");
    drop(world);
}

/// While a tenant's row is held elsewhere its runs wait; that workers live is written all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_do_not_wait_for_a_tenants_lock() {
    let database = TestDatabase::postgres().await;
    let world = database.world().await;
    let tenant = tenant_id(6);
    let caps = Caps { max_concurrency: Some(100), max_runs_per_min: None };
    world.store.write(PutTenant(Tenant { caps, ..Tenant::new(tenant, "capped", NOW) })).await.unwrap();
    let StoreUrl::Postgres(url) = database.url.clone() else { panic!("not PostgreSQL") };
    let (holder, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    holder.batch_execute("BEGIN; SELECT 1 FROM tenants FOR UPDATE").await.unwrap();
    // Enough of them to keep every lane for runs waiting.
    let starts: Vec<_> = (0..32)
        .map(|_| {
            let store = world.store.clone();
            let claim = Some(SessionId(fresh()));
            let (_, change) = start_set(tenant, &tasks(1), StartOptions { claim, ..StartOptions::default() });
            tokio::spawn(async move { store.submit(change).await })
        })
        .collect();
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
         AND application_name = 'interlock' AND wait_event_type = 'Lock'";
    let (watch, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    while watch.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::task::yield_now().await;
    }
    let beats = async {
        world.store.write(ExpireSessions { now: NOW }).await.unwrap();
        world.store.keep_lanes(NOW).await.unwrap();
    };
    tokio::time::timeout(std::time::Duration::from_mins(1), beats).await.expect("it waits for the tenant's lock");
    assert!(starts.iter().all(|start| !start.is_finished()));
    holder.batch_execute("ROLLBACK").await.unwrap();
    for start in starts {
        start.await.unwrap().unwrap();
    }
    drop(world);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_on_one_server_wakes_the_other() {
    let database = TestDatabase::postgres().await;
    let world = database.world().await;
    let other = database.open().await;
    let mut wakes = other.remote_wakes();
    // The first wake says that it listens now.
    wakes.changed().await.unwrap();
    let seen = *wakes.borrow_and_update();
    other.write(ExpireSessions { now: NOW }).await.unwrap();
    world.start(&tasks(1), StartOptions::default()).await;
    wakes.changed().await.unwrap();
    assert!(*wakes.borrow_and_update() > seen);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_connections_lose_and_repeat_nothing() {
    let database = TestDatabase::postgres().await;
    let world = database.world().await;
    let StoreUrl::Postgres(url) = database.url.clone() else { panic!("not PostgreSQL") };
    let workers: Vec<_> = (0..16)
        .map(|_| {
            let world = world.clone();
            tokio::spawn(async move {
                for _ in 0..6 {
                    let mut run = world.start(&tasks(4), StartOptions::default()).await;
                    world.finish(&mut run, SessionId(fresh())).await;
                }
            })
        })
        .collect();
    let mut kills = 0u64;
    while workers.iter().any(|worker| !worker.is_finished()) {
        admin(&url, TERMINATE).await;
        kills += 1;
        // A little longer each time: on a busy machine a new connection is not ready for its first commit in 30 ms.
        tokio::time::sleep(std::time::Duration::from_millis((30 + 3 * kills).min(5_000))).await;
    }
    for worker in workers {
        worker.await.unwrap();
    }
    assert!(kills > 2, "{kills}");
    let again = database.open().await;
    assert_eq!(again.check().await.unwrap(), []);
    assert_eq!(again.stats().await.unwrap().live_runs, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_lives_through_a_restore_commits_nothing_more() {
    let database = TestDatabase::postgres().await;
    let world = database.world().await;
    let StoreUrl::Postgres(url) = database.url.clone() else { panic!("not PostgreSQL") };
    interlock_store::restore(None, &database.url, options()).await.unwrap();
    admin(&url, TERMINATE).await;
    // The first one may still be lost with its connection; then it is tried again on a new one.
    let (_, change) = start_set(world.tenant, &tasks(1), StartOptions::default());
    let refused = world.store.submit(change).await.unwrap_err().to_string();
    assert!(refused.contains("restored from a backup"), "{refused}");
    let (_, change) = start_set(world.tenant, &tasks(1), StartOptions::default());
    let refused = world.store.submit(change).await.unwrap_err();
    assert!(matches!(refused, SubmitError::Restored(restored) if restored.found == restored.had + 1), "{refused}");
    assert_eq!(database.open().await.stats().await.unwrap().live_runs, 0);
}

/// What an asynchronous failover leaves: the connections are gone, and so is what was committed last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_has_lost_commits_is_treated_as_restored() {
    let database = TestDatabase::postgres().await;
    let world = database.world().await;
    let StoreUrl::Postgres(url) = database.url.clone() else { panic!("not PostgreSQL") };
    let mut run = world.start(&tasks(2), StartOptions::default()).await;
    // A failover that loses nothing changes nothing for the store.
    admin(&url, TERMINATE).await;
    world.claim(&mut run, SessionId(fresh())).await;
    let behind = "DELETE FROM commit_groups g WHERE length(g.entries) > 0 AND NOT EXISTS (SELECT 1 FROM commit_groups n
         WHERE n.lane_id = g.lane_id AND n.group_no > g.group_no)";
    admin(&url, behind).await;
    admin(&url, TERMINATE).await;
    let done = crate::harness::completion(&run, NOW);
    let refused = world.store.submit(done.clone()).await.unwrap_err().to_string();
    assert!(refused.contains("lost commits in a failover"), "{refused}");
    let refused = world.store.submit(done).await.unwrap_err();
    assert!(matches!(refused, SubmitError::Restored(restored) if restored.found == restored.had + 1), "{refused}");
    let again = database.open().await;
    assert_eq!(
        (again.epoch().await.unwrap(), again.restoring().await.unwrap()),
        (2, Some(2)),
        "its runs are to be parked"
    );
    drop(again);
}

/// A failover after which this server's own commits are all there says nothing about those of others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_is_noticed() {
    another_timeline_is_treated_as_restored_unless_commits_wait_for_a_standby().await;
}

pub async fn another_timeline_is_treated_as_restored_unless_commits_wait_for_a_standby() {
    let database = TestDatabase::postgres().await;
    let world = database.world().await;
    let StoreUrl::Postgres(url) = database.url.clone() else { panic!("not PostgreSQL") };
    let second = database.open().await;
    world.start(&tasks(1), StartOptions::default()).await;
    admin(&url, "UPDATE meta SET value = '0000004D replicated' WHERE key = 'timeline'").await;
    admin(&url, TERMINATE).await;
    world.start(&tasks(1), StartOptions::default()).await;
    assert_eq!(database.open().await.epoch().await.unwrap(), 1, "nothing was lost");

    admin(&url, "UPDATE meta SET value = '0000004D' WHERE key = 'timeline'").await;
    admin(&url, TERMINATE).await;
    for store in [&world.store, &second] {
        let (_, change) = start_set(world.tenant, &tasks(1), StartOptions::default());
        store.submit(change).await.unwrap_err();
        let (_, change) = start_set(world.tenant, &tasks(1), StartOptions::default());
        let refused = store.submit(change).await.unwrap_err();
        assert!(matches!(refused, SubmitError::Restored(restored) if restored.found == 2), "{refused}");
    }
    // Once for all lanes of all servers, and a server that starts now goes on from there.
    let again = database.open().await;
    assert_eq!((again.epoch().await.unwrap(), again.restoring().await.unwrap()), (2, Some(2)));
    again.write(ExpireSessions { now: NOW }).await.unwrap();

    // A server that starts after the failover notices it too.
    admin(&url, "UPDATE meta SET value = '0000004E' WHERE key = 'timeline'").await;
    assert_eq!(database.open().await.epoch().await.unwrap(), 3);
    drop(again);
}

/// The caller of a read that takes too long is told so in time, and the read ends in the database as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_takes_too_long_is_given_up() {
    let database = TestDatabase::postgres().await;
    database.world().await;
    let StoreUrl::Postgres(url) = database.url.clone() else { panic!("not PostgreSQL") };
    // Long enough for a read that has to wait for nothing, on a busy machine.
    let read_timeout = std::time::Duration::from_secs(3);
    let store = Store::open(&database.url, Options { read_timeout, ..options() }).await.unwrap();
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute("BEGIN; LOCK TABLE tenants IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let scoped = store.on_behalf_of(tenant_id(1));
    let (plain, scoped) = futures::join!(store.tenants(), scoped.tenants());
    assert!(matches!(plain, Err(ReadError::Unavailable(_))), "{plain:?}");
    assert!(matches!(scoped, Err(ReadError::Unavailable(_))), "{scoped:?}");
    // Within a transaction the activity is looked at once and remembered.
    let waiting = "SELECT pg_stat_clear_snapshot(), (SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'interlock' AND state = 'active'
         AND query LIKE '%FROM tenants%')";
    let mut left = 1;
    for _ in 0..600 {
        left = client.query_one(waiting, &[]).await.unwrap().get::<_, i64>(1);
        if left == 0 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(left, 0, "they still wait for the lock");
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(store.tenants().await.unwrap().len(), 1);
    drop(client);
    connection.await.unwrap().unwrap();
    drop(store);
}
