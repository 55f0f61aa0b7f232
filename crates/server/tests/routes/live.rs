//! Live streams over real sockets: everything once and in order, however often a subscriber comes back.

use std::net::SocketAddr;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::plan::{Plan, StepSpec};
use interlock_core::run::change::Context;
use interlock_core::state::Initiator;
use interlock_core::tenant::identity::Role;
use interlock_engine::{EncodedPlan, Engine, StartRun};
use interlock_server::identity::{NewKey, create_key};
use interlock_server::{Server, ServerOptions};
use interlock_store::forget_memory;
use interlock_worker::{HttpTransport, Tasks, Worker, WorkerOptions};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{WebSocketStream, client_async};
use tokio_util::sync::CancellationToken;

use crate::harness::engine;

const PATIENCE: Duration = Duration::from_mins(1);
/// Who takes longer for what it is given, and falls behind meanwhile, is told to resync.
const SLOW_AFTER: Duration = Duration::from_secs(1);

pub struct Harness {
    pub engine: Engine,
    pub tenant: TenantId,
    pub other_tenant: TenantId,
    /// May listen, and work; and the same for the other tenant.
    pub key: String,
    pub other_key: String,
    pub address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<Result<(), interlock_server::ServerError>>,
    database: String,
}

impl Harness {
    pub async fn new() -> Self {
        let (engine, [tenant, other_tenant], database) = engine().await;
        // Nobody is left when it stops, or the test notices.
        let (listen, drain) = ("127.0.0.1:0".parse().unwrap(), 10 * PATIENCE);
        let options = ServerOptions { listen, drain, ..ServerOptions::new(tenant) };
        let roles = [Role::Viewer, Role::Worker].into_iter().collect();
        let key = async |tenant| {
            let new = NewKey::new(tenant, "test", roles);
            create_key(&engine, &options.secret, new).await.unwrap().1.reveal().to_owned()
        };
        let (key, other_key) = (key(tenant).await, key(other_tenant).await);
        let server = Server::bind(engine.clone(), options).await.unwrap();
        let address = server.address().unwrap();
        let stop = CancellationToken::new();
        let serving = tokio::spawn(server.run(stop.clone()));
        Self { engine, tenant, other_tenant, key, other_key, address, stop, serving, database }
    }

    /// A run whose steps a worker completes, one after the other.
    pub async fn start(&self, steps: usize) -> RunId {
        self.start_of(self.tenant, steps).await
    }

    pub async fn start_of(&self, tenant: TenantId, steps: usize) -> RunId {
        let steps = (0..steps).map(|number| StepSpec::task(format!("s{number}"), "t")).collect();
        let plan = Plan {
            workflow: "w".into(),
            version: 1,
            on_failure: None,
            timeout: None,
            writes_max: None,
            steps,
            rules: interlock_core::plan::rules::PlanRules::default(),
        };
        let request = StartRun::new(tenant, EncodedPlan::new(plan).unwrap(), Json::null());
        self.engine.runs().start(request).await.unwrap().run
    }

    /// A worker whose task does nothing, until it is stopped.
    fn work(&self) -> CancellationToken {
        let transport = HttpTransport::new(&format!("http://{}", self.address), Some(self.key.clone())).unwrap();
        let tasks = Tasks::new().task("t", |_, _: Value| async { Ok(()) });
        let stop = CancellationToken::new();
        tokio::spawn(Worker::new(transport, tasks, WorkerOptions::default()).run(stop.clone()));
        stop
    }

    /// A request for a WebSocket, with the key unless it is to go without.
    pub fn request(&self, path: &str, key: Option<&str>) -> axum::http::Request<()> {
        let mut request = format!("ws://{}{path}", self.address).into_client_request().unwrap();
        if let Some(key) = key {
            request.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
        }
        request
    }

    async fn socket(&self, path: &str) -> WebSocketStream<TcpStream> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        client_async(self.request(path, Some(&self.key)), stream).await.unwrap().0
    }

    pub async fn stranger(&self, path: &str) -> WebSocketStream<TcpStream> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        client_async(self.request(path, None), stream).await.unwrap().0
    }

    pub async fn end(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.serving).await.unwrap().unwrap().unwrap();
        self.engine.stop().await;
        forget_memory(&self.database);
    }
}

