//! A router to ask, without a socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode, header};
use axum::response::Response;
use interlock_core::ids::{ServerId, TenantId};
use interlock_core::tenant::identity::{Role, Roles};
use interlock_core::time::{Millis, Timestamp};
use interlock_engine::clock::Clock;
use interlock_engine::deliver::NoOtherDestinations;
use interlock_engine::ids::IdSource;
use interlock_engine::payloads::{Objects, PayloadOptions};
use interlock_engine::vault::Vault;
use interlock_engine::{Engine, EngineOptions};
use interlock_evidence::SigningKey;
use interlock_outbound::{Outbound, OutboundOptions};
use interlock_server::identity::{Identity, IdentityOptions, NewKey, create_key};
use interlock_server::openapi::codes;
use interlock_server::{ServerOptions, ServerSecret, matrix, router};
use interlock_store::{Faults, Mode, NoFaults, Options, Store, StoreUrl, Tenant, forget_memory};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use uuid::Uuid;

use crate::fresh_postgres::fresh_postgres;

pub struct Api {
    pub engine: Engine,
    pub tenant: TenantId,
    pub other_tenant: TenantId,
    /// Of the tenant, for everything; and of the other tenant.
    pub key: String,
    pub other_key: String,
    /// What tells the router that its server stops.
    pub stop: CancellationToken,
    secret: ServerSecret,
    router: Router,
    pub database: String,
}

/// An engine on a database of its own, with two tenants.
pub async fn engine() -> (Engine, [TenantId; 2], String) {
    engine_under(Arc::new(NoFaults), Objects::memory()).await
}

/// The same by the machine's clock, which those who check certificates go by.
pub async fn engine_of_today() -> (Engine, [TenantId; 2], String) {
    static DATABASES: AtomicU64 = AtomicU64::new(0);
    let database = format!("routes-today-{}", DATABASES.fetch_add(1, Ordering::Relaxed));
    let engine = engine_of(&database, Arc::new(NoFaults), |options| {
        options.clock = Clock::system();
        options.ids = IdSource::seeded(options.clock.clone(), options.clock.now().0 as u64);
    })
    .await;
    let tenants = two_tenants(&engine).await;
    (engine, tenants, database)
}

/// The same with leases that outlast a stall of the machine, for tests in which no worker is lost.
pub async fn engine_with_long_leases() -> (Engine, [TenantId; 2], String) {
    static DATABASES: AtomicU64 = AtomicU64::new(0);
    let database = format!("routes-leases-{}", DATABASES.fetch_add(1, Ordering::Relaxed));
    let engine = engine_of(&database, Arc::new(NoFaults), |options| {
        options.session_lease = Millis::from_mins(2);
        options.payloads = Some(PayloadOptions::new(Objects::memory()));
    })
    .await;
    let tenants = two_tenants(&engine).await;
    (engine, tenants, database)
}

/// The same without a client for calls to the outside.
pub async fn engine_without_calls(database: &str) -> (Engine, [TenantId; 2]) {
    let engine = engine_of(database, Arc::new(NoFaults), |options| options.outbound = None).await;
    let tenants = two_tenants(&engine).await;
    (engine, tenants)
}

/// The same under faults, with its long payloads in `objects`.
pub async fn engine_under(faults: Arc<dyn Faults>, objects: Objects) -> (Engine, [TenantId; 2], String) {
    static DATABASES: AtomicU64 = AtomicU64::new(0);
    let database = format!("routes-{}", DATABASES.fetch_add(1, Ordering::Relaxed));
    let engine = engine_on(&database, faults, objects).await;
    let tenants = two_tenants(&engine).await;
    (engine, tenants, database)
}

/// What all engines of a test sign with.
pub fn audit_key() -> SigningKey {
    SigningKey::from_seed("interlock/test", &[7; 32])
}

/// Options of an engine with a vault, whose key all engines of a test share, and a client for calls to the outside.
pub fn equipped() -> EngineOptions {
    EngineOptions {
        vault: Some(Vault::new(&[7; 32])),
        audit_key: Some(audit_key()),
        outbound: Some(Outbound::new(OutboundOptions::default()).unwrap()),
        ..EngineOptions::new(Arc::new(NoOtherDestinations))
    }
}

