//! Servers in a bad way: without their store, their objects or their secret, full, or on their way out.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, header};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use interlock_core::ids::{RunId, TenantId};
use interlock_core::run::change::Context;
use interlock_core::state::Initiator;
use interlock_engine::payloads::Objects;
use interlock_engine::vault::Vault;
use interlock_engine::webhooks::outbound::NewOutbound;
use interlock_engine::{Engine, EngineOptions};
use interlock_server::ConnectionOptions;
use interlock_store::{CommitFault, FaultFrom, Faults, NoFaults, forget_memory};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::{CodeSource, table};
use crate::connections::{listen, rest};
use crate::harness::{Api, ApiResponse, engine, engine_of, engine_on, engine_under, engine_without_calls, plan, task};

/// A server that is stopped, and the same one started again on its database.
struct Restarted {
    database: String,
    tenants: [TenantId; 2],
}

impl Restarted {
    async fn stop(api: Api, database: &str) -> Self {
        api.engine.stop().await;
        api.engine.store().clone().close().await;
        Self { database: database.to_owned(), tenants: [api.tenant, api.other_tenant] }
    }

    /// With another secret than before, as every new server of a test has.
    async fn start(self, objects: Objects) -> Api {
        let engine = engine_on(&self.database, Arc::new(NoFaults), objects).await;
        Api::of(engine, self.tenants, self.database).await
    }
}

/// Asks for a payload whose object was spoilt while the server was away.
async fn payload(spoil: fn(&Path)) -> ApiResponse {
    static FOLDERS: AtomicU32 = AtomicU32::new(0);
    let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("interlock-codes-{}-{number}", std::process::id()));
    let (engine, tenants, database) = engine_under(Arc::new(NoFaults), Objects::folder(&folder).unwrap()).await;
    let api = Api::of(engine, tenants, database.clone()).await;
    let start = json!({ "plan": plan(json!([task("a")])), "inputs": { "text": "x".repeat(100_000) } });
    let run = api.post("/runs", start).await.text("run_id");
    let shown = api.get(&format!("/runs/{run}")).await.ok();
    let path = shown["inputs"]["$payload"]["url"].as_str().unwrap().strip_prefix("/api/v1").unwrap().to_owned();
    // What an engine has in memory it need not read.
    let stopped = Restarted::stop(api, &database).await;
    spoil(&object(&folder));
    let api = stopped.start(Objects::folder(&folder).unwrap()).await;
    let answer = api.get(&path).await;
    api.end().await;
    std::fs::remove_dir_all(&folder).unwrap();
    answer
}

/// The one file in the folder.
fn object(folder: &Path) -> PathBuf {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                return path;
            }
            folders.push(path);
        }
    }
    panic!("there is no object");
}

/// Another server that changes a run whenever this one is about to.
#[derive(Default)]
struct Rival {
    about: Mutex<Option<(Engine, TenantId, RunId)>>,
}

impl Faults for Rival {
    fn before_commit(&self, _: u64) -> BoxFuture<'static, CommitFault> {
        let about = self.about.lock().unwrap().clone();
        async move {
            if let Some((engine, tenant, run)) = about {
                let by = || Context::by(Initiator::Operator);
                // One of the two is a change, whatever the run's state.
                if engine.runs().pause(tenant, run, "first".to_owned(), by()).await.is_err() {
                    let _ = engine.runs().resume(tenant, run, by()).await;
                }
            }
            CommitFault::None
        }
        .boxed()
    }
}

async fn against_a_rival() -> ApiResponse {
    let rival = Arc::new(Rival::default());
    let (engine, tenants, database) = engine_under(rival.clone(), Objects::memory()).await;
    let api = Api::of(engine, tenants, database.clone()).await;
    let run = api.start(json!([task("a")])).await;
    let other = engine_on(&database, Arc::new(NoFaults), Objects::memory()).await;
    *rival.about.lock().unwrap() = Some((other.clone(), api.tenant, run.parse().unwrap()));
    let answer = api.post(&format!("/runs/{run}/cancel"), json!({ "reason": "enough" })).await;
    *rival.about.lock().unwrap() = None;
    other.stop().await;
    other.store().clone().close().await;
    api.end().await;
    answer
}

async fn without_its_store(fault: CommitFault) -> ApiResponse {
    let away = Arc::new(FaultFrom::new(fault));
    let (engine, tenants, database) = engine_under(away.clone(), Objects::memory()).await;
    let api = Api::of(engine, tenants, database).await;
    away.now();
    let start = json!({ "plan": plan(json!([task("a")])) });
    // The first request waits; one that comes when the outage has lasted is refused at once.
    let waiting = api.post("/runs", start.clone());
    let _ = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    let answer = api.post("/runs", start).await;
    away.never();
    api.end().await;
    answer
}