/// The next message that is an event, or the control frame that ends the stream.
pub async fn next(socket: &mut WebSocketStream<TcpStream>) -> Option<Value> {
    loop {
        match timeout(PATIENCE, socket.next()).await.expect("something comes in time")? {
            Ok(Message::Text(text)) => {
                let value: Value = serde_json::from_str(&text).unwrap();
                if !matches!(value["type"].as_str(), Some("subscribed" | "heartbeat")) {
                    return Some(value);
                }
            }
            Ok(Message::Close(_)) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

/// Server-sent events over a plain connection, so that it can be cut anywhere.
pub struct Sse {
    stream: TcpStream,
    text: String,
}

impl Sse {
    pub async fn open(harness: &Harness, path: &str, last_event_id: u64) -> Self {
        let mut stream = TcpStream::connect(harness.address).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\nlast-event-id: {last_event_id}\r\n\
             connection: close\r\n\r\n",
            harness.address, harness.key
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        Self { stream, text: String::new() }
    }

    /// The status line, and all that came with it.
    pub async fn status(&mut self) -> String {
        while !self.text.contains("\r\n\r\n") {
            assert!(self.read().await > 0, "{}", self.text);
        }
        self.text.lines().next().unwrap_or_default().to_owned()
    }

    async fn read(&mut self) -> usize {
        let mut bytes = [0; 4096];
        let read = timeout(PATIENCE, self.stream.read(&mut bytes)).await.unwrap().unwrap_or(0);
        self.text.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
        read
    }

    /// The next event: its name and its data. None when the stream has ended.
    pub async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            // A whole event stands between two empty lines; chunk sizes stand on lines of their own.
            if let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
                if let (Some(name), Some(data)) = (field("event: "), field("data: ")) {
                    return Some((name.to_owned(), serde_json::from_str(data).unwrap()));
                }
                continue;
            }
            if self.read().await == 0 {
                return None;
            }
        }
    }
}

fn seq(event: &Value) -> u64 {
    event["id"].as_str().unwrap().parse().unwrap()
}

/// The bar: a subscriber that comes back 1,000 times at random sees every event once, in order.
#[tokio::test]
async fn a_subscriber_that_reconnects_a_thousand_times_sees_every_event_once_in_order() {
    let harness = Harness::new().await;
    let run = harness.start(400).await;
    let worker = harness.work();
    let (mut cursor, mut connections, mut seen) = (0, 0u32, Vec::new());
    let mut dice = fastrand::Rng::with_seed(7);
    loop {
        connections += 1;
        // Reconnects are spread over the run and beyond its end: the last ones replay parts of it.
        let budget = dice.usize(0..6);
        let mut ended = false;
        if dice.bool() {
            let mut socket = harness.socket(&format!("/ws/runs/{run}?last_event_id={cursor}")).await;
            for _ in 0..budget {
                match next(&mut socket).await {
                    Some(event) if event["type"] == "end" => ended = true,
                    Some(event) => {
                        cursor = seq(&event);
                        seen.push(event);
                    }
                    None => break,
                }
            }
        } else {
            let mut stream = Sse::open(&harness, &format!("/api/v1/runs/{run}/events/stream"), cursor).await;
            let status = stream.status().await;
            ended = status.contains("204");
            for _ in 0..if ended { 0 } else { budget } {
                match stream.next().await {
                    Some((name, _)) if name == "stream.end" => ended = true,
                    Some((name, event)) => {
                        assert_eq!(event["type"], name.as_str());
                        cursor = seq(&event);
                        seen.push(event);
                    }
                    None => break,
                }
            }
        }
        if ended && connections >= 1_000 {
            break;
        }
        if ended {
            // Everything was seen before the thousandth time: go back, and see a part of it again.
            let back = dice.u64(0..=cursor);
            seen.truncate(back as usize);
            cursor = back;
        }
    }
    let version = harness.engine.store().run_overview(harness.tenant, run).await.unwrap().unwrap().version;
    let sequence: Vec<u64> = seen.iter().map(seq).collect();
    assert_eq!(sequence, (1..=version).collect::<Vec<_>>(), "after {connections} connections");
    assert_eq!(
        (seen[0]["type"].as_str(), seen[0]["run_id"].as_str()),
        (Some("session.created"), Some(&*run.to_string()))
    );
    assert_eq!(seen.last().unwrap()["type"], "session.completed");
    worker.cancel();
    harness.end().await;
}

