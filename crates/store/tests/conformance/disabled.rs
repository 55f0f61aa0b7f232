//! No run of a disabled tenant begins: what is looked at is the row as it is in the commit, not what a server remembers.

use std::time::Duration;

use interlock_core::decide::{Command, Queued};
use interlock_core::ids::SessionId;
use interlock_store::{
    ChangeTenant, Changed, Options, PutTenant, Refusal, Store, StoreUrl, SubmitError, Tenant, begin_lock,
};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

use crate::guards::refusal;
use crate::harness::{NOW, StartOptions, TestDatabase, World, command, fresh, options, start_set, tasks, tenant_id};

crate::on_every_store!(no_run_of_a_disabled_tenant_begins, what_starts_beside_the_disabling_is_there_by_its_answer);

fn row(world: &World, disabled: bool) -> Tenant {
    Tenant { disabled_at: disabled.then_some(NOW), ..Tenant::new(world.tenant, "one", NOW) }
}

async fn no_run_of_a_disabled_tenant_begins(database: &TestDatabase) {
    let world = database.world().await;
    let second = World { store: database.second(&world.store).await, tenant: world.tenant };
    let plan = tasks(2);
    let about = || StartOptions { subject: Some("T-1".into()), ..StartOptions::default() };
    // Both servers have had to do with the tenant, so both remember it.
    let mut holder = second.start(&plan, about()).await;
    let queued = Some(Queued { cancels: false });
    let mut waiting = world.start(&plan, StartOptions { queued, ..about() }).await;

    let disable = ChangeTenant { read: row(&world, false), tenant: row(&world, true) };
    assert_eq!(world.store.write(disable).await.unwrap(), Changed::Done);
    for store in [&second.store, &world.store] {
        let (run, change) = start_set(world.tenant, &plan, StartOptions::default());
        assert_eq!(refusal(store.submit(change).await), Some(Refusal::TenantDisabled));
        let (_, in_front) = start_set(world.tenant, &plan, StartOptions::default());
        assert_eq!(refusal(store.submit_priority(in_front).await), Some(Refusal::TenantDisabled));
        assert!(store.load_runs(&[(run.tenant, run.id)]).await.unwrap().is_empty());
    }
    // What is running goes on, and the run behind it does not begin.
    second.finish(&mut holder, SessionId(fresh())).await;
    let admit = command(&waiting, Command::Admit, NOW);
    assert_eq!(refusal(second.store.submit(admit.clone()).await), Some(Refusal::TenantDisabled));
    assert_eq!(world.store.subject_holder(world.tenant, "T-1").await.unwrap(), None);

    world.store.write(PutTenant(row(&world, false))).await.unwrap();
    second.apply(&mut waiting, admit).await;
    world.start(&plan, StartOptions::default()).await;
    assert_eq!(world.findings().await, []);
}

/// Starts at another server race the disabling: each is either committed when that is answered, or refused.
async fn what_starts_beside_the_disabling_is_there_by_its_answer(database: &TestDatabase) {
    let world = database.world().await;
    let second = database.second(&world.store).await;
    let plan = tasks(1);
    for round in 0..10 {
        world.store.write(PutTenant(row(&world, false))).await.unwrap();
        let sets: Vec<_> = (0..40).map(|_| start_set(world.tenant, &plan, StartOptions::default())).collect();
        let ids: Vec<_> = sets.iter().map(|(run, _)| (run.tenant, run.id)).collect();
        let starts: Vec<_> = sets
            .into_iter()
            .map(|(_, change)| {
                let store = second.clone();
                tokio::spawn(async move { store.submit(change).await })
            })
            .collect();
        world.store.write(PutTenant(row(&world, true))).await.unwrap();
        let by_then = world.store.load_runs(&ids).await.unwrap().len();
        let mut started = 0;
        for start in starts {
            match refusal(start.await.unwrap()) {
                None => started += 1,
                Some(refused) => assert_eq!(refused, Refusal::TenantDisabled),
            }
        }
        assert_eq!(started, by_then, "round {round}: a run began after the tenant was disabled");
        assert_eq!(world.store.load_runs(&ids).await.unwrap().len(), by_then, "round {round}");
    }
    assert_eq!(world.findings().await, []);
}

const PATIENCE: Duration = Duration::from_mins(1);

