//! Webhooks that go out, over real sockets: signed, in order, tried again, logged and replayed. What goes over the wire
//! is also given to the reference library of Standard Webhooks, where `make test` has installed it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use axum::routing::post;
use interlock_core::ids::{ServerId, TenantId};
use interlock_core::tenant::identity::Role;
use interlock_core::time::Timestamp;
use interlock_core::trigger::webhook::standard;
use interlock_engine::{Engine, EngineOptions, StartWorkflow};
use interlock_outbound::{Outbound, OutboundOptions};
use interlock_server::identity::{NewKey, create_key};
use interlock_server::{Server, ServerOptions};
use interlock_store::{Options, Store, StoreUrl, Tenant, forget_memory};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::harness;
use crate::schedules::apply;

const PATIENCE: Duration = Duration::from_mins(1);
const WORKFLOW: &str = "name: quick\nsteps:\n  - id: a\n    transform: done\n";

/// One message as it arrived.
#[derive(Clone)]
struct Arrived {
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Arrived {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Takes messages, and answers as it is told.
#[derive(Clone, Default)]
struct Receiver {
    arrived: Arc<Mutex<Vec<Arrived>>>,
    /// The statuses of the next answers; 200 after them.
    answers: Arc<Mutex<Vec<u16>>>,
    /// Sent as `Retry-After` with every answer.
    away: Option<&'static str>,
}

impl Receiver {
    async fn listen(&self) -> SocketAddr {
        let receiver = self.clone();
        let take = move |headers: HeaderMap, body: Bytes| {
            let receiver = receiver.clone();
            async move {
                let headers =
                    headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
                receiver.arrived.lock().unwrap().push(Arrived { headers: headers.collect(), body: body.to_vec() });
                let status = receiver.answers.lock().unwrap().pop().unwrap_or(200);
                let away = receiver.away.map(|away| [("retry-after", away)]);
                let answer = (StatusCode::from_u16(status).unwrap(), "an answer\u{1b}[2J of the receiver");
                away.map_or_else(|| answer.into_response(), |away| (away, answer).into_response())
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, Router::new().route("/hook", post(take))).await });
        at
    }

    async fn wait_for(&self, count: usize) -> Vec<Arrived> {
        let waiting = async {
            loop {
                let arrived = self.arrived.lock().unwrap().clone();
                if arrived.len() >= count {
                    return arrived;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, waiting).await.expect("the messages do not come")
    }
}

/// An engine whose clock is the machine's: the reference library reads that one.
async fn on_the_machines_clock() -> (Engine, TenantId, String) {
    static DATABASES: AtomicU64 = AtomicU64::new(0);
    let database = format!("outbound-{}", DATABASES.fetch_add(1, Ordering::Relaxed));
    let outbound = OutboundOptions { open: vec!["127.0.0.1".parse().unwrap()], ..OutboundOptions::default() };
    let options = EngineOptions { outbound: Some(Outbound::new(outbound).unwrap()), ..harness::equipped() };
    let url = StoreUrl::SqliteMemory(database.clone());
    let store = Store::open(&url, Options::new(ServerId(options.ids.fresh()))).await.unwrap();
    let engine = Engine::open(store, options).await.unwrap();
    let tenant = TenantId(engine.fresh_id());
    engine.tenants().put(Tenant::new(tenant, "one", engine.now())).await.unwrap();
    (engine, tenant, database)
}

/// A server with a socket, and a client for it.
struct WebhookServer {
    engine: Engine,
    tenant: TenantId,
    address: String,
    key: String,
    stop: CancellationToken,
    database: String,
}

impl WebhookServer {
    async fn new() -> Self {
        let (engine, tenant, database) = on_the_machines_clock().await;
        let listen = "127.0.0.1:0".parse().unwrap();
        let options = ServerOptions { listen, ..ServerOptions::new(tenant) };
        let new = NewKey::new(tenant, "admin", [Role::Admin].into_iter().collect());
        let key = create_key(&engine, &options.secret, new).await.unwrap().1.reveal().to_owned();
        let server = Server::bind(engine.clone(), options).await.unwrap();
        let address = format!("http://{}", server.address().unwrap());
        let stop = CancellationToken::new();
        tokio::spawn(server.run(stop.clone()));
        apply(&engine, tenant, WORKFLOW).await;
        Self { engine, tenant, address, key, stop, database }
    }

    async fn call(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let url = format!("{}/api/v1{path}", self.address);
        let request = reqwest::Client::new().request(method.parse().unwrap(), url).bearer_auth(&self.key);
        let request = if method == "GET" { request } else { request.json(&body) };
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or(Value::Null))
    }

    async fn run(&self) {
        let start = StartWorkflow::new(self.tenant, "quick", interlock_core::json::Json::trusted("{}"));
        self.engine.runs().start_workflow(start).await.unwrap();
    }

    async fn end(self) {
        self.stop.cancel();
        self.engine.stop().await;
        forget_memory(&self.database);
    }
}

#[tokio::test]
async fn events_arrive_signed_and_in_order() {
    let (served, receiver) = (WebhookServer::new().await, Receiver::default());
    let url = format!("http://{}/hook", receiver.listen().await);
    let body = json!({ "url": url, "events": ["session.created", "session.completed"] });
    let (status, made) = served.call("POST", "/webhook-endpoints", body).await;
    assert_eq!(status, 201, "{made}");
    let secret = made["secret"].as_str().unwrap().to_owned();
    let id = made["endpoint_id"].as_str().unwrap().to_owned();
    served.run().await;
    let arrived = receiver.wait_for(2).await;
    let names: Vec<_> = arrived.iter().map(|message| message.json()["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names, ["session.created", "session.completed"]);
    let key = standard::key_of_secret(&secret).unwrap();
    let now = Timestamp(arrived[0].headers["webhook-timestamp"].parse::<i64>().unwrap() * 1_000);
    for message in &arrived {
        assert_eq!(standard::verify(&[&key], &message.headers, &message.body, now), Ok(()));
        assert_eq!(message.headers["webhook-id"], message.json()["id"].as_str().unwrap());
        assert_eq!(message.json()["specversion"], "1.0");
    }
    by_the_reference_library(&secret, &arrived);

    // While a secret is replaced, either verifies.
    let (_, rotated) = served.call("POST", &format!("/webhook-endpoints/{id}/rotate"), json!({})).await;
    served.run().await;
    let third = receiver.wait_for(3).await.pop().unwrap();
    for secret in [&secret, rotated["secret"].as_str().unwrap()] {
        let key = standard::key_of_secret(secret).unwrap();
        assert_eq!(standard::verify(&[&key], &third.headers, &third.body, now), Ok(()));
    }
    let shown = served.call("GET", &format!("/webhook-endpoints/{id}"), json!({})).await.1.to_string();
    assert!(!shown.contains("whsec_") && !shown.contains("v1:"), "{shown}");
    served.end().await;
}

#[tokio::test]
async fn a_name_that_is_taken_is_a_conflict() {
    let served = WebhookServer::new().await;
    let body = json!({ "name": "desk", "url": "https://desk.invalid/" });
    assert_eq!(served.call("POST", "/webhook-endpoints", body.clone()).await.0, 201);
    let (status, problem) = served.call("POST", "/webhook-endpoints", body).await;
    assert_eq!((status, &problem["code"]), (409, &json!("NAME_TAKEN")), "{problem}");
    served.end().await;
}

/// The reference library takes what we send, and does not take it with a byte changed.
fn by_the_reference_library(secret: &str, arrived: &[Arrived]) {
    let python = std::env::var("INTERLOCK_TEST_PYTHON")
        .expect("INTERLOCK_TEST_PYTHON is not set: run `make test`, or `scripts/need standardwebhooks`");
    let script = "import sys, json\n\
        from standardwebhooks.webhooks import Webhook, WebhookVerificationError\n\
        for line in sys.stdin:\n\
        \x20   m = json.loads(line)\n\
        \x20   hook = Webhook(m['secret'])\n\
        \x20   hook.verify(m['body'], m['headers'])\n\
        \x20   try: hook.verify(m['body'] + ' ', m['headers'])\n\
        \x20   except WebhookVerificationError: continue\n\
        \x20   sys.exit('a changed body was taken')\n";
    let mut child = Command::new(python).args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for message in arrived {
        let body = String::from_utf8(message.body.clone()).unwrap();
        writeln!(stdin, "{}", json!({ "secret": secret, "headers": message.headers, "body": body })).unwrap();
    }
    drop(stdin);
    assert!(child.wait().unwrap().success(), "the reference library does not take our signature");
}

#[tokio::test]
async fn what_fails_is_tried_again_logged_and_replayed() {
    let (served, receiver) = (WebhookServer::new().await, Receiver::default());
    receiver.answers.lock().unwrap().push(500);
    let url = format!("http://{}/hook", receiver.listen().await);
    let body = json!({ "url": url, "events": ["session.completed"] });
    let (_, made) = served.call("POST", "/webhook-endpoints", body).await;
    let path = format!("/webhook-endpoints/{}", made["endpoint_id"].as_str().unwrap());
    served.run().await;
    let arrived = receiver.wait_for(2).await;
    assert_eq!(arrived[0].headers["webhook-id"], arrived[1].headers["webhook-id"]);
    assert_eq!(arrived[0].body, arrived[1].body);
    let delivered = async || loop {
        let (_, log) = served.call("GET", &format!("{path}/deliveries"), json!({})).await;
        if log["deliveries"][0]["state"] == "delivered" {
            return log;
        }
        sleep(Duration::from_millis(20)).await;
    };
    let log = timeout(PATIENCE, delivered()).await.unwrap();
    let tries = log["deliveries"][0]["attempts"].as_array().unwrap();
    assert_eq!(tries.iter().map(|one| one["status"].as_u64().unwrap()).collect::<Vec<_>>(), [500, 200]);
    assert_eq!(tries[0]["excerpt"], "an answer\\u{1b}[2J of the receiver", "what a terminal would obey is spelled out");

    let delivery = log["deliveries"][0]["delivery_id"].clone();
    let (status, replayed) = served.call("POST", &format!("{path}/replay"), json!({ "delivery_id": delivery })).await;
    assert_eq!((status, &replayed["queued"]), (202, &json!(1)));
    let again = receiver.wait_for(3).await.pop().unwrap();
    assert_eq!(again.headers["webhook-id"], arrived[0].headers["webhook-id"]);
    let (status, replayed) = served.call("POST", &format!("{path}/replay"), json!({ "from": 0 })).await;
    assert_eq!((status, &replayed["queued"]), (202, &json!(2)));
    receiver.wait_for(5).await;
    served.end().await;
}

#[tokio::test]
async fn a_receiver_that_asks_for_time_gets_it() {
    let (served, receiver) = (WebhookServer::new().await, Receiver { away: Some("3600"), ..Receiver::default() });
    receiver.answers.lock().unwrap().push(429);
    let url = format!("http://{}/hook", receiver.listen().await);
    let (_, made) =
        served.call("POST", "/webhook-endpoints", json!({ "url": url, "events": ["session.completed"] })).await;
    let path = format!("/webhook-endpoints/{}/deliveries", made["endpoint_id"].as_str().unwrap());
    served.run().await;
    receiver.wait_for(1).await;
    let put_off = async || loop {
        let (_, log) = served.call("GET", &path, json!({})).await;
        let delivery = &log["deliveries"][0];
        let tried = delivery["attempts"][0]["at"].as_i64();
        if let (Some(tried), Some(next)) = (tried, delivery["next_at"].as_i64())
            && next - tried > 60_000
        {
            return next - tried;
        }
        sleep(Duration::from_millis(20)).await;
    };
    let wait = timeout(PATIENCE, put_off()).await.expect("the next try is put off for an hour");
    assert_eq!(wait, 3_600_000);
    served.end().await;
}

#[tokio::test]
async fn an_endpoint_that_is_gone_is_disabled_and_can_come_back() {
    let (served, receiver) = (WebhookServer::new().await, Receiver::default());
    receiver.answers.lock().unwrap().push(410);
    let url = format!("http://{}/hook", receiver.listen().await);
    let body = json!({ "url": url, "events": ["session.completed"], "workflows": ["quick"] });
    let (_, made) = served.call("POST", "/webhook-endpoints", body).await;
    let path = format!("/webhook-endpoints/{}", made["endpoint_id"].as_str().unwrap());
    served.run().await;
    receiver.wait_for(1).await;
    let disabled = async || loop {
        let (_, endpoint) = served.call("GET", &path, json!({})).await;
        if endpoint["state"] == "disabled" {
            return endpoint;
        }
        sleep(Duration::from_millis(20)).await;
    };
    let endpoint = timeout(PATIENCE, disabled()).await.unwrap();
    assert_eq!(endpoint["note"], "it answered 410 Gone");
    let noted = async || loop {
        let (_, page) = served.call("GET", "/audit?type=webhook_endpoint.disabled", json!({})).await;
        if page["entries"].as_array().is_some_and(|entries| !entries.is_empty()) {
            return page["entries"].clone();
        }
        sleep(Duration::from_millis(50)).await;
    };
    let noted = timeout(PATIENCE, noted()).await.expect("the log tells of it");
    assert_eq!(
        (&noted[0]["entry"]["initiator"], &noted[0]["entry"]["subject"]),
        (&json!("system"), &made["endpoint_id"])
    );
    served.run().await;
    sleep(Duration::from_millis(1_500)).await;
    assert_eq!(receiver.arrived.lock().unwrap().len(), 1, "nothing is sent meanwhile");
    let (_, enabled) = served.call("POST", &format!("{path}/enable"), json!({})).await;
    assert_eq!(enabled["state"], "enabled");
    receiver.wait_for(2).await;
    assert_eq!(served.call("DELETE", &path, json!({})).await.0, 204);
    assert_eq!(served.call("GET", &path, json!({})).await.0, 404);
    served.end().await;
}

#[tokio::test]
async fn what_must_not_be_called_is_refused() {
    let served = WebhookServer::new().await;
    let own = served.address.clone();
    for url in
        ["http://10.0.0.1/", "http://169.254.169.254/", "ftp://example.org/", "http://[::ffff:10.1.2.3]/", &own, ""]
    {
        let (status, problem) = served.call("POST", "/webhook-endpoints", json!({ "url": url })).await;
        assert_eq!((status, &problem["code"]), (422, &json!("INPUT_INVALID")), "{url}");
    }
    let unknown = json!({ "url": "https://example.org/", "events": ["session.exploded"] });
    assert_eq!(served.call("POST", "/webhook-endpoints", unknown).await.0, 422);
    served.end().await;
}

/// An address that takes connections and says nothing; and how many it has taken.
async fn silent() -> (SocketAddr, Arc<AtomicU64>, tokio::task::AbortHandle) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (at, count) = (listener.local_addr().unwrap(), Arc::<AtomicU64>::default());
    let taken = Arc::clone(&count);
    let holding = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((socket, _)) = listener.accept().await {
            held.push(socket);
            taken.fetch_add(1, Ordering::Relaxed);
        }
    });
    (at, count, holding.abort_handle())
}

#[tokio::test]
async fn a_silent_endpoint_holds_up_its_own_messages_only() {
    const RUNS: usize = 150;
    /// Messages that are under way to one endpoint at once, and how long a try takes that is not answered.
    const AT_ONCE: u64 = 4;
    const TRY: Duration = Duration::from_secs(15);
    let (served, receiver) = (WebhookServer::new().await, Receiver::default());
    let (silent, tried, holding) = silent().await;
    for at in [silent, receiver.listen().await] {
        let body = json!({ "url": format!("http://{at}/hook"), "events": ["session.completed"] });
        let (status, made) = served.call("POST", "/webhook-endpoints", body).await;
        assert_eq!(status, 201, "{made}");
    }
    let begun = Instant::now();
    for _ in 0..RUNS {
        served.run().await;
    }
    receiver.wait_for(RUNS).await;
    // Most places were free all the time for the messages that arrive, however long these took on this machine.
    let (tried, tries) = (tried.load(Ordering::Relaxed), 1 + begun.elapsed().as_secs() / TRY.as_secs());
    assert!((1..=AT_ONCE * tries).contains(&tried), "{tried} messages were sent to the silent endpoint");
    holding.abort();
    served.end().await;
}
