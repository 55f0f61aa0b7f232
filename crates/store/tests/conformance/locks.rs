//! A transaction elsewhere holds a lock and does not let go, as that of a frozen server does: commits that need the
//! lock wait, and all others go on, in the same lane.

use std::time::Duration;

use interlock_core::ids::{SessionId, TenantId};
use interlock_core::json::Hash;
use interlock_core::run::change::IdempotencyRow;
use interlock_core::tenant::caps::Caps;
use interlock_store::{Options, PutTenant, Store, StoreUrl, SubmitError, Tenant};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

use crate::harness::{NOW, StartOptions, TestDatabase, World, completion, fresh, options, start_set, tasks, tenant_id};

/// Far more than a busy machine takes for some dozens of commits. The lock is held until the test lets go of it.
const PATIENCE: Duration = Duration::from_mins(1);

/// A store with one lane for runs, a tenant with a limit, and a connection that locks things.
struct LockedStore {
    database: TestDatabase,
    world: World,
    capped: World,
    holder: Client,
    watch: Client,
}

async fn scene() -> LockedStore {
    let database = TestDatabase::postgres().await;
    let store = Store::open(&database.url, Options { lanes: 1, ..options() }).await.unwrap();
    let (tenant, limited) = (tenant_id(1), tenant_id(6));
    store.write(PutTenant(Tenant::new(tenant, "one", NOW))).await.unwrap();
    let caps = Caps { max_concurrency: Some(100), max_runs_per_min: None };
    store.write(PutTenant(Tenant { caps, ..Tenant::new(limited, "capped", NOW) })).await.unwrap();
    let (holder, watch) = (client(&database).await, client(&database).await);
    let world = World { store: store.clone(), tenant };
    LockedStore { database, world, capped: World { store, tenant: limited }, holder, watch }
}

