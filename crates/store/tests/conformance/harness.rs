//! Stores to test and runs to put into them. Runs are made by core's `decide`, so the rows are the real ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use interlock_core::decide::{
    self, Asking, Bound, Command, CommandOrigin, Completion, DecideContext, Outcome, Queued, Rendered, StartRequest,
    Used,
};
use interlock_core::governance::judge::AllowDeclared;
use interlock_core::ids::{RunId, ServerId, SessionId, TenantId};
use interlock_core::json::HashHex;
use interlock_core::json::Json;
use interlock_core::plan::{Plan, StepSpec};
use interlock_core::run::change::{ChangeSet, IdempotencyRow};
use interlock_core::run::{Header, Lineage, Run, Trigger};
use interlock_core::time::Timestamp;
use interlock_core::work::Claimer;
use interlock_store::{Finding, Options, PutTenant, Store, StoreUrl, Tenant};
use uuid::Uuid;

use crate::fresh_postgres::fresh_postgres;

pub const NOW: Timestamp = Timestamp(1_790_000_000_000);

static NEXT: AtomicU64 = AtomicU64::new(1);

fn next() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A UUIDv7 whose instant is `NOW` and whose rest counts up.
pub fn fresh() -> Uuid {
    let count = next();
    let millis = NOW.0 as u128;
    Uuid::from_u128(millis << 80 | 0x7 << 76 | 0b10 << 62 | u128::from(count) << 40 | u128::from(count))
}

pub fn options() -> Options {
    Options::new(ServerId(fresh()))
}

pub fn tenant_id(number: u64) -> TenantId {
    TenantId(Uuid::from_u128(0xa000 + u128::from(number)))
}

/// A database for one test. Files are removed with it; a database of PostgreSQL goes with the server of the tests: to drop
/// one waits until everything that all tests have written is on disk.
pub struct TestDatabase {
    pub url: StoreUrl,
    dir: Option<std::path::PathBuf>,
}

impl TestDatabase {
    pub fn file() -> Self {
        let dir = std::env::temp_dir().join(format!("interlock-store-{}-{}", std::process::id(), next()));
        std::fs::create_dir_all(&dir).unwrap();
        Self { url: StoreUrl::Sqlite(dir.join("store.db")), dir: Some(dir) }
    }

    pub fn memory() -> Self {
        Self { url: StoreUrl::SqliteMemory(format!("test-{}", next())), dir: None }
    }

    /// A fresh database on the server that the variable names.
    pub async fn postgres() -> Self {
        let url = fresh_postgres(&format!("store_{}_{}", std::process::id(), next())).await;
        Self { url: StoreUrl::Postgres(url), dir: None }
    }

    /// A database of PostgreSQL in which nothing is.
    pub async fn empty_postgres() -> Self {
        let server = std::env::var("INTERLOCK_TEST_POSTGRES")
            .expect("INTERLOCK_TEST_POSTGRES is not set: run `make test`, or scripts/with-postgres");
        let name = format!("empty_{}_{}", std::process::id(), next());
        admin(&server, &format!("CREATE DATABASE {name}")).await;
        Self { url: StoreUrl::Postgres(server.replace("/postgres?", &format!("/{name}?"))), dir: None }
    }

    pub fn path(&self) -> &std::path::Path {
        match &self.url {
            StoreUrl::Sqlite(path) => path,
            other => panic!("{other} is no file"),
        }
    }

    pub async fn open(&self) -> Store {
        Store::open(&self.url, options()).await.unwrap()
    }

    /// A second server on the same database. A file is one server's alone, so there it is the same one again.
    pub async fn second(&self, first: &Store) -> Store {
        match &self.url {
            StoreUrl::Sqlite(_) => first.clone(),
            _ => self.open().await,
        }
    }

    /// A store with one tenant without limits, number 1.
    pub async fn world(&self) -> World {
        let store = self.open().await;
        let tenant = tenant_id(1);
        store.write(PutTenant(Tenant::new(tenant, "one", NOW))).await.unwrap();
        World { store, tenant }
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if let Some(dir) = &self.dir {
            let _ = std::fs::remove_dir_all(dir);
        }
        if let StoreUrl::SqliteMemory(name) = &self.url {
            interlock_store::forget_memory(name);
        }
    }
}

pub async fn admin(server: &str, sql: &str) {
    let (client, connection) = tokio_postgres::connect(server, tokio_postgres::NoTls).await.unwrap();
    let task = tokio::spawn(connection);
    client.batch_execute(sql).await.unwrap();
    drop(client);
    task.await.unwrap().unwrap();
}

#[derive(Clone)]
pub struct World {
    pub store: Store,
    pub tenant: TenantId,
}