async fn without_its_secret() -> ApiResponse {
    let (engine, tenants, database) = engine().await;
    let api = Api::of(engine, tenants, database.clone()).await;
    let made = api.post("/webhooks", json!({ "name": "a", "source": "standard" })).await.text("path");
    let stopped = Restarted::stop(api, &database).await;
    let other = |options: &mut EngineOptions| options.vault = Some(Vault::new(&[8; 32]));
    let engine = engine_of(&database, Arc::new(NoFaults), other).await;
    let api = Api::of(engine, stopped.tenants, database).await;
    let answer = api.send("POST", &made, json!({})).await;
    api.end().await;
    answer
}

async fn without_calls_to_the_outside() -> CodeSource {
    let database = "codes-without-calls";
    let (engine, [tenant, _]) = engine_without_calls(database).await;
    let new =
        NewOutbound { name: None, url: "https://example.org".into(), description: None, events: None, workflows: None };
    let code = engine.webhooks().draft_outbound(tenant, new, None).await.unwrap_err().code().to_owned();
    engine.stop().await;
    engine.store().clone().close().await;
    forget_memory(database);
    CodeSource::Engine(code)
}

async fn full_of_streams(api: &Api) -> ApiResponse {
    let api = api.with_options(|options| options.live_streams_per_tenant_max = 1);
    let stream = || {
        let request = Request::get("/api/v1/events/stream")
            .header(header::HOST, "localhost")
            .header(header::AUTHORIZATION, format!("Bearer {}", api.key));
        request.body(Body::empty()).unwrap()
    };
    let _open = api.raw(stream()).await;
    api.ask(stream()).await
}

async fn stopped(api: &Api) -> ApiResponse {
    api.engine.stop().await;
    api.engine.store().clone().close().await;
    api.post("/runs", json!({ "plan": plan(json!([task("a")])) })).await
}

async fn told_to_stop(api: &Api) -> ApiResponse {
    api.stop.cancel();
    let request = Request::get("/readyz").header(header::HOST, "localhost");
    api.ask(request.body(Body::empty()).unwrap()).await
}

async fn without_a_key_to_sign_with() -> ApiResponse {
    let (engine, tenants, database) = engine().await;
    let api = Api::of(engine, tenants, database.clone()).await;
    let stopped = Restarted::stop(api, &database).await;
    let engine = engine_of(&database, Arc::new(NoFaults), |options| options.audit_key = None).await;
    let api = Api::of(engine, stopped.tenants, database).await;
    let answer = api.get("/audit/key").await;
    api.end().await;
    answer
}

/// A server whose loops do not run: what ends is not sealed.
async fn evidence_before_the_seal() -> ApiResponse {
    let (engine, tenants, database) = engine().await;
    let api = Api::of(engine, tenants, database.clone()).await;
    let stopped = Restarted::stop(api, &database).await;
    let engine = engine_of(&database, Arc::new(NoFaults), |options| options.loops = false).await;
    let api = Api::of(engine, stopped.tenants, database).await;
    let run = crate::set_up::canceled(&api).await;
    let answer = api.get(&format!("/runs/{run}/evidence")).await;
    api.end().await;
    answer
}

