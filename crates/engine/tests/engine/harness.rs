//! What the engine's tests stand on: an engine over either database, and a worker small enough to see through.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use interlock_core::ids::{RunId, ServerId, SessionId, TenantId};
use interlock_core::json::Json;
use interlock_core::plan::{DEFAULT_QUEUE, Plan, StepSpec};
use interlock_core::state::RunState;
use interlock_core::time::Millis;
use interlock_core::work::{Assignment, EFFECTS, Report, ReportedOutcome, WorkerHello};
use interlock_engine::deliver::NoOtherDestinations;
use interlock_engine::{EncodedPlan, Engine, EngineError, EngineOptions, StartRun};
use interlock_store::{Options, Store, StoreUrl, Tenant};

use crate::fresh_postgres::fresh_postgres;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A database of its own for one test, removed at the end.
pub struct Database {
    pub url: StoreUrl,
    folder: Option<std::path::PathBuf>,
}

impl Database {
    pub fn sqlite() -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("interlock-engine-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self { url: StoreUrl::Sqlite(folder.join("test.db")), folder: Some(folder) }
    }

    pub async fn postgres() -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let url = fresh_postgres(&format!("engine_{}_{number}", std::process::id())).await;
        Self { url: StoreUrl::Postgres(url), folder: None }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// How long a test waits for what usually takes milliseconds: far longer than a busy machine stands still.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Options with leases that outlive a test: a worker keeps its session also where the machine stands still for seconds.
pub fn options() -> EngineOptions {
    EngineOptions {
        session_lease: Millis::from_mins(10),
        session_renewal: Millis::from_mins(1),
        reap_every: Millis(100),
        scan_every: Millis(200),
        seal_every: Millis(20),
        ..EngineOptions::new(Arc::new(NoOtherDestinations))
    }
}

pub async fn engine_with(database: &Database, options: EngineOptions) -> Engine {
    let server = ServerId(options.ids.fresh());
    let store = Store::open(&database.url, Options::new(server)).await.unwrap();
    Engine::open(store, options).await.unwrap()
}

pub async fn engine(database: &Database) -> Engine {
    engine_with(database, options()).await
}

/// With leases that end within a test, for tests in which a worker is lost.
pub fn short_leases() -> EngineOptions {
    EngineOptions { session_lease: Millis::from_secs(4), ..options() }
}

/// An engine that notices within seconds that a worker is lost.
pub async fn engine_that_loses_workers(database: &Database) -> Engine {
    engine_with(database, short_leases()).await
}

pub async fn stop(engine: Engine) {
    engine.stop().await;
    engine.store().clone().close().await;
}

pub async fn tenant(engine: &Engine, change: impl FnOnce(&mut Tenant)) -> TenantId {
    let id = TenantId(engine.fresh_id());
    let mut tenant = Tenant::new(id, id.to_string(), engine.now());
    change(&mut tenant);
    engine.tenants().put(tenant).await.unwrap();
    id
}

pub fn plan(steps: Vec<StepSpec>) -> Arc<EncodedPlan> {
    plan_with(steps, |_| {})
}

pub fn plan_with(steps: Vec<StepSpec>, change: impl FnOnce(&mut Plan)) -> Arc<EncodedPlan> {
    let mut plan = Plan::new("test", steps);
    change(&mut plan);
    EncodedPlan::new(plan).unwrap()
}

pub fn start(tenant: TenantId, plan: &Arc<EncodedPlan>, inputs: &str) -> StartRun {
    StartRun::new(tenant, Arc::clone(plan), Json::parse(inputs, 1 << 20).unwrap())
}

pub fn hello(slots: u32) -> WorkerHello {
    WorkerHello {
        worker: "test".into(),
        tenant: None,
        queues: vec![DEFAULT_QUEUE.into()],
        slots,
        build_id: None,
        tasks: None,
        capabilities: Some(vec![EFFECTS.into()]),
        environments: None,
        labels: BTreeMap::new(),
    }
}

pub fn done(output: &str) -> ReportedOutcome {
    ReportedOutcome::Completed { output: Json::parse(output, 1 << 20).unwrap() }
}

/// A worker whose tasks are one function. Like any worker it takes a new session when its own is gone. Stops with the
/// engine, or when it is aborted by what is returned.
pub fn work<F, Fut>(engine: &Engine, slots: u32, task: F) -> tokio::task::AbortHandle
where
    F: Fn(Assignment) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ReportedOutcome> + Send + 'static,
{
    let engine = engine.clone();
    let task = Arc::new(task);
    let working =
        tokio::spawn(async move { while let Err(EngineError::SessionGone) = session(&engine, slots, &task).await {} });
    working.abort_handle()
}

/// One session of such a worker, until it is gone or the engine stops.
async fn session<F, Fut>(engine: &Engine, slots: u32, task: &Arc<F>) -> Result<(), EngineError>
where
    F: Fn(Assignment) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ReportedOutcome> + Send + 'static,
{
    let session = engine.workers().register(hello(slots)).await?.session;
    let held: Arc<std::sync::Mutex<HashMap<RunId, _>>> = Arc::default();
    let renewing = (engine.clone(), Arc::clone(&held));
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let listed: Vec<_> = renewing.1.lock().unwrap().values().copied().collect();
            if renewing.0.workers().heartbeat(session, &listed, false).await.is_err() {
                return;
            }
        }
    });
    loop {
        for assignment in engine.workers().poll(session, slots as usize, Duration::from_secs(5)).await? {
            let (engine, task, held) = (engine.clone(), Arc::clone(task), Arc::clone(&held));
            tokio::spawn(async move {
                let mut next = Some(assignment);
                while let Some(assignment) = next {
                    held.lock().unwrap().insert(assignment.at.run, assignment.at);
                    let outcome = task(assignment.clone()).await;
                    next = report(&engine, session, &assignment, outcome).await;
                    held.lock().unwrap().remove(&assignment.at.run);
                }
            });
        }
    }
}