/// What a run is started with, beside the plan.
#[derive(Default)]
pub struct StartOptions {
    pub subject: Option<String>,
    pub labels: Vec<(String, String)>,
    pub idempotency: Option<IdempotencyRow>,
    pub priority: i32,
    pub claim: Option<SessionId>,
    pub queued: Option<Queued>,
    pub at: Option<Timestamp>,
    pub lineage: Option<Lineage>,
    pub id: Option<RunId>,
}

pub fn plan_of(steps: Vec<StepSpec>) -> Arc<Plan> {
    Arc::new(Plan::new("demo", steps))
}

pub fn tasks(count: usize) -> Arc<Plan> {
    plan_of((0..count).map(|index| StepSpec::task(format!("step{index}"), "noop")).collect())
}

pub fn start_set(tenant: TenantId, plan: &Arc<Plan>, wanted: StartOptions) -> (Run, Box<ChangeSet>) {
    let (plan_hash, plan_text) = plan.encode();
    let created_at = wanted.at.unwrap_or(NOW);
    let request = StartRequest {
        tenant,
        run: wanted.id.unwrap_or_else(|| RunId(fresh())),
        header: Header {
            workspace: "main".into(),
            plan_hash: HashHex(plan_hash),
            inputs: Json::trusted(r#"{"n":1}"#),
            subject: wanted.subject,
            labels: wanted.labels.into_iter().collect(),
            trigger: Trigger { kind: "api".into(), reference: Some("test".into()) },
            priority: wanted.priority,
            created_at,
            deadline_at: None,
            lineage: wanted.lineage,
            started_by: Some("ada".into()),
        },
        plan: Arc::clone(plan),
        plan_hash,
        plan_text,
        idempotency: wanted.idempotency,
        inherited: vec![],
        starters: vec![],
        used: Used::default(),
        named: vec![],
        claim: wanted.claim.map(Claimer::of_all_trades),
        queued: wanted.queued,
        undoes: None,
    };
    let (run, opening) = decide::open(request).unwrap();
    let change = decide::start(&run, opening, CommandOrigin::system(created_at)).unwrap().settle(bound).unwrap();
    (run, change)
}

/// What a decision asks, answered as plainly as can be.
pub fn bound(asking: &Asking<'_>) -> Bound {
    let input = asking.spec().is_rendered().then(|| Json::trusted("{}"));
    let rendered = Rendered { input, wait_key: Some("k".into()), wait_until: None, message: None };
    asking.bind(rendered, &AllowDeclared)
}

pub fn command(run: &Run, command: Command, at: Timestamp) -> Box<ChangeSet> {
    decide::decide(run, command, DecideContext::default(), CommandOrigin::system(at)).unwrap().settle(bound).unwrap()
}

/// The completion of the current step, which takes the next one for the same session.
pub fn completion(run: &Run, at: Timestamp) -> Box<ChangeSet> {
    let step = run.current();
    let done = Completion {
        position: run.position,
        attempt: step.attempt,
        outcome: Outcome::Completed { output: Json::trusted(format!(r#"{{"step":{}}}"#, run.position)) },
        claim_next: step.session().map(Claimer::of_all_trades),
        cost: None,
    };
    command(run, Command::Complete(done), at)
}

impl World {
    pub async fn start(&self, plan: &Arc<Plan>, wanted: StartOptions) -> Run {
        let (mut run, change) = start_set(self.tenant, plan, wanted);
        run.apply(&self.store.submit(change).await.unwrap());
        run
    }

    pub async fn apply(&self, run: &mut Run, change: Box<ChangeSet>) {
        run.apply(&self.store.submit(change).await.unwrap());
    }

    pub async fn claim(&self, run: &mut Run, session: SessionId) {
        let change = command(run, Command::Claim { session }, NOW);
        self.apply(run, change).await;
    }

    pub async fn complete(&self, run: &mut Run) {
        let change = completion(run, NOW);
        self.apply(run, change).await;
    }

    /// Completes step after step until the run has ended.
    pub async fn finish(&self, run: &mut Run, session: SessionId) {
        if run.current().session().is_none() {
            self.claim(run, session).await;
        }
        while !run.state.is_terminal() {
            self.complete(run).await;
        }
    }

    pub async fn load(&self, run: &Run) -> Run {
        self.store.load_runs(&[(run.tenant, run.id)]).await.unwrap().pop().unwrap()
    }

    /// What a check finds, but for the sessions, which are made up here.
    pub async fn findings(&self) -> Vec<Finding> {
        let mut found = self.store.check().await.unwrap();
        found.retain(|finding| finding.check != "CHECK_SESSION");
        found
    }
}
