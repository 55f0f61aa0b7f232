//! A worker, a server and a socket between them.

use std::net::SocketAddr;
use std::time::Duration;

use interlock_core::ids::TenantId;
use interlock_core::json::Json;
use interlock_core::plan::{Plan, StepSpec};
use interlock_core::state::{EffectClass, RunState};
use interlock_core::tenant::identity::Role;
use interlock_engine::{EncodedPlan, Engine, StartRun};
use interlock_server::identity::{NewKey, SecretError, create_key};
use interlock_server::{Server, ServerError, ServerOptions, ServerSecret};
use interlock_store::forget_memory;
use interlock_worker::{EffectFailure, HttpTransport, TaskContext, Tasks, Worker, WorkerOptions};
use serde_json::json;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::harness::engine;

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// How long either side may take to stop: less than a poll waits, and than the server would wait for what is under way.
const PATIENCE: Duration = Duration::from_secs(45);
const POLL_WAIT: Duration = Duration::from_mins(1);
const DRAIN: Duration = Duration::from_mins(10);

/// A server on any port that is not done before everybody has left.
fn patient(tenant: TenantId) -> ServerOptions {
    ServerOptions { listen: ANY_PORT, drain: DRAIN, ..ServerOptions::new(tenant) }
}

/// A worker whose polls wait longer than any test does.
fn worker_options() -> WorkerOptions {
    WorkerOptions { poll_wait: POLL_WAIT, ..WorkerOptions::default() }
}

fn tasks() -> Tasks {
    Tasks::new().task("count", |_, input: serde_json::Value| async move { Ok(json!({ "seen": input })) }).task(
        "charge",
        |ctx: TaskContext, _: serde_json::Value| async move {
            let charge = |key: String| async move { Ok::<_, EffectFailure>(key) };
            let key: String = ctx.effect("card:charge", EffectClass::Unsafe, &json!({ "cents": 1 }), charge).await?;
            Ok(key)
        },
    )
}

async fn worker_key(engine: &Engine, options: &ServerOptions) -> String {
    let new = NewKey::new(options.default_tenant, "worker", [Role::Worker].into_iter().collect());
    create_key(engine, &options.secret, new).await.unwrap().1.reveal().to_owned()
}

/// What carries a worker's calls.
type Carried = fn(HttpTransport) -> HttpTransport;

const BY_REQUESTS: Carried = |transport| transport;
const OVER_A_CHANNEL: Carried = HttpTransport::with_channel;

#[tokio::test]
async fn a_remote_worker_runs_a_run_and_leaves_in_good_order() {
    Box::pin(runs_a_run(BY_REQUESTS)).await;
}

#[tokio::test]
async fn so_does_one_over_a_channel() {
    Box::pin(runs_a_run(OVER_A_CHANNEL)).await;
}

async fn runs_a_run(carried: Carried) {
    let (engine, [tenant, _], database) = engine().await;
    let options = patient(tenant);
    let key = worker_key(&engine, &options).await;
    let server = Server::bind(engine.clone(), options).await.unwrap();
    let address = format!("http://{}", server.address().unwrap());
    let stop_server = CancellationToken::new();
    let serving = tokio::spawn(server.run(stop_server.clone()));

    let transport = carried(HttpTransport::new(&address, Some(key)).unwrap());
    let stop_worker = CancellationToken::new();
    let worker = Worker::new(transport, tasks(), worker_options()).run(stop_worker.clone());
    let working = tokio::spawn(worker);

    let steps = vec![StepSpec::task("a", "count"), StepSpec::task("b", "charge"), StepSpec::task("c", "count")];
    let plan = Plan::new("w", steps);
    let request = StartRun::new(tenant, EncodedPlan::new(plan).unwrap(), Json::trusted("[1]"));
    let ended = timeout(PATIENCE, engine.runs().start_and_wait(request)).await.unwrap().unwrap();
    assert_eq!(ended.1, RunState::Succeeded);
    let receipts = engine.store().receipts(tenant, ended.0.run).await.unwrap();
    assert_eq!(receipts.len(), 1);

    // The worker is waiting in a long poll; neither side waits for the other's patience.
    stop_worker.cancel();
    timeout(PATIENCE, working).await.unwrap().unwrap().unwrap();
    stop_server.cancel();
    timeout(PATIENCE, serving).await.unwrap().unwrap().unwrap();
    engine.stop().await;
    forget_memory(&database);
}

