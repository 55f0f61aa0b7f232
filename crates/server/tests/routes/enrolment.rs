//! Workers that enrol by a token and show their certificate from then on.

use std::time::Duration;

use interlock_core::json::Json;
use interlock_core::plan::{Plan, StepSpec};
use interlock_core::state::RunState;
use interlock_core::tenant::identity::Role;
use interlock_engine::audit::read::{AuditFilter, AuditQuery};
use interlock_engine::{EncodedPlan, Engine, StartRun};
use interlock_pki::{CertificateFacts, WorkerIdentity, WorkerKey};
use interlock_protocol::agent::{self, Poll, Polled, Registered, WorkerHello};
use interlock_protocol::enrolment::{Enrol, RenewCertificate, WorkerCertificate, path};
use interlock_protocol::transport::TransportError;
use interlock_server::ServerOptions;
use interlock_server::identity::{NewKey, create_key};
use interlock_store::forget_memory;
use interlock_worker::{HttpTransport, Tasks, TransportOptions, Worker, WorkerCredential, WorkerOptions};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use crate::harness::engine_of_today;
use crate::tls::{ANY_PORT, Files, PATIENCE, Serving, client};

/// A server with HTTPS and an authority, its admin's key, and a key for workers.
struct Enrolling {
    engine: Engine,
    files: Files,
    serving: Serving,
    database: String,
    tenant: interlock_core::ids::TenantId,
    admin: String,
    worker_key: String,
}

impl Enrolling {
    async fn start(name: &str) -> Self {
        let (engine, [tenant, _], database) = engine_of_today().await;
        let files = Files::new(name, engine.now());
        let tls = Some(files.with_workers());
        let options = ServerOptions { listen: ANY_PORT, tls, ..ServerOptions::new(tenant) };
        let key = async |role: Role| {
            let new = NewKey::new(tenant, role.as_str(), [role].into_iter().collect());
            create_key(&engine, &options.secret, new).await.unwrap().1.reveal().to_owned()
        };
        let (admin, worker_key) = (key(Role::Admin).await, key(Role::Worker).await);
        let serving = Serving::start(&engine, options).await;
        Self { engine, files, serving, database, tenant, admin, worker_key }
    }

    async fn end(self) {
        self.serving.end().await;
        self.engine.stop().await;
        forget_memory(&self.database);
    }

    fn url(&self) -> String {
        format!("https://{}", self.serving.address)
    }

    fn options(&self, credential: WorkerCredential) -> TransportOptions {
        let ca_pem = Some(self.files.authority.certificate.clone().into_bytes());
        TransportOptions { server: self.url(), credential, ca_pem }
    }

    fn transport(&self, credential: WorkerCredential) -> HttpTransport {
        HttpTransport::open(&self.options(credential)).unwrap()
    }