/// A server on which not even the shortest run fits into a bundle.
async fn evidence_of_a_run_that_did_too_much() -> ApiResponse {
    let (engine, tenants, database) = engine().await;
    let api = Api::of(engine, tenants, database.clone()).await;
    let stopped = Restarted::stop(api, &database).await;
    let engine = engine_of(&database, Arc::new(NoFaults), |options| options.evidence_bytes_max = 1_000).await;
    let api = Api::of(engine, stopped.tenants, database).await;
    let run = crate::set_up::canceled(&api).await;
    let answer = loop {
        let answer = api.get(&format!("/runs/{run}/evidence")).await;
        if answer.status != 503 {
            break answer;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    api.end().await;
    answer
}

async fn a_log_that_somebody_has_spoilt() -> ApiResponse {
    let (engine, tenants, database) = engine().await;
    let api = Api::of(engine, tenants, database.clone()).await;
    api.start(json!([task("a")])).await;
    while api.get("/audit").await.ok()["entries"] == json!([]) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    interlock_store::change_memory(&database, "UPDATE audit_blocks SET bodies = 'nothing'").unwrap();
    let answer = api.get("/audit").await;
    api.end().await;
    answer
}

/// A run whose row was damaged while the server was away.
async fn with_a_run_that_cannot_be_read() -> ApiResponse {
    let (engine, tenants, database) = engine().await;
    let api = Api::of(engine, tenants, database.clone()).await;
    let run = api.start(json!([task("a")])).await;
    // What an engine has in memory it need not read.
    let stopped = Restarted::stop(api, &database).await;
    let damage = "UPDATE run_live SET step_data = 'x' || coalesce(step_data, '')";
    assert_eq!(interlock_store::change_memory(&database, damage).unwrap(), 1);
    let api = stopped.start(Objects::memory()).await;
    let answer = api.post(&format!("/runs/{run}/pause"), json!({ "reason": "look first" })).await;
    assert!(!answer.headers.contains_key(header::RETRY_AFTER), "it does not pass by itself: {}", answer.body);
    api.end().await;
    answer
}

table! { TABLE:
    "RECORD_UNREADABLE" => |_| with_a_run_that_cannot_be_read().await,
    "AUDIT_UNAVAILABLE" => |_| without_a_key_to_sign_with().await,
    "EVIDENCE_NOT_SEALED" => |_| evidence_before_the_seal().await,
    "EVIDENCE_TOO_LARGE" => |_| evidence_of_a_run_that_did_too_much().await,
    "AUDIT_BROKEN" => |_| a_log_that_somebody_has_spoilt().await,
    "PAYLOAD_MISSING" => |_| payload(|object| std::fs::remove_file(object).unwrap()).await,
    "PAYLOAD_ALTERED" => |_| payload(|object| std::fs::write(object, "something else").unwrap()).await,
    "PAYLOAD_STORE_UNAVAILABLE" => |_| payload(|object| {
        // A link that leads to itself: there, and not to be read.
        std::fs::remove_file(object).unwrap();
        std::os::unix::fs::symlink(object, object).unwrap();
    }).await,
    "RUN_CONTENDED" => |_| against_a_rival().await,
    "STORE_UNAVAILABLE" => |_| without_its_store(CommitFault::Lost).await,
    "STORE_FULL" => |_| without_its_store(CommitFault::DiskFull).await,
    "SECRETS_UNAVAILABLE" => |_| without_its_secret().await,
    "OUTBOUND_UNAVAILABLE" => |_| without_calls_to_the_outside().await,
    "LIVE_STREAMS_FULL" => |api| full_of_streams(api).await,
    "SHUTTING_DOWN" => |api| stopped(api).await,
    "NOT_READY" => |api| told_to_stop(api).await,
}

/// A sign-in whose body has this many bytes, of which only the first are sent.
fn sign_in(length: usize) -> String {
    format!(
        "POST /api/v1/auth/login HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{{"
    )
}

async fn unfinished_body() -> CodeSource {
    let body_idle_timeout = Duration::from_millis(200);
    let server = listen(ConnectionOptions { body_idle_timeout, ..ConnectionOptions::default() }).await;
    let said = server.say(&sign_in(1_000)).await;
    server.end().await;
    CodeSource::on_the_wire(&said)
}

async fn one_connection_too_many() -> CodeSource {
    let server = listen(ConnectionOptions { per_address_max: 1, ..ConnectionOptions::default() }).await;
    let first = server.connect().await;
    let said = rest(&mut server.connect().await).await;
    drop(first);
    server.end().await;
    CodeSource::on_the_wire(&said)
}

async fn too_much_unfinished() -> CodeSource {
    let server = listen(ConnectionOptions { unfinished_bytes_max: 10_000, ..ConnectionOptions::default() }).await;
    let mut stream = server.connect().await;
    stream.write_all(format!("{}{}", sign_in(12_000), " ".repeat(11_999)).as_bytes()).await.unwrap();
    let said = rest(&mut stream).await;
    server.end().await;
    CodeSource::on_the_wire(&said)
}

async fn refused_worker(which: usize) -> CodeSource {
    let (status, code) = Box::pin(crate::enrolment::refusals()).await.into_iter().nth(which).unwrap();
    CodeSource::Refused { status, code }
}

table! { SOCKETS:
    "BODY_TIMEOUT" => |_| unfinished_body().await,
    "TLS_REQUIRED" => |_| CodeSource::on_the_wire(&crate::tls::told_in_plain().await),
    "ENROLMENT_REFUSED" => |_| refused_worker(0).await,
    "BEYOND_CERTIFICATE" => |_| refused_worker(1).await,
    "CONNECTIONS_FULL" => |_| one_connection_too_many().await,
    "OVERLOADED" => |_| too_much_unfinished().await,
}