async fn client(database: &TestDatabase) -> Client {
    let StoreUrl::Postgres(url) = &database.url else { panic!("not PostgreSQL") };
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

impl LockedStore {
    async fn hold(&self, sql: &str) {
        self.holder.batch_execute(&format!("BEGIN; {sql}")).await.unwrap();
    }

    async fn release(&self) {
        self.holder.batch_execute("ROLLBACK").await.unwrap();
    }

    /// Until some session of the store waits for a lock.
    async fn a_session_waits_for_a_lock(&self) {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
             AND application_name = 'interlock' AND wait_event_type = 'Lock'";
        while self.watch.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
    }

    /// A few dozen commits of the other tenant, one after the other, take no longer than they may.
    async fn others_go_on(&self) {
        let others = async {
            for _ in 0..30 {
                let mut run = self.world.start(&tasks(1), StartOptions::default()).await;
                self.world.finish(&mut run, SessionId(fresh())).await;
            }
        };
        tokio::time::timeout(PATIENCE, others).await.expect("the others wait as well");
    }

    async fn end(self) {
        assert_eq!(self.world.findings().await, []);
    }
}

fn claimed() -> StartOptions {
    StartOptions { claim: Some(SessionId(fresh())), ..StartOptions::default() }
}

fn submitted(store: &Store, tenant: TenantId, wanted: StartOptions) -> JoinHandle<Result<(), SubmitError>> {
    let (store, (_, change)) = (store.clone(), start_set(tenant, &tasks(1), wanted));
    tokio::spawn(async move { store.submit(change).await.map(drop) })
}

pub async fn other_tenants_go_on_while_one_tenants_limits_are_locked() {
    let scene = scene().await;
    scene.hold("SELECT 1 FROM tenants FOR UPDATE").await;
    let mut waiting = vec![submitted(&scene.capped.store, scene.capped.tenant, claimed())];
    scene.a_session_waits_for_a_lock().await;
    waiting.extend((0..20).map(|_| submitted(&scene.capped.store, scene.capped.tenant, claimed())));
    scene.others_go_on().await;
    assert!(waiting.iter().all(|start| !start.is_finished()), "the tenant's limits were not asked");
    scene.release().await;
    for start in waiting {
        start.await.unwrap().unwrap();
    }
    scene.end().await;
}

pub async fn a_locked_run_waits_alone_and_keeps_its_order() {
    let scene = scene().await;
    let run = scene.world.start(&tasks(3), claimed()).await;
    scene.hold("SELECT 1 FROM run_live FOR UPDATE").await;
    // Two changes of the run, the second without waiting for the first.
    let first = completion(&run, NOW);
    let mut after = run.clone();
    after.apply(&first);
    let second = completion(&after, NOW);
    let mut end = after.clone();
    end.apply(&second);
    let submit = |change| {
        let store = scene.world.store.clone();
        tokio::spawn(async move { store.submit(change).await.map(drop) })
    };
    let first = submit(first);
    scene.a_session_waits_for_a_lock().await;
    let second = submit(second);
    scene.others_go_on().await;
    assert!(!first.is_finished() && !second.is_finished());
    scene.release().await;
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
    assert_eq!(scene.world.load(&run).await.version, end.version);
    scene.end().await;
}

mod among_others {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn other_tenants_go_on_while_one_tenants_limits_are_locked() {
        super::other_tenants_go_on_while_one_tenants_limits_are_locked().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_locked_run_waits_alone_and_keeps_its_order() {
        super::a_locked_run_waits_alone_and_keeps_its_order().await;
    }
}

/// What no look at tenants and runs tells: the key that another transaction has just written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_key_waits_alone() {
    let scene = scene().await;
    let keyed = || StartOptions {
        idempotency: Some(IdempotencyRow {
            client: "c".into(),
            key: "k".into(),
            source: "api".into(),
            request_hash: Hash::of(b"request"),
            expires_at: NOW,
        }),
        ..StartOptions::default()
    };
    // Another start with the same key, which is not committed yet.
    let tenant = scene.world.tenant.0.simple().to_string();
    scene
        .hold(&format!(
            "INSERT INTO idempotency (tenant_id, client, key, source, request_hash, state, attempts, created_at, updated_at, expires_at)
             VALUES ('\\x{tenant}', 'c', 'k', 'api', '\\x00', 'completed', 1, 0, 0, 0)"
        ))
        .await;
    let start = submitted(&scene.world.store, scene.world.tenant, keyed());
    scene.a_session_waits_for_a_lock().await;
    scene.others_go_on().await;
    assert!(!start.is_finished());
    scene.release().await;
    start.await.unwrap().unwrap();
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_that_waits_for_a_lock_waits_alone() {
    let scene = scene().await;
    scene.hold("SELECT 1 FROM tenants FOR UPDATE").await;
    let store = scene.world.store.clone();
    let renamed = Tenant::new(scene.capped.tenant, "renamed", NOW);
    let put = tokio::spawn(async move { store.write(PutTenant(renamed)).await });
    scene.a_session_waits_for_a_lock().await;
    scene.others_go_on().await;
    assert!(!put.is_finished());
    scene.release().await;
    put.await.unwrap().unwrap();
    scene.end().await;
}

/// Closing waits for what is blocked, like for everything that was taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_waits_for_what_is_blocked() {
    let scene = scene().await;
    scene.hold("SELECT 1 FROM tenants FOR UPDATE").await;
    let start = submitted(&scene.capped.store, scene.capped.tenant, claimed());
    scene.a_session_waits_for_a_lock().await;
    let closing = tokio::spawn(scene.world.store.clone().close());
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(!closing.is_finished(), "it was closed with a start in it");
    scene.release().await;
    start.await.unwrap().unwrap();
    closing.await.unwrap();
}

/// A session whose client takes no answers is not idle as long as the answer fills the socket. Its locks come free all the
/// same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_takes_no_answer_loses_its_locks() {
    let scene = scene().await;
    let StoreUrl::Postgres(url) = &scene.database.url else { panic!("not PostgreSQL") };
    let (frozen, mut connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let begin = async {
        frozen.batch_execute(interlock_store::sql::COMMITTER_SETTINGS).await.unwrap();
        frozen.batch_execute("BEGIN; SELECT 1 FROM tenants FOR UPDATE").await.unwrap();
    };
    tokio::select! {
        () = begin => {}
        _ = &mut connection => panic!("the connection ended"),
    }
    // Sent, and from then on the client does not read.
    let large = frozen.simple_query("SELECT repeat('x', 100000000)");
    let sent = tokio::time::timeout(Duration::from_millis(300), async { futures::join!(large, &mut connection) });
    assert!(sent.await.is_err(), "the answer did not fill the socket");
    let start = submitted(&scene.capped.store, scene.capped.tenant, claimed());
    let started = tokio::time::timeout(PATIENCE, start).await;
    started.expect("the lock is still held").unwrap().unwrap();
    drop(connection);
    scene.end().await;
}