pub async fn report(
    engine: &Engine,
    session: SessionId,
    assignment: &Assignment,
    outcome: ReportedOutcome,
) -> Option<Assignment> {
    let report = Report {
        at: assignment.at,
        epoch: assignment.epoch,
        outcome,
        claim_next: true,
        cost: None,
        credentials: Vec::new(),
    };
    engine.workers().complete(session, report).await.ok().and_then(|completed| completed.next)
}

pub async fn ends(engine: &Engine, tenant: TenantId, run: RunId) -> RunState {
    tokio::time::timeout(PATIENCE, engine.events().wait_for_end(tenant, run))
        .await
        .unwrap_or_else(|_| panic!("{run} did not end in time"))
        .unwrap()
}

/// Waits until a run is in a state.
pub async fn reaches(engine: &Engine, tenant: TenantId, run: RunId, state: RunState) {
    let mut watcher = engine.events().watch_run(tenant, run, 0);
    let seen = async {
        loop {
            watcher.next_of_run().await.unwrap();
            let now = engine.store().run_overview(tenant, run).await.unwrap().unwrap();
            if now.state == state {
                return;
            }
        }
    };
    if tokio::time::timeout(PATIENCE, seen).await.is_err() {
        let now = engine.store().run_overview(tenant, run).await.unwrap().unwrap();
        panic!("{run} is {} ({:?}), not {state}", now.state, now.reason);
    }
}

/// Runs a test body over both databases, as two tests.
#[macro_export]
macro_rules! on_both {
    ($(async fn $name:ident($database:ident: &Database) $body:block)+) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(&$crate::harness::Database::sqlite()).await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(&$crate::harness::Database::postgres().await).await;
            })+
        }
        $(async fn $name($database: &Database) $body)+
    };
}
