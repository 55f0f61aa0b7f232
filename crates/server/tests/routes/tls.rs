//! HTTPS on the listener.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use interlock_core::json::Json;
use interlock_core::plan::{Plan, StepSpec};
use interlock_core::state::RunState;
use interlock_core::tenant::identity::Role;
use interlock_core::time::{Millis, Timestamp};
use interlock_engine::{EncodedPlan, Engine, StartRun};
use interlock_pki::{Authority, NewAuthority, SERVER_LIFETIME, WORKER_LIFETIME};
use interlock_server::identity::{NewKey, create_key};
use interlock_server::tls::{Tls, TlsError, TlsOptions, WorkerCaFiles};
use interlock_server::{ConnectionOptions, Server, ServerError, ServerOptions};
use interlock_store::forget_memory;
use interlock_worker::{HttpTransport, Tasks, TransportOptions, Worker, WorkerCredential, WorkerOptions};
use reqwest::{Certificate, Client, StatusCode};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::connections::pass;
use crate::harness::engine_of_today;

pub const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);
pub const PATIENCE: Duration = Duration::from_mins(1);

/// A folder with an authority and a server's certificate.
pub struct Files {
    folder: PathBuf,
    pub authority: NewAuthority,
}

impl Files {
    pub fn new(name: &str, now: Timestamp) -> Self {
        let folder = std::env::temp_dir().join(format!("interlock-tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let files = Self { folder, authority: Authority::create("one", now).unwrap() };
        files.sign(&files.authority, now);
        files
    }

    fn sign(&self, authority: &NewAuthority, now: Timestamp) {
        let authority = Authority::load(&authority.certificate, &authority.key).unwrap();
        let issued = authority.issue_server(&["127.0.0.1".to_owned()], now).unwrap();
        write_private(&self.folder.join("server.key"), issued.key.as_bytes());
        write_private(&self.folder.join("server.pem"), issued.certificate.as_bytes());
    }

    /// With the same authority for workers.
    pub fn with_workers(&self) -> TlsOptions {
        let (certificates, key) = (self.folder.join("ca.pem"), self.folder.join("ca.key"));
        std::fs::write(&certificates, &self.authority.certificate).unwrap();
        write_private(&key, self.authority.key.as_bytes());
        TlsOptions { worker_ca: Some(WorkerCaFiles { certificates, key }), ..self.options() }
    }

    pub fn options(&self) -> TlsOptions {
        let (certificate, key) = (self.folder.join("server.pem"), self.folder.join("server.key"));
        TlsOptions { certificate, key, worker_ca: None, worker_lifetime: WORKER_LIFETIME }
    }
}

/// As keys have to be.
fn write_private(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub struct Serving {
    pub address: SocketAddr,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<Result<(), ServerError>>,
}

impl Serving {
    pub async fn start(engine: &Engine, options: ServerOptions) -> Self {
        let server = Server::bind(engine.clone(), options).await.unwrap();
        assert!(server.url().unwrap().starts_with("https://127.0.0.1:"));
        let (address, stop) = (server.address().unwrap(), CancellationToken::new());
        Self { address, task: tokio::spawn(server.run(stop.clone())), stop }
    }

    pub async fn end(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.task).await.unwrap().unwrap().unwrap();
    }
}

pub fn client(authority: &NewAuthority) -> Client {
    let roots = Certificate::from_pem_bundle(authority.certificate.as_bytes()).unwrap();
    let builder = Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    builder.tls_certs_only(roots).build().unwrap()
}

#[tokio::test]
async fn a_worker_reaches_its_server_by_https_and_trusts_the_named_authority_alone() {
    let (engine, [tenant, _], database) = engine_of_today().await;
    let files = Files::new("worker", engine.now());
    let options = ServerOptions { listen: ANY_PORT, tls: Some(files.options()), ..ServerOptions::new(tenant) };
    let new = NewKey::new(tenant, "worker", [Role::Worker].into_iter().collect());
    let key = create_key(&engine, &options.secret, new).await.unwrap().1.reveal().to_owned();
    let serving = Serving::start(&engine, options).await;
    let url = format!("https://{}", serving.address);
    let ca_pem = Some(files.authority.certificate.clone().into_bytes());
    let transport = TransportOptions { server: url.clone(), credential: WorkerCredential::Key(key), ca_pem };
    let stop_worker = CancellationToken::new();
    let tasks = Tasks::new().task("count", |_, input: serde_json::Value| async move { Ok(json!({ "seen": input })) });
    let worker = Worker::new(HttpTransport::open(&transport).unwrap(), tasks, WorkerOptions::default());
    let working = tokio::spawn(worker.run(stop_worker.clone()));
    let plan = Plan::new("w", vec![StepSpec::task("a", "count")]);
    let request = StartRun::new(tenant, EncodedPlan::new(plan).unwrap(), Json::trusted("[1]"));
    let ended = timeout(PATIENCE, engine.runs().start_and_wait(request)).await.unwrap().unwrap();
    assert_eq!(ended.1, RunState::Succeeded);
    stop_worker.cancel();
    timeout(PATIENCE, working).await.unwrap().unwrap().unwrap();

    let other = Authority::create("two", engine.now()).unwrap();
    let refused = client(&other).get(format!("{url}/healthz")).send().await.unwrap_err();
    assert!(refused.is_connect(), "{refused:?}");
    let setup = client(&files.authority).get(format!("{url}/healthz")).send().await.unwrap();
    assert_eq!(setup.status(), StatusCode::OK);
    serving.end().await;
    engine.stop().await;
    forget_memory(&database);
}

#[tokio::test]
async fn plain_http_on_the_port_of_https_is_told_so() {
    let (engine, [tenant, _], database) = engine_of_today().await;
    let files = Files::new("plain", engine.now());
    let options = ServerOptions { listen: ANY_PORT, tls: Some(files.options()), ..ServerOptions::new(tenant) };
    let serving = Serving::start(&engine, options).await;
    let http = client(&files.authority);
    let url = format!("http://{}/api/v1/runs", serving.address);
    let page = http.get(&url).send().await.unwrap();
    assert_eq!(page.status(), StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(page.headers()["location"].to_str().unwrap(), url.replace("http://", "https://"));
    let call = http.get(&url).bearer_auth("il_0123").send().await.unwrap();
    assert_eq!(call.status(), StatusCode::BAD_REQUEST);
    let problem: serde_json::Value = call.json().await.unwrap();
    assert_eq!(problem["code"], "TLS_REQUIRED");
    assert!(problem["detail"].as_str().unwrap().contains("https://"), "{problem}");
    serving.end().await;
    engine.stop().await;
    forget_memory(&database);
}

/// What a program is told that speaks plain HTTP to the port of HTTPS.
pub async fn told_in_plain() -> String {
    let (engine, [tenant, _], database) = engine_of_today().await;
    let files = Files::new("told", engine.now());
    let options = ServerOptions { listen: ANY_PORT, tls: Some(files.options()), ..ServerOptions::new(tenant) };
    let serving = Serving::start(&engine, options).await;
    let mut stream = TcpStream::connect(serving.address).await.unwrap();
    stream.write_all(b"POST /api/v1/runs HTTP/1.1\r\nhost: here\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    let mut said = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut said)).await.unwrap().unwrap();
    serving.end().await;
    engine.stop().await;
    forget_memory(&database);
    said
}

#[tokio::test]
async fn a_new_certificate_is_taken_for_new_connections_and_drops_none() {
    let (engine, [tenant, _], database) = engine_of_today().await;
    let files = Files::new("reload", engine.now());
    // The first connection stays open, however long the test takes.
    let connections = ConnectionOptions { header_timeout: Duration::from_mins(10), ..ConnectionOptions::default() };
    let tls = Some(files.options());
    let options = ServerOptions { listen: ANY_PORT, tls, connections, ..ServerOptions::new(tenant) };
    let serving = Serving::start(&engine, options).await;
    let url = format!("https://{}/healthz", serving.address);
    let old = client(&files.authority);
    assert!(old.get(&url).send().await.unwrap().status().is_success());

    // Half of a pair changes nothing.
    let next = Authority::create("two", engine.now()).unwrap();
    let issuing = Authority::load(&next.certificate, &next.key).unwrap();
    let issued = issuing.issue_server(&["127.0.0.1".to_owned()], engine.now()).unwrap();
    std::fs::write(files.folder.join("server.pem"), &issued.certificate).unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(client(&files.authority).get(&url).send().await.unwrap().status().is_success());

    std::fs::write(files.folder.join("server.key"), issued.key.as_bytes()).unwrap();
    let taken = async {
        while client(&next).get(&url).send().await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, taken).await.expect("the new certificate is in use");
    // The first connection is still open, and goes on under the certificate by which it began.
    assert!(old.get(&url).send().await.unwrap().status().is_success());
    assert!(client(&files.authority).get(&url).send().await.is_err(), "a new connection sees the new certificate");
    serving.end().await;
    engine.stop().await;
    forget_memory(&database);
}

#[tokio::test]
async fn a_handshake_that_does_not_come_ends_and_counts_until_then() {
    let (engine, [tenant, _], database) = engine_of_today().await;
    let files = Files::new("silent", engine.now());
    let connections =
        ConnectionOptions { per_address_max: 1, handshake_timeout: PATIENCE, ..ConnectionOptions::default() };
    let tls = Some(files.options());
    let options = ServerOptions { listen: ANY_PORT, tls, connections, ..ServerOptions::new(tenant) };
    let serving = Serving::start(&engine, options).await;
    let mut silent = TcpStream::connect(serving.address).await.unwrap();
    // The first byte of a handshake, and nothing more.
    silent.write_all(&[0x16]).await.unwrap();
    let url = format!("https://{}/healthz", serving.address);
    assert!(client(&files.authority).get(&url).send().await.is_err(), "the only place is taken");
    pass(PATIENCE).await;
    let read = timeout(PATIENCE, silent.read(&mut [0; 16])).await.expect("the handshake is given up");
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    let admitted = async {
        while client(&files.authority).get(&url).send().await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, admitted).await.expect("its place is free again");
    serving.end().await;
    engine.stop().await;
    forget_memory(&database);
}

#[test]
fn files_that_cannot_be_used_are_named_with_what_is_wrong() {
    let now = Timestamp(1_800_000_000_000);
    let files = Files::new("wrong", now);
    assert_eq!(Tls::open(files.options(), now).unwrap().expires_at(), now + SERVER_LIFETIME);
    // An expired certificate is taken: clients that connect judge it themselves.
    assert!(Tls::open(files.options(), now + SERVER_LIFETIME + Millis(1)).is_ok());

    let refused = |options: TlsOptions| Tls::open(options, now).unwrap_err();
    let missing = refused(TlsOptions { certificate: files.folder.join("absent.pem"), ..files.options() });
    assert!(matches!(missing, TlsError::Read { .. }) && missing.to_string().contains("absent.pem"), "{missing}");
    let swapped = TlsOptions { certificate: files.options().key, ..files.options() };
    assert!(matches!(refused(swapped), TlsError::NoCertificate { .. }));
    let no_key = TlsOptions { key: files.options().certificate, ..files.options() };
    assert!(matches!(refused(no_key), TlsError::NoKey { .. }));
    let key = std::fs::read(files.options().key).unwrap();
    files.sign(&files.authority, now);
    std::fs::write(files.options().key, key).unwrap();
    let mismatch = refused(files.options());
    assert!(matches!(mismatch, TlsError::KeyMismatch { .. }), "{mismatch}");
    files.sign(&files.authority, now);
    for (options, file) in [(files.options(), "server.key"), (files.with_workers(), "ca.key")] {
        let path = files.folder.join(file);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let open = refused(options).to_string();
        assert!(open.contains("its mode is 644") && open.contains(&format!("chmod 600 {}", path.display())), "{open}");
        write_private(&path, &std::fs::read(&path).unwrap());
    }
    assert!(Tls::open(files.with_workers(), now).is_ok());
}