/// An engine on a database that may be another one's as well.
pub async fn engine_on(database: &str, faults: Arc<dyn Faults>, objects: Objects) -> Engine {
    engine_of(database, faults, |options| options.payloads = Some(PayloadOptions::new(objects))).await
}

/// The same with other options.
pub async fn engine_of(database: &str, faults: Arc<dyn Faults>, change: impl FnOnce(&mut EngineOptions)) -> Engine {
    static ENGINES: AtomicU64 = AtomicU64::new(0);
    let number = ENGINES.fetch_add(1, Ordering::Relaxed);
    let clock = Clock::starting_at(Timestamp(1_720_000_000_000));
    let mut options =
        EngineOptions { ids: IdSource::seeded(clock.clone(), number), clock, expressions_in_place: true, ..equipped() };
    change(&mut options);
    let mode = Mode::Inline(faults);
    let store_options = Options { mode, ..Options::new(ServerId(Uuid::from_u128(1 + u128::from(number)))) };
    let store = Store::open(&StoreUrl::SqliteMemory(database.to_owned()), store_options).await.unwrap();
    Engine::open(store, options).await.unwrap()
}

pub async fn two_tenants(engine: &Engine) -> [TenantId; 2] {
    tenants_from(engine, 1).await
}

/// Two tenants of these numbers.
async fn tenants_from(engine: &Engine, first: u32) -> [TenantId; 2] {
    let tenants = [first, first + 1].map(|number| TenantId(Uuid::from_u128(number.into())));
    for (tenant, number) in tenants.into_iter().zip(first..) {
        let name = match number {
            1 => "one".to_owned(),
            2 => "two".to_owned(),
            number => format!("tenant-{number}"),
        };
        engine.tenants().put(Tenant::new(tenant, name, engine.now())).await.unwrap();
    }
    tenants
}

pub async fn key(engine: &Engine, secret: &ServerSecret, new: NewKey) -> String {
    create_key(engine, secret, new).await.unwrap().1.reveal().to_owned()
}

/// A database of its own on the PostgreSQL of the tests.
pub async fn postgres(name: &str) -> StoreUrl {
    StoreUrl::Postgres(fresh_postgres(&format!("{name}_{}", std::process::id())).await)
}

/// What an operation refuses with is what its description says.
fn assert_described((method, path): &(String, String), answer: &ApiResponse) {
    let Some(code) = answer.body["code"].as_str().filter(|_| !answer.status.is_success()) else { return };
    let fits = |line: &&matrix::Line| {
        let (pattern, given) = (line.path.split('/'), path.split('/'));
        let same = |(pattern, given): (&str, &str)| pattern == given || (pattern.starts_with('{') && !given.is_empty());
        line.method == method && pattern.clone().count() == given.clone().count() && pattern.zip(given).all(same)
    };
    // Of several patterns the one with the fewest names is meant.
    let names = |line: &&matrix::Line| line.path.matches('{').count();
    let Some(line) = matrix::MATRIX.iter().filter(fits).min_by_key(names) else { return };
    let known = codes::OF_ALL.contains(&code) || codes::of(line.method, line.path).contains(&code);
    if let (false, Ok(record)) = (known, std::env::var("RECORD_CODES")) {
        let file = std::fs::File::options().create(true).append(true).open(record);
        std::io::Write::write_all(&mut file.unwrap(), format!("{method} {} {code}\n", line.path).as_bytes()).unwrap();
        return;
    }
    assert!(known, "{method} {} answers {code}: add it to openapi/codes.txt. {}", line.path, answer.body);
}

pub struct ApiResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Value,
}

impl ApiResponse {
    /// The status and the code of a problem.
    pub fn problem(&self) -> (u16, &str) {
        assert_eq!(self.headers[header::CONTENT_TYPE], "application/problem+json", "{}", self.body);
        assert_eq!(self.body["status"], self.status.as_u16());
        (self.status.as_u16(), self.body["code"].as_str().unwrap())
    }

