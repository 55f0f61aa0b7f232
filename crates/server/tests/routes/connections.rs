//! Connections that say little or nothing, against a real listener with small limits.

use std::net::SocketAddr;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use interlock_core::ids::TenantId;
use interlock_engine::Engine;
use interlock_server::{ConnectionOptions, Server, ServerError, ServerOptions, TrustedProxies};
use interlock_store::forget_memory;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::harness::engine;

const PATIENCE: Duration = Duration::from_mins(1);

pub struct Listening {
    pub engine: Engine,
    pub address: SocketAddr,
    database: String,
    stop: CancellationToken,
    serving: JoinHandle<Result<(), ServerError>>,
}

pub async fn listen(connections: ConnectionOptions) -> Listening {
    listen_with(|tenant| ServerOptions { connections, ..ServerOptions::new(tenant) }).await
}

pub async fn listen_with(options: impl FnOnce(TenantId) -> ServerOptions) -> Listening {
    let (engine, [tenant, _], database) = engine().await;
    listen_on(engine, options(tenant), database).await
}

/// The engine of an API that is asked without a socket as well.
async fn listen_for(api: &crate::harness::Api, options: ServerOptions) -> Listening {
    listen_on(api.engine.clone(), options, api.database.clone()).await
}

pub async fn listen_on(engine: Engine, options: ServerOptions, database: String) -> Listening {
    let options = ServerOptions { listen: "127.0.0.1:0".parse().unwrap(), ..options };
    let server = Server::bind(engine.clone(), options).await.unwrap();
    let address = server.address().unwrap();
    let stop = CancellationToken::new();
    let serving = tokio::spawn(server.run(stop.clone()));
    Listening { engine, address, database, stop, serving }
}

impl Listening {
    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Everything that the server says until it closes.
    pub async fn say(&self, text: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(text.as_bytes()).await.unwrap();
        rest(&mut stream).await
    }

    pub async fn end(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.serving).await.unwrap().unwrap().unwrap();
        self.engine.stop().await;
        forget_memory(&self.database);
    }
}

pub async fn rest(stream: &mut TcpStream) -> String {
    let mut said = Vec::new();
    // A reset after the answer is told from one before it by what was read.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut said)).await.expect("the server closes");
    String::from_utf8_lossy(&said).into_owned()
}

/// Lets this much time pass at once, for everything in this process. So a limit can be longer than any stall of the
/// machine and the test does not wait for its end.
pub async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

const HEALTH: &str = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// Hundreds of requests whose head never ends hold their places only for as long as a head may take.
#[tokio::test]
async fn half_open_requests_lose_their_place() {
    let options = ConnectionOptions {
        connections_max: 300,
        per_address_max: 300,
        header_timeout: Duration::from_millis(500),
        ..ConnectionOptions::default()
    };
    let server = listen(options).await;
    let mut silent = Vec::new();
    for number in 0..300 {
        let mut stream = server.connect().await;
        // Some say nothing at all.
        if number % 2 == 0 {
            stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: local").await.unwrap();
        }
        silent.push(stream);
    }
    // Each of them is closed, although its peer holds on.
    for stream in &mut silent {
        rest(stream).await;
    }
    assert!(server.say(HEALTH).await.starts_with("HTTP/1.1 200"), "there is room again");
    server.end().await;
}

#[tokio::test]
async fn a_connection_too_many_is_told_so() {
    let options = ConnectionOptions { per_address_max: 2, ..ConnectionOptions::default() };
    let server = listen(options).await;
    let (mut one, two) = (server.connect().await, server.connect().await);
    let mut third = server.connect().await;
    assert!(rest(&mut third).await.contains("CONNECTIONS_FULL"));
    // The first two are none the worse for it.
    one.write_all(HEALTH.as_bytes()).await.unwrap();
    assert!(rest(&mut one).await.starts_with("HTTP/1.1 200"));
    drop(two);
    server.end().await;
}