#[tokio::test]
async fn the_feed_shows_all_runs_in_the_tenants_order_and_goes_on_where_one_was() {
    let harness = Harness::new().await;
    let first = harness.start(1).await;
    let worker = harness.work();
    let mut socket = harness.socket("/ws/feed?last_event_id=0").await;
    let mut cursor = 0;
    let mut runs = std::collections::BTreeMap::<String, u64>::new();
    let second = harness.start(1).await;
    for reconnect in [true, false] {
        for _ in 0..4 {
            let event = next(&mut socket).await.unwrap();
            assert_eq!(seq(&event), cursor + 1, "dense");
            cursor += 1;
            let run = runs.entry(event["run_id"].as_str().unwrap().to_owned()).or_default();
            *run += 1;
            assert_eq!(event["seq"], *run, "a run's own events are in order, too");
        }
        if reconnect {
            socket = harness.socket(&format!("/ws/feed?last_event_id={cursor}")).await;
        }
    }
    assert_eq!(runs.keys().cloned().collect::<Vec<_>>(), {
        let mut both = vec![first.to_string(), second.to_string()];
        both.sort();
        both
    });
    worker.cancel();
    harness.end().await;
}

#[tokio::test]
async fn a_server_that_stops_says_goodbye_to_watchers() {
    let harness = Harness::new().await;
    let run = harness.start(1).await;
    let mut socket = harness.socket(&format!("/ws/executions/{run}")).await;
    let mut stream = Sse::open(&harness, "/api/v1/events/stream", 0).await;
    assert_eq!(next(&mut socket).await.unwrap()["event"], "session.created");
    assert_eq!(stream.next().await.unwrap().0, "session.created");
    harness.stop.cancel();
    assert_eq!(next(&mut socket).await.unwrap(), json!({ "type": "closing", "last_event_id": "1" }));
    assert!(next(&mut socket).await.is_none());
    assert_eq!(stream.next().await.unwrap().0, "stream.closing");
    harness.end().await;
}

#[tokio::test]
async fn a_token_may_come_in_the_query_or_the_first_frame_and_must_be_right() {
    let harness = Harness::new().await;
    let run = harness.start(1).await;
    let mut by_query = harness.stranger(&format!("/ws/runs/{run}?token={}", harness.key)).await;
    assert_eq!(next(&mut by_query).await.unwrap()["type"], "session.created");

    let mut by_frame = harness.stranger(&format!("/ws/runs/{run}")).await;
    let frame = json!({ "type": "subscribe", "token": harness.key, "last_event_id": "0" }).to_string();
    by_frame.send(Message::text(frame)).await.unwrap();
    assert_eq!(next(&mut by_frame).await.unwrap()["type"], "session.created");

    for frame in [json!({ "type": "subscribe", "token": "guess" }), json!({ "type": "subscribe" })] {
        let mut wrong = harness.stranger(&format!("/ws/runs/{run}")).await;
        wrong.send(Message::text(frame.to_string())).await.unwrap();
        assert_eq!(next(&mut wrong).await.unwrap()["code"], "UNAUTHORIZED");
        assert!(next(&mut wrong).await.is_none());
    }
    let stream = TcpStream::connect(harness.address).await.unwrap();
    assert!(client_async(harness.request(&format!("/ws/runs/{run}?token=guess"), None), stream).await.is_err());
    harness.end().await;
}