    pub fn ok(self) -> Value {
        assert!(self.status.is_success(), "{}: {}", self.status, self.body);
        self.body
    }

    pub fn text(&self, field: &str) -> String {
        self.body[field].as_str().unwrap_or_else(|| panic!("no `{field}` in {}", self.body)).to_owned()
    }
}

impl Api {
    pub async fn new() -> Self {
        let (engine, tenants, database) = engine().await;
        Self::of(engine, tenants, database).await
    }

    /// The same on a PostgreSQL database of its own, in real time.
    pub async fn on_postgres(name: &str) -> Self {
        let options = equipped();
        let store = Store::open(&postgres(name).await, Options::new(ServerId(options.ids.fresh()))).await.unwrap();
        let engine = Engine::open(store, options).await.unwrap();
        let tenants = two_tenants(&engine).await;
        Self::of(engine, tenants, name.to_owned()).await
    }

    pub async fn of(engine: Engine, [tenant, other_tenant]: [TenantId; 2], database: String) -> Self {
        let options = ServerOptions::new(tenant);
        let stop = CancellationToken::new();
        let router = router(engine.clone(), &options, stop.clone());
        let all: Roles = Role::ALL.iter().copied().collect();
        let secret = options.secret;
        let key = key(&engine, &secret, NewKey::new(tenant, "test", all)).await;
        let other_key = self::key(&engine, &secret, NewKey::new(other_tenant, "other", all)).await;
        Self { engine, tenant, other_tenant, key, other_key, stop, secret, router, database }
    }

    /// A server beside this one, on the same engine, for two tenants of its own.
    pub async fn beside(&self, first: u32) -> Self {
        let tenants = tenants_from(&self.engine, first).await;
        Self::of(self.engine.clone(), tenants, self.database.clone()).await
    }

    /// The options of a server that knows the same keys.
    pub fn options(&self) -> ServerOptions {
        ServerOptions { secret: self.secret.clone(), ..ServerOptions::new(self.tenant) }
    }

    /// A server beside this one, for the same tenants and keys, with other options.
    pub fn with_options(&self, change: impl FnOnce(&mut ServerOptions)) -> Self {
        let mut options = self.options();
        change(&mut options);
        let router = router(self.engine.clone(), &options, self.stop.clone());
        Self { router, ..self.with_key(&self.key) }
    }

    /// A server on another engine, for the same tenants and keys.
    pub fn on(&self, engine: Engine) -> Self {
        let router = router(engine.clone(), &self.options(), CancellationToken::new());
        Self { engine, router, ..self.with_key(&self.key) }
    }

    /// Another key.
    pub async fn new_key(&self, new: NewKey) -> String {
        key(&self.engine, &self.secret, new).await
    }

    /// The same server, called with a key that has charge of the installation.
    pub async fn in_charge(&self) -> Self {
        let all: Roles = Role::ALL.iter().copied().collect();
        let new = NewKey { installation: true, ..NewKey::new(self.tenant, "in charge", all) };
        self.with_key(&self.new_key(new).await)
    }

    /// The same server, called with another key.
    pub fn with_key(&self, key: &str) -> Self {
        Self {
            engine: self.engine.clone(),
            router: self.router.clone(),
            secret: self.secret.clone(),
            database: self.database.clone(),
            key: key.to_owned(),
            other_key: self.other_key.clone(),
            stop: self.stop.clone(),
            ..*self
        }
    }