/// Behind a trusted proxy a source is the client that the proxy names; and the proxy may connect for many.
#[tokio::test]
async fn behind_a_trusted_proxy_clients_are_told_apart() {
    const AT_ONCE: usize = 80;
    let connections = ConnectionOptions { per_address_max: 2, ..ConnectionOptions::default() };
    let trusted_proxies = TrustedProxies::new(vec!["127.0.0.1".parse().unwrap()]);
    let api = crate::harness::Api::new().await;
    let account = serde_json::json!({ "name": "person-0", "roles": ["viewer"], "password": "correct horse battery" });
    api.post("/users", account).await.ok();
    let kept = api.engine.store().user_named(api.tenant, "person-0").await.unwrap().unwrap().password;
    // A password that takes long to look at: sign-ins come faster than they are answered, however slow the machine is.
    let slow = kept.as_ref().map(|kept| kept.replace(",t=2,", ",t=60,"));
    assert_ne!(slow, kept);
    let people = (1..AT_ONCE).map(|number| (format!("person-{number}"), &kept));
    for (name, password) in people.chain((0..AT_ONCE).map(|number| (format!("slow-{number}"), &slow))) {
        let mut person = api.identity().new_user(api.tenant, name);
        person.password.clone_from(password);
        assert!(api.identity().add_user(person).await.is_ok());
    }
    let server = listen_for(&api, ServerOptions { connections, trusted_proxies, ..api.options() }).await;
    let sign_in = async |name: String, client: String| {
        let body = format!(r#"{{"name":"{name}","password":"correct horse battery"}}"#);
        let length = body.len();
        let said = server
            .say(&format!(
                "POST /api/v1/auth/login HTTP/1.1\r\nhost: localhost\r\nx-forwarded-for: {client}\r\n\
                 content-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            ))
            .await;
        said.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    let of_many =
        (0..AT_ONCE).map(|number| sign_in(format!("person-{number}"), format!("203.0.113.9, 198.51.100.{number}")));
    let of_many = futures::future::join_all(of_many).await;
    assert!(of_many.iter().all(|status| status == "200"), "{of_many:?}");
    // What a client writes in front of its own address does not make it another.
    let of_one =
        (0..AT_ONCE).map(|number| sign_in(format!("slow-{number}"), format!("198.51.100.{number}, 203.0.113.9")));
    let of_one: FuturesUnordered<_> = of_one.collect();
    // The first refusal is enough; the others are not waited for.
    let was_refused = of_one.any(|status| std::future::ready(status == "503")).await;
    assert!(was_refused, "all sign-ins of one client were admitted");
    server.end().await;
}

/// A body that stops coming is answered, also where it trickles.
#[tokio::test]
async fn a_body_that_does_not_end_is_given_up() {
    let options = ConnectionOptions {
        body_idle_timeout: Duration::from_millis(200),
        body_timeout: Duration::from_millis(600),
        ..ConnectionOptions::default()
    };
    let server = listen(options).await;
    let head = "POST /api/v1/auth/login HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                content-length: 1000\r\n\r\n{";
    let mut streams = Vec::new();
    for _ in 0..100 {
        let mut stream = server.connect().await;
        stream.write_all(head.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    for stream in &mut streams {
        let said = rest(stream).await;
        assert!(said.starts_with("HTTP/1.1 408") && said.contains("BODY_TIMEOUT"), "{said}");
        assert!(said.contains("connection: close"), "{said}");
    }
    let mut trickling = server.connect().await;
    trickling.write_all(head.as_bytes()).await.unwrap();
    let (mut reading, mut writing) = trickling.split();
    let mut said = Vec::new();
    let trickle = async {
        let mut pace = tokio::time::interval(Duration::from_millis(50));
        while writing.write_all(b" ").await.is_ok() {
            pace.tick().await;
        }
        // The server has closed, and what it said before is still to be read.
        std::future::pending::<()>().await;
    };
    let read = timeout(PATIENCE, reading.read_to_end(&mut said));
    tokio::select! {
        _ = read => {}
        () = trickle => {}
    }
    assert!(String::from_utf8_lossy(&said).contains("BODY_TIMEOUT"));
    server.end().await;
}

/// A client without a credential may send little, and reads the refusal although it is still sending.
#[tokio::test]
async fn a_public_route_takes_a_small_body_and_says_so() {
    let server = listen(ConnectionOptions::default()).await;
    let length = 8 << 20;
    for (path, status) in [("/api/v1/auth/login", 413), ("/api/v1/runs", 401), ("/nowhere", 404)] {
        let mut stream = server.connect().await;
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let (mut reading, mut writing) = stream.split();
        let sending = async {
            let chunk = vec![b' '; 64 << 10];
            for _ in 0..length / chunk.len() {
                if writing.write_all(&chunk).await.is_err() {
                    return;
                }
            }
        };
        let mut said = Vec::new();
        let (read, ()) = tokio::join!(timeout(PATIENCE, reading.read_to_end(&mut said)), sending);
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(said.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {said} {read:?}");
        assert!(said.contains("connection: close"), "{path}: {said}");
    }
    server.end().await;
}

/// Bodies that are still coming in share one budget of memory.
#[tokio::test]
async fn unfinished_bodies_have_a_budget() {
    let options = ConnectionOptions { unfinished_bytes_max: 10_000, ..ConnectionOptions::default() };
    let server = listen(options).await;
    let head = "POST /api/v1/auth/login HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                content-length: 12000\r\n\r\n";
    let mut stream = server.connect().await;
    stream.write_all(format!("{head}{}", " ".repeat(12_000)).as_bytes()).await.unwrap();
    let said = rest(&mut stream).await;
    assert!(said.starts_with("HTTP/1.1 503") && said.contains("OVERLOADED"), "{said}");
    // What it held is given back.
    let small = "POST /api/v1/auth/login HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                 connection: close\r\ncontent-length: 2\r\n\r\n{}";
    assert!(server.say(small).await.starts_with("HTTP/1.1 400"));
    server.end().await;
}

/// A head that does not end is refused as soon as it is too long, not when its time is over.
#[tokio::test]
async fn a_head_that_is_too_long_is_refused_at_once() {
    let server = listen(ConnectionOptions { header_timeout: PATIENCE * 2, ..ConnectionOptions::default() }).await;
    let long = "x".repeat(300 << 10);
    for head in [
        format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-long: {long}"),
        format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-long: {long}\r\n\r\n"),
        format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{}", "x-many: 1234567890\r\n".repeat(15 << 10)),
    ] {
        let mut stream = server.connect().await;
        let (mut reading, mut writing) = stream.split();
        let mut said = Vec::new();
        let (read, _) =
            tokio::join!(timeout(PATIENCE, reading.read_to_end(&mut said)), writing.write_all(head.as_bytes()));
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(said.starts_with("HTTP/1.1 431"), "{said} {read:?}");
    }
    // What clients really send has room.
    let cookies = format!(
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncookie: {}\r\n\r\n",
        "c".repeat(32 << 10)
    );
    assert!(server.say(&cookies).await.starts_with("HTTP/1.1 200"));
    server.end().await;
}

/// The load balancer learns from `/readyz` that the server stops, before its port is closed.
#[tokio::test]
async fn a_server_that_stops_takes_connections_a_while_and_says_that_it_is_not_ready() {
    const READY: &str = "GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let linger = Duration::from_mins(10);
    let server = listen_with(|tenant| ServerOptions { linger, ..ServerOptions::new(tenant) }).await;
    assert!(server.say(READY).await.starts_with("HTTP/1.1 200"));
    server.stop.cancel();
    let said = server.say(READY).await;
    assert!(said.starts_with("HTTP/1.1 503") && said.contains("shutting down"), "{said}");
    assert!(server.say(HEALTH).await.starts_with("HTTP/1.1 200"), "what still comes is answered");
    let address = server.address;
    pass(linger).await;
    server.end().await;
    assert!(TcpStream::connect(address).await.is_err(), "and then the port is closed");
}