#[tokio::test]
async fn a_server_that_stops_ends_long_polls() {
    Box::pin(stops(BY_REQUESTS)).await;
}

#[tokio::test]
async fn a_server_that_stops_ends_channels() {
    Box::pin(stops(OVER_A_CHANNEL)).await;
}

async fn stops(carried: Carried) {
    let (engine, [tenant, _], database) = engine().await;
    let options = patient(tenant);
    let key = worker_key(&engine, &options).await;
    let server = Server::bind(engine.clone(), options).await.unwrap();
    let address = format!("http://{}", server.address().unwrap());
    let stop = CancellationToken::new();
    let serving = tokio::spawn(server.run(stop.clone()));
    let transport = carried(HttpTransport::new(&address, Some(key)).unwrap());
    let stop_worker = CancellationToken::new();
    let working = tokio::spawn(Worker::new(transport, tasks(), worker_options()).run(stop_worker.clone()));
    // The engine's own session has no tenant.
    while engine.store().sessions().await.unwrap().iter().all(|session| session.tenant.is_none()) {
        tokio::task::yield_now().await;
    }
    stop.cancel();
    timeout(PATIENCE, serving).await.unwrap().unwrap().unwrap();
    stop_worker.cancel();
    timeout(PATIENCE, working).await.unwrap().unwrap().unwrap();
    engine.stop().await;
    forget_memory(&database);
}

/// A new secret would make every key and every sealed secret of the store worthless.
#[tokio::test]
async fn a_missing_secret_is_not_made_anew_for_a_store_that_has_one() {
    let (engine, _, database) = engine().await;
    let folder = std::env::temp_dir().join(format!("interlock-missing-secret-{}", std::process::id()));
    let path = folder.join("server.secret");
    ServerSecret::open_for(&engine.installation(), &path).await.unwrap();
    let kept = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let error = ServerSecret::open_for(&engine.installation(), &path).await.err().unwrap();
    assert!(matches!(error, SecretError::Missing { .. }), "{error}");
    assert!(error.to_string().contains("server.secret"), "{error}");
    assert!(!path.exists(), "nothing was written in its place");
    // Put back as `cp` does it, where everyone may read it.
    std::fs::write(&path, kept).unwrap();
    let mode = |mode| std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    mode(0o644);
    let error = ServerSecret::open_for(&engine.installation(), &path).await.err().unwrap();
    assert!(matches!(error, SecretError::File { .. }), "{error}");
    let mended_by = format!("its mode is 644); run: chmod 600 {}", path.display());
    assert!(error.to_string().contains(&mended_by), "{error}");
    mode(0o600);
    ServerSecret::open_for(&engine.installation(), &path).await.unwrap();
    engine.stop().await;
    forget_memory(&database);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn a_server_with_another_secret_than_the_store_is_told_so() {
    let (engine, [tenant, _], database) = engine().await;
    let first = ServerOptions { listen: ANY_PORT, ..ServerOptions::new(tenant) };
    Server::bind(engine.clone(), first.clone()).await.unwrap();
    Server::bind(engine.clone(), first).await.unwrap();
    let second = ServerOptions { listen: ANY_PORT, ..ServerOptions::new(tenant) };
    let error = Server::bind(engine.clone(), second).await.err().unwrap();
    assert!(matches!(error, ServerError::Secret(_)), "{error}");
    assert!(error.to_string().contains("server.secret"), "{error}");
    engine.stop().await;
    forget_memory(&database);
}