    pub async fn raw(&self, request: Request<Body>) -> Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub async fn ask(&self, request: Request<Body>) -> ApiResponse {
        let asked = (request.method().to_string(), request.uri().path().to_owned());
        let response = self.raw(request).await;
        let (parts, body) = response.into_parts();
        // A stream that has opened does not end by itself.
        let streams = parts.headers.get(header::CONTENT_TYPE).is_some_and(|value| value == "text/event-stream");
        let body = if streams { Body::empty() } else { body };
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        let text = || Value::String(String::from_utf8_lossy(&bytes).into_owned());
        let body =
            if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap_or_else(|_| text()) };
        let answer = ApiResponse { status: parts.status, headers: parts.headers, body };
        assert_described(&asked, &answer);
        answer
    }

    pub async fn get(&self, path: &str) -> ApiResponse {
        let request = Request::get(format!("/api/v1{path}"))
            .header(header::HOST, "localhost")
            .header(header::AUTHORIZATION, format!("Bearer {}", self.key));
        self.ask(request.body(Body::empty()).unwrap()).await
    }

    pub async fn post(&self, path: &str, body: Value) -> ApiResponse {
        self.post_with(path, body, &[]).await
    }

    pub async fn post_with(&self, path: &str, body: Value, headers: &[(&str, &str)]) -> ApiResponse {
        let mut request = Request::post(format!("/api/v1{path}"))
            .header(header::HOST, "localhost")
            .header(header::AUTHORIZATION, format!("Bearer {}", self.key))
            .header(header::CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.ask(request.body(Body::from(body.to_string())).unwrap()).await
    }

    /// Any request of this caller.
    pub async fn send(&self, method: &str, path: &str, body: Value) -> ApiResponse {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost")
            .header(header::AUTHORIZATION, format!("Bearer {}", self.key))
            .header(header::CONTENT_TYPE, "application/json");
        self.ask(request.body(Body::from(body.to_string())).unwrap()).await
    }

    /// The server's identity module, for tests that need a person.
    pub fn identity(&self) -> Identity {
        self.identity_at(None)
    }

    /// The same with a limit on how often one client may ask.
    pub fn identity_at(&self, requests_per_min: Option<u32>) -> Identity {
        let options = IdentityOptions {
            requests_per_min,
            session: Millis::from_hours(12),
            invite: Millis::from_hours(1),
            secure_cookies: false,
        };
        Identity::new(self.engine.clone(), self.secret.clone(), options)
    }

    /// Starts a run of these steps and answers with its id.
    pub async fn start(&self, steps: Value) -> String {
        let body = json!({ "plan": plan(steps) });
        self.post("/runs", body).await.ok()["run_id"].as_str().unwrap().to_owned()
    }

    /// A session of a worker with many slots.
    pub async fn register(&self) -> String {
        let hello = json!({ "worker": "test", "queues": ["default"], "slots": 10 });
        self.post("/agent/register", hello).await.ok()["session"].as_str().unwrap().to_owned()
    }

    /// A worker that asks before each effect.
    pub async fn register_naming_effects(&self) -> String {
        let hello = json!({ "worker": "test", "queues": ["default"], "slots": 10, "capabilities": ["effects"] });
        self.post("/agent/register", hello).await.ok()["session"].as_str().unwrap().to_owned()
    }

    /// The next assignment of a session.
    pub async fn poll(&self, session: &str) -> Value {
        let polled = self.post("/agent/poll", json!({ "session": session, "max": 1, "wait_ms": 5000 })).await.ok();
        polled["assignments"][0].clone()
    }

    pub async fn report(&self, session: &str, assignment: &Value, outcome: Value) -> ApiResponse {
        let mut report = attempt(assignment);
        report["outcome"] = outcome;
        self.post(&format!("/agent/{session}/complete-step"), report).await
    }

    pub async fn end(self) {
        self.engine.stop().await;
        self.engine.store().clone().close().await;
        forget_memory(&self.database);
    }
}

/// The fields that name an attempt, as every message of a worker carries them.
pub fn attempt(assignment: &Value) -> Value {
    json!({
        "tenant": assignment["tenant"],
        "run": assignment["run"],
        "position": assignment["position"],
        "attempt": assignment["attempt"],
        "epoch": assignment["epoch"],
    })
}

pub fn plan(steps: Value) -> Value {
    json!({ "workflow": "demo", "version": 1, "steps": steps })
}

pub fn task(key: &str) -> Value {
    json!({ "key": key, "kind": "task", "handler": key })
}

pub fn failed(code: &str) -> Value {
    json!({ "status": "dead", "error": { "class": "terminal", "code": code, "message": "no" } })
}

pub fn completed(output: Value) -> Value {
    json!({ "status": "completed", "output": output })
}