    /// What the audit log tells of something, once it is there: its subject and its details.
    async fn noted(&self, kind: &str) -> (Option<String>, Value) {
        let filter = AuditFilter { kind: Some(kind.to_owned()), ..AuditFilter::default() };
        let query = AuditQuery { number: None, newest_first: true, from: None, limit: 1, filter };
        let looking = async {
            loop {
                let found = self.engine.audit().entries(self.tenant, &query).await.unwrap().entries;
                if let Some(logged) = found.first() {
                    let details = logged.opened.as_ref().and_then(|opened| opened.details.clone()).unwrap();
                    return (logged.entry.body.subject.clone(), serde_json::from_str(&details).unwrap());
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("{kind} is never logged"))
    }

    async fn admin(&self, method: reqwest::Method, path: &str, body: Value) -> Value {
        let request = client(&self.files.authority).request(method, format!("{}{path}", self.url()));
        let answer = request.bearer_auth(&self.admin).json(&body).send().await.unwrap();
        let status = answer.status();
        let body: Value = answer.json().await.unwrap();
        assert!(status.is_success(), "{status} {body}");
        body
    }

    async fn token(&self, name: &str, environments: Value, profiles: Value) -> Value {
        let terms = json!({ "environments": environments, "profiles": profiles });
        self.admin(reqwest::Method::POST, path::IDENTITIES, json!({ "name": name, "terms": terms })).await
    }

    async fn enrol(&self, token: &Value, key: &WorkerKey) -> Result<WorkerCertificate, TransportError> {
        let token = token["token"].as_str().unwrap().to_owned();
        let body = Enrol { token, request: key.signing_request().unwrap() };
        self.transport(WorkerCredential::None).ask(path::ENROL, &body).await
    }

    /// A worker with a certificate.
    async fn worker(&self, name: &str, environments: Value, profiles: Value) -> (HttpTransport, Value) {
        let (token, key) = (self.token(name, environments, profiles).await, WorkerKey::generate().unwrap());
        let certificate = self.enrol(&token, &key).await.unwrap();
        (self.transport(shown(&key, &certificate)), token)
    }
}

fn shown(key: &WorkerKey, certificate: &WorkerCertificate) -> WorkerCredential {
    WorkerCredential::Certificate(Zeroizing::new(format!("{}{}", &*key.to_pem(), certificate.certificate)))
}

fn hello(capabilities: &[&str]) -> WorkerHello {
    WorkerHello {
        worker: "w".into(),
        tenant: None,
        queues: vec!["default".into()],
        slots: 1,
        build_id: None,
        tasks: Some(vec!["count".into()]),
        capabilities: Some(capabilities.iter().map(|name| (*name).to_owned()).collect()),
        environments: None,
        labels: std::collections::BTreeMap::new(),
    }
}

fn code<T: std::fmt::Debug>(answer: Result<T, TransportError>) -> String {
    match answer {
        Err(TransportError::Refused { code, .. }) => code,
        other => panic!("{other:?}"),
    }
}

/// The refusal of a token that was never made, and of a profile beyond the certificate, each with its status.
pub async fn refusals() -> [(u16, String); 2] {
    let harness = Enrolling::start("refusals").await;
    let key = WorkerKey::generate().unwrap();
    let answered = async |answer: reqwest::Response| {
        let status = answer.status().as_u16();
        let problem: Value = answer.json().await.unwrap();
        (status, problem["code"].as_str().unwrap().to_owned())
    };
    let wrong = json!({ "token": "ilw_", "request": key.signing_request().unwrap() });
    let enrol = client(&harness.files.authority).post(format!("{}{}", harness.url(), path::ENROL));
    let unknown = answered(enrol.json(&wrong).send().await.unwrap()).await;

    let certificate = harness.enrol(&harness.token("w", json!(["*"]), json!([])).await, &key).await.unwrap();
    let pem = format!("{}{}", &*key.to_pem(), certificate.certificate);
    let roots = reqwest::Certificate::from_pem_bundle(harness.files.authority.certificate.as_bytes()).unwrap();
    let shows = reqwest::Client::builder().no_proxy().tls_certs_only(roots);
    let shows = shows.identity(reqwest::Identity::from_pem(pem.as_bytes()).unwrap()).build().unwrap();
    let register = shows.post(format!("{}{}", harness.url(), agent::path::REGISTER));
    let beyond = answered(register.json(&hello(&["command:dev-flex"])).send().await.unwrap()).await;
    harness.end().await;
    [unknown, beyond]
}

#[tokio::test]
async fn a_token_earns_one_worker_a_certificate_that_says_who_it_is() {
    let harness = Enrolling::start("enrol").await;
    let token = harness.token("build-7", json!(["dev", "none"]), json!(["dev-flex"])).await;
    assert_eq!(token["state"], "invited");
    let key = WorkerKey::generate().unwrap();
    let certificate = harness.enrol(&token, &key).await.unwrap();
    let facts = CertificateFacts::of_pem(&certificate.certificate).unwrap();
    let identity = WorkerIdentity::of_certificate(&facts).unwrap();
    assert_eq!((identity.tenant, identity.id), (harness.tenant, certificate.identity));
    assert_eq!(certificate.name.as_deref(), Some("build-7"), "what the worker is called unless it says otherwise");
    assert!(identity.terms.allows_environment("dev") && !identity.terms.allows_environment("prod"));

    // A lost answer is asked for again by the same key; another key is refused, and so is a token that was never made.
    assert_eq!(harness.enrol(&token, &key).await.unwrap().identity, certificate.identity);
    assert_eq!(code(harness.enrol(&token, &WorkerKey::generate().unwrap()).await), "ENROLMENT_REFUSED");
    let wrong = json!({ "token": format!("ilw_{}", "a".repeat(55)) });
    assert_eq!(code(harness.enrol(&wrong, &key).await), "ENROLMENT_REFUSED");

    // With the certificate it works, and gets the next one.
    let transport = harness.transport(shown(&key, &certificate));
    let renewal = RenewCertificate { request: key.signing_request().unwrap() };
    let next: WorkerCertificate = transport.ask(path::RENEW, &renewal).await.unwrap();
    transport.renew(&harness.options(shown(&key, &next))).unwrap();
    for kind in ["worker_identity.created", "worker_identity.enrolled", "worker_identity.renewed"] {
        let noted = harness.noted(kind).await;
        assert_eq!(noted.0, Some(certificate.identity.to_string()), "{kind}");
        assert_eq!(noted.1["name"], "build-7", "{kind}: {}", noted.1);
    }
    let stop = CancellationToken::new();
    let tasks = Tasks::new().task("count", |_, input: Value| async move { Ok(input) });
    let working = tokio::spawn(Worker::new(transport, tasks, WorkerOptions::default()).run(stop.clone()));
    let plan = Plan::new("w", vec![StepSpec::task("a", "count")]);
    let request = StartRun::new(harness.tenant, EncodedPlan::new(plan).unwrap(), Json::trusted("[1]"));
    let ended = timeout(PATIENCE, harness.engine.runs().start_and_wait(request)).await.unwrap().unwrap();
    assert_eq!(ended.1, RunState::Succeeded);
    stop.cancel();
    timeout(PATIENCE, working).await.unwrap().unwrap().unwrap();
    let listed = harness.admin(reqwest::Method::GET, path::IDENTITIES, json!({})).await;
    assert_eq!(listed["identities"][0]["state"], "enrolled");
    harness.end().await;
}

#[tokio::test]
async fn a_revoked_worker_is_refused_and_cannot_renew() {
    let harness = Enrolling::start("revoked").await;
    let (token, key) = (harness.token("w", json!(["*"]), json!([])).await, WorkerKey::generate().unwrap());
    let certificate = harness.enrol(&token, &key).await.unwrap();
    let transport = harness.transport(shown(&key, &certificate));
    let registered: Registered = transport.ask(agent::path::REGISTER, &hello(&[])).await.unwrap();
    let one = path::IDENTITY.replace("{identity}", token["identity"].as_str().unwrap());
    let revoked = harness.admin(reqwest::Method::DELETE, &one, json!({})).await;
    assert_eq!(revoked["state"], "revoked");
    let poll =
        Poll { session: registered.session, max: 1, wait_ms: interlock_core::time::Millis(0), round_trip_ms: None };
    assert_eq!(code(transport.ask::<Polled>(agent::path::POLL, &poll).await), "UNAUTHORIZED");
    let renewal = RenewCertificate { request: key.signing_request().unwrap() };
    assert_eq!(code(transport.ask::<WorkerCertificate>(path::RENEW, &renewal).await), "UNAUTHORIZED");
    assert_eq!(code(harness.enrol(&token, &key).await), "ENROLMENT_REFUSED");
    harness.end().await;
}

#[tokio::test]
async fn a_worker_acts_only_as_itself_and_within_its_certificate() {
    let harness = Enrolling::start("itself").await;
    let (one, _) = harness.worker("one", json!(["none"]), json!(["dev-flex"])).await;
    let (other, _) = harness.worker("other", json!(["none"]), json!([])).await;
    let with_key = harness.transport(WorkerCredential::Key(harness.worker_key.clone()));
    let registered: Registered = one.ask(agent::path::REGISTER, &hello(&["command:dev-flex"])).await.unwrap();
    let poll =
        Poll { session: registered.session, max: 1, wait_ms: interlock_core::time::Millis(0), round_trip_ms: None };
    for stranger in [&other, &with_key] {
        assert_eq!(code(stranger.ask::<Polled>(agent::path::POLL, &poll).await), "SESSION_GONE");
    }
    one.ask::<Polled>(agent::path::POLL, &poll).await.unwrap();
    // And it cannot use one that was begun with a key.
    let with_a_key: Registered = with_key.ask(agent::path::REGISTER, &hello(&[])).await.unwrap();
    let poll = Poll { session: with_a_key.session, ..poll };
    assert_eq!(code(one.ask::<Polled>(agent::path::POLL, &poll).await), "SESSION_GONE");

    let beyond = other.ask::<Registered>(agent::path::REGISTER, &hello(&["command:dev-flex"])).await;
    assert_eq!(code(beyond), "BEYOND_CERTIFICATE");
    for environment in ["prod", "*"] {
        let wider = WorkerHello { environments: Some([environment.to_owned()].into()), ..hello(&[]) };
        assert_eq!(code(other.ask::<Registered>(agent::path::REGISTER, &wider).await), "BEYOND_CERTIFICATE");
    }
    let renewal = RenewCertificate { request: WorkerKey::generate().unwrap().signing_request().unwrap() };
    assert_eq!(code(with_key.ask::<WorkerCertificate>(path::RENEW, &renewal).await), "CERTIFICATE_REQUIRED");
    // The role of a worker, and no other.
    let started = one.ask::<Value>("/api/v1/runs", &json!({ "workflow": "w" })).await;
    assert_eq!(code(started), "PERMISSION_DENIED");
    harness.end().await;
}

#[tokio::test]
async fn a_worker_is_given_steps_of_its_environments_only() {
    let harness = Enrolling::start("environments").await;
    let (dev, _) = harness.worker("dev", json!(["dev"]), json!([])).await;
    let registered: Registered = dev.ask(agent::path::REGISTER, &hello(&[])).await.unwrap();
    let plan = |profile: Option<&str>| {
        let mut plan = Plan::new("w", vec![StepSpec::task("a", "count")]);
        plan.rules.profile = profile.map(str::to_owned);
        StartRun::new(harness.tenant, EncodedPlan::new(plan).unwrap(), Json::trusted("[1]"))
    };
    harness.engine.runs().start(plan(None)).await.unwrap();
    harness.engine.runs().start(plan(Some("prod-critical"))).await.unwrap();
    let poll =
        Poll { session: registered.session, max: 1, wait_ms: interlock_core::time::Millis(500), round_trip_ms: None };
    let polled: Polled = dev.ask(agent::path::POLL, &poll).await.unwrap();
    assert!(polled.assignments.is_empty(), "neither is a run of dev: {polled:?}");
    let started = harness.engine.runs().start(plan(Some("dev-flex"))).await.unwrap();
    let given = async {
        loop {
            let polled: Polled = dev.ask(agent::path::POLL, &poll).await.unwrap();
            if let [assignment] = polled.assignments.as_slice() {
                break assignment.clone();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let given = timeout(PATIENCE, given).await.unwrap();
    assert_eq!((given.at.run, given.environment.as_deref()), (started.run, Some("dev")));
    harness.end().await;
}