/// A store with one lane for runs and two tenants, and a connection that does what another server does.
struct TwoServers {
    store: Store,
    other: Client,
    watch: Client,
}

impl TwoServers {
    async fn new(database: &TestDatabase) -> Self {
        let store = Store::open(&database.url, Options { lanes: 1, ..options() }).await.unwrap();
        for number in [1, 2] {
            store.write(PutTenant(Tenant::new(tenant_id(number), format!("tenant-{number}"), NOW))).await.unwrap();
        }
        assert_ne!(begin_lock(tenant_id(1)), begin_lock(tenant_id(2)));
        Self { store, other: client(database).await, watch: client(database).await }
    }

    /// A start of the first tenant, which the lane has when this returns.
    async fn start(&self) -> JoinHandle<Result<(), SubmitError>> {
        let (store, (_, change)) = (self.store.clone(), start_set(tenant_id(1), &tasks(1), StartOptions::default()));
        let mut start = Box::pin(async move { store.submit(change).await.map(drop) });
        assert!(futures::poll!(start.as_mut()).is_pending(), "the database was not asked");
        tokio::spawn(start)
    }

    /// Starts of the other tenant, in the same lane, one after the other.
    async fn others_start(&self) {
        let world = World { store: self.store.clone(), tenant: tenant_id(2) };
        let others = async {
            for _ in 0..10 {
                world.start(&tasks(1), StartOptions::default()).await;
            }
        };
        tokio::time::timeout(PATIENCE, others).await.expect("the other tenant waits as well");
    }
}

async fn client(database: &TestDatabase) -> Client {
    let StoreUrl::Postgres(url) = &database.url else { panic!("not PostgreSQL") };
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_waits_for_the_disabling_under_way_and_others_do_not() {
    let database = TestDatabase::postgres().await;
    let servers = TwoServers::new(&database).await;
    let key = begin_lock(tenant_id(1));
    let hex = tenant_id(1).0.simple().to_string();
    let disabling = format!(
        "BEGIN; SELECT pg_advisory_xact_lock({key}); UPDATE tenants SET disabled_at = 1 WHERE tenant_id = '\\x{hex}'"
    );
    for (ends, refused) in [("ROLLBACK", None), ("COMMIT", Some(Refusal::TenantDisabled))] {
        servers.other.batch_execute(&disabling).await.unwrap();
        let start = servers.start().await;
        // The lane takes what is submitted in its order: once these are committed, it has tried the start.
        servers.others_start().await;
        assert!(!start.is_finished(), "{ends}: nobody knows yet whether it may begin");
        servers.other.batch_execute(ends).await.unwrap();
        let answer = tokio::time::timeout(PATIENCE, start).await.expect("it still waits").unwrap();
        let told = answer.err().map(|error| match error {
            SubmitError::Refused(refusal) => refusal,
            other => panic!("{other}"),
        });
        assert_eq!(told, refused, "{ends}");
    }
    servers.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_disabling_waits_for_starts_under_way() {
    let database = TestDatabase::postgres().await;
    let servers = TwoServers::new(&database).await;
    let key = begin_lock(tenant_id(1));
    // A transaction of another server in which a run begins.
    servers.other.batch_execute(&format!("BEGIN; SELECT pg_advisory_xact_lock_shared({key})")).await.unwrap();
    let started = tokio::time::timeout(PATIENCE, servers.start().await).await.expect("starts wait for each other");
    started.unwrap().unwrap();
    let store = servers.store.clone();
    let tenant = Tenant { disabled_at: Some(NOW), ..Tenant::new(tenant_id(1), "tenant-1", NOW) };
    let disabling = tokio::spawn(async move { store.write(PutTenant(tenant)).await });
    let waits = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
             AND application_name = 'interlock' AND wait_event_type = 'Lock'";
        while servers.watch.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waits).await.expect("it waits for no lock");
    assert!(!disabling.is_finished());
    servers.others_start().await;
    assert!(!disabling.is_finished(), "a start is under way");
    servers.other.batch_execute("COMMIT").await.unwrap();
    tokio::time::timeout(PATIENCE, disabling).await.expect("it still waits").unwrap().unwrap();
    let refused = servers.start().await.await.unwrap();
    assert!(matches!(refused, Err(SubmitError::Refused(Refusal::TenantDisabled))), "{refused:?}");
    servers.store.close().await;
}