#[tokio::test]
async fn a_page_of_another_site_and_a_run_that_is_not_there_are_refused_before_the_upgrade() {
    let harness = Harness::new().await;
    let run = harness.start(1).await;
    let refusal = async |path: String, origin: Option<&str>| {
        let stream = TcpStream::connect(harness.address).await.unwrap();
        let mut request = harness.request(&path, origin.is_none().then_some(&*harness.key));
        if let Some(origin) = origin {
            request.headers_mut().insert("origin", origin.parse().unwrap());
        }
        match client_async(request, stream).await {
            Err(tokio_tungstenite::tungstenite::Error::Http(response)) => response.status().as_u16(),
            Err(other) => panic!("{other}"),
            Ok(_) => 101,
        }
    };
    assert_eq!(refusal(format!("/ws/runs/{run}"), Some("https://evil.example")).await, 403);
    assert_eq!(refusal(format!("/ws/runs/{run}"), Some(&format!("http://{}", harness.address))).await, 101);
    assert_eq!(refusal(format!("/ws/runs/{}", RunId::from_bytes([9; 16])), None).await, 404);
    assert_eq!(refusal("/ws/runs/nonsense".into(), None).await, 404);
    assert_eq!(refusal(format!("/ws/runs/{run}?last_event_id=x"), None).await, 400);
    assert_eq!(refusal(format!("/ws/runs/{run}?last_event_id=999"), None).await, 409);
    assert_eq!(refusal(format!("/ws/feed?last_event_id={}", u64::MAX), None).await, 409);
    harness.end().await;
}

/// Pauses and resumes a run so many times, in large events: two for each time.
async fn pause_and_resume(harness: &Harness, run: RunId, times: u64) {
    let operator = || Context::by(Initiator::Operator);
    for _ in 0..times {
        harness.engine.runs().pause(harness.tenant, run, "x".repeat(4_000), operator()).await.unwrap();
        harness.engine.runs().resume(harness.tenant, run, operator()).await.unwrap();
        // The store answers at once, so no other task would get a turn.
        tokio::task::yield_now().await;
    }
}

/// Does this while the clock stands still, except that it goes on a little with every turn of all tasks: who is slow
/// then is slow by the number of turns, and not because the machine is.
async fn in_turns<T>(work: impl Future<Output = T> + Unpin) -> T {
    tokio::time::pause();
    let turns = async {
        loop {
            tokio::time::advance(Duration::from_millis(2)).await;
        }
    };
    let done = tokio::select! {
        done = work => done,
        () = turns => unreachable!("turns do not end"),
    };
    tokio::time::resume();
    done
}

/// A watcher that does not read is told to resync as soon as it reads again, with little held for it meanwhile; it comes
/// back, sees the rest once and in order without being told again, and is live.
#[tokio::test]
async fn a_watcher_that_does_not_read_is_told_to_resync_and_loses_nothing() {
    const PAUSES: u64 = 1_200;
    /// Both kernels' buffers, ours, and the frames under way; the stream itself is several times as long.
    const HELD_BYTES_MAX: usize = 2 << 20;
    let harness = Harness::new().await;
    let run = harness.start(1).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 << 10).unwrap();
    let stream = socket.connect(harness.address).await.unwrap();
    let request = harness.request(&format!("/ws/runs/{run}"), Some(&harness.key));
    let mut slow = client_async(request, stream).await.unwrap().0;
    assert_eq!(next(&mut slow).await.unwrap()["type"], "session.created");

    let mut pauses = 0;
    in_turns(Box::pin(async {
        let began = Instant::now();
        while pauses < PAUSES || began.elapsed() < 2 * SLOW_AFTER {
            pause_and_resume(&harness, run, 100).await;
            pauses += 100;
        }
    }))
    .await;
    let (mut cursor, mut held) = (1, 0);
    let told = loop {
        let message = next(&mut slow).await.expect("the watcher is told before it is cut off");
        if message["type"] == "resync" {
            break message;
        }
        cursor += 1;
        assert_eq!(seq(&message), cursor);
        held += message.to_string().len();
    };
    assert_eq!(told["last_event_id"], cursor.to_string());
    assert!(held < HELD_BYTES_MAX, "{held} bytes were held for one watcher");
    assert!(next(&mut slow).await.is_none(), "nothing follows, but the close");

    let last = 1 + 2 * pauses;
    assert!(cursor < last, "all {last} events fitted into buffers");
    let mut back = harness.socket(&format!("/ws/runs/{run}?last_event_id={cursor}")).await;
    while cursor < last {
        cursor += 1;
        assert_eq!(seq(&next(&mut back).await.unwrap()), cursor);
    }
    pause_and_resume(&harness, run, 1).await;
    assert_eq!([seq(&next(&mut back).await.unwrap()), seq(&next(&mut back).await.unwrap())], [last + 1, last + 2]);
    harness.end().await;
}

/// More than the server keeps comes at once: who reads is not told that it is slow.
#[tokio::test]
async fn a_burst_larger_than_what_is_kept_is_not_the_watchers_fault() {
    const PAUSES: u64 = 600;
    let harness = Harness::new().await;
    let run = harness.start(1).await;
    let mut socket = harness.socket(&format!("/ws/runs/{run}")).await;
    assert_eq!(next(&mut socket).await.unwrap()["type"], "session.created");
    let operator = || Context::by(Initiator::Operator);
    let burst = async {
        for _ in 0..PAUSES {
            harness.engine.runs().pause(harness.tenant, run, "x".repeat(4_000), operator()).await.unwrap();
            harness.engine.runs().resume(harness.tenant, run, operator()).await.unwrap();
        }
    };
    // It reads meanwhile: the burst takes longer than a silent reader is waited for.
    let read = async {
        for cursor in 2..=1 + 2 * PAUSES {
            assert_eq!(seq(&next(&mut socket).await.unwrap()), cursor);
        }
    };
    in_turns(Box::pin(async { tokio::join!(burst, read) })).await;
    harness.end().await;
}

/// Everything that a WebSocket says until it is closed, or that is said instead of opening it, with the id taken out.
async fn told(harness: &Harness, path: &str, key: Option<&str>, frame: Option<&str>, id: RunId) -> Vec<String> {
    let stream = TcpStream::connect(harness.address).await.unwrap();
    let mut said = Vec::new();
    match client_async(harness.request(path, key), stream).await {
        Err(tokio_tungstenite::tungstenite::Error::Http(response)) => {
            said.push(response.status().to_string());
            let changing = ["date", "x-request-id", "content-length"];
            let headers = response.headers().iter().filter(|(name, _)| !changing.contains(&name.as_str()));
            said.extend(headers.map(|(name, value)| format!("{name}: {value:?}")));
            said.push(String::from_utf8(response.into_body().unwrap_or_default()).unwrap());
        }
        Err(other) => panic!("{other}"),
        Ok((mut socket, _)) => {
            if let Some(frame) = frame {
                socket.send(Message::text(frame)).await.unwrap();
            }
            while let Some(Ok(message)) = timeout(PATIENCE, socket.next()).await.expect("it is closed in time") {
                said.push(format!("{message:?}"));
            }
        }
    }
    said.into_iter().map(|text| text.replace(&id.to_string(), "ID")).collect()
}

#[tokio::test]
async fn another_tenants_run_is_one_that_does_not_exist_also_over_a_socket() {
    let harness = Harness::new().await;
    let foreign = harness.start_of(harness.other_tenant, 1).await;
    let mut bytes = *foreign.as_bytes();
    bytes[15] ^= 1;
    let nowhere = RunId::from_bytes(bytes);
    let subscribe = json!({ "type": "subscribe", "token": harness.key }).to_string();
    let behind = json!({ "type": "subscribe", "token": harness.key, "last_event_id": "1" }).to_string();
    for route in ["/ws/runs", "/ws/executions"] {
        for (query, key, frame) in [
            (String::new(), Some(harness.key.as_str()), None),
            ("?last_event_id=1".to_owned(), Some(harness.key.as_str()), None),
            ("?last_event_id=99".to_owned(), Some(harness.key.as_str()), None),
            (format!("?token={}", harness.key), None, None),
            (String::new(), None, Some(subscribe.as_str())),
            (String::new(), None, Some(behind.as_str())),
        ] {
            let known = told(&harness, &format!("{route}/{foreign}{query}"), key, frame, foreign).await;
            let unknown = told(&harness, &format!("{route}/{nowhere}{query}"), key, frame, nowhere).await;
            assert_eq!(known, unknown, "{route}{query}, {frame:?}");
            assert!(known.iter().any(|text| text.contains("RUN_NOT_FOUND")), "{route}{query}: {known:?}");
        }
    }
    harness.end().await;
}
