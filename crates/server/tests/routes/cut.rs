//! Requests that break off on the wire, against a real listener: whatever arrived of a request and however often it is
//! sent again, its effect happens once, no key stays locked, and the server is none the worse for it.

use std::net::SocketAddr;
use std::time::Duration;

use interlock_server::{ConnectionOptions, Server, ServerError, ServerOptions};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::approvals::gate;
use crate::harness::{Api, attempt, completed, plan, task};

const PATIENCE: Duration = Duration::from_mins(1);
const PASSWORD: &str = "correct horse battery";

/// A listening server, and the same engine asked without a socket for what comes before and after.
struct Wire {
    api: Api,
    address: SocketAddr,
    /// Of a server beside it that does not wait long for a head.
    impatient: SocketAddr,
    /// The token of a person who may vote.
    voter: String,
    stop: CancellationToken,
    serving: [JoinHandle<Result<(), ServerError>>; 2],
}

/// A server of this engine, in which a head may take so long.
async fn serve(
    api: &Api,
    header_timeout: Duration,
    stop: &CancellationToken,
) -> (SocketAddr, JoinHandle<Result<(), ServerError>>) {
    // Few places: a connection that is not given back is missed soon.
    let connections =
        ConnectionOptions { connections_max: 64, per_address_max: 64, header_timeout, ..ConnectionOptions::default() };
    let listen = "127.0.0.1:0".parse().unwrap();
    let options = ServerOptions { listen, connections, ..api.options() };
    let server = Server::bind(api.engine.clone(), options).await.unwrap();
    (server.address().unwrap(), tokio::spawn(server.run(stop.clone())))
}

impl Wire {
    async fn new(api: Api) -> Self {
        let stop = CancellationToken::new();
        // A request that dribbles in gets all the time that a slow machine takes for it.
        let (address, patient) = serve(&api, PATIENCE, &stop).await;
        let (impatient, hasty) = serve(&api, Duration::from_millis(500), &stop).await;
        let account = json!({ "name": "ada", "roles": ["approver"], "password": PASSWORD });
        api.post("/users", account).await.ok();
        let sign_in = json!({ "by": "password", "name": "ada", "password": PASSWORD });
        let voter = api.post("/auth/token", sign_in).await.text("token");
        Self { api, address, impatient, voter, stop, serving: [patient, hasty] }
    }

    async fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// Sends so much of a request, and hangs up: politely, or with a reset.
    async fn cut(&self, request: &[u8], reset: bool) {
        let mut stream = self.connect().await;
        // The server may have answered and closed already.
        let _ = stream.write_all(request).await;
        if reset {
            stream.set_zero_linger().unwrap();
        }
    }

    /// Sends all of a request.
    async fn send(&self, request: &[u8]) -> WireAnswer {
        let mut stream = self.connect().await;
        stream.write_all(request).await.unwrap();
        WireAnswer::by(&mut stream).await
    }

    /// One byte at a time.
    async fn dribble(&self, request: &[u8]) -> WireAnswer {
        let mut stream = self.connect().await;
        for byte in request {
            stream.write_all(&[*byte]).await.unwrap();
            tokio::task::yield_now().await;
        }
        WireAnswer::by(&mut stream).await
    }

    async fn end(self) {
        let health = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        assert_eq!(self.send(health).await.status, 200, "the server is well afterwards");
        self.stop.cancel();
        for serving in self.serving {
            timeout(PATIENCE, serving).await.unwrap().unwrap().unwrap();
        }
        self.api.end().await;
    }
}

/// An answer as it came over the wire.
#[derive(Debug)]
struct WireAnswer {
    status: u16,
    replayed: bool,
    body: Value,
}

impl WireAnswer {
    async fn by(stream: &mut TcpStream) -> Self {
        let mut bytes = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("an answer comes in time").unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let head = head.to_ascii_lowercase();
        Self {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            replayed: head.contains("idempotency-replayed: true"),
            body: serde_json::from_str(body).unwrap_or(Value::Null),
        }
    }
}

/// A request as bytes.
fn bytes(path: &str, key: &str, headers: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let length = body.len();
    format!(
        "POST /api/v1{path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n{headers}\
         content-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

/// A kind of request that must have its effect once.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Start,
    Signal,
    Vote,
    Complete,
}

const KINDS: [Kind; 4] = [Kind::Start, Kind::Signal, Kind::Vote, Kind::Complete];

/// One request of a kind, and what it is about.
struct Case {
    kind: Kind,
    request: Vec<u8>,
    /// The subject of the run that is started, or the run that the request is about.
    about: String,
}

impl Case {
    /// All cases of a kind have requests of the same length: numbers have five digits.
    async fn new(wire: &Wire, kind: Kind, number: usize) -> Self {
        let api = &wire.api;
        let name = format!("{kind:?}-{number:05}");
        let keyed = format!("idempotency-key: {name}\r\nprefer: wait=20\r\n");
        let (request, about) = match kind {
            Kind::Start => {
                let body = json!({ "plan": plan(json!([task("a")])), "subject": name, "on_conflict": "queue" });
                (bytes("/runs", &api.key, &keyed, &body), name)
            }
            Kind::Signal => {
                // The second wait shows whether one signal was heard twice.
                let wait = |key: &str| json!({ "key": key, "kind": "wait", "signal": { "type": "go" } });
                let run = api.start(json!([wait("one"), wait("two")])).await;
                (bytes(&format!("/runs/{run}/signals"), &api.key, &keyed, &json!({ "type": "go" })), run)
            }
            Kind::Vote => {
                let run = api.post("/runs", json!({ "plan": gate(2, json!([])) })).await.text("run_id");
                let listed = api.get(&format!("/approvals?run={run}")).await.ok();
                let vote = json!({ "approve": true, "digest": listed["approvals"][0]["digest"] });
                (bytes(&format!("/runs/{run}/approve"), &wire.voter, "", &vote), run)
            }
            Kind::Complete => {
                let run = api.start(json!([task("a"), task("b")])).await;
                let session = api.register().await;
                let assignment = api.poll(&session).await;
                assert_eq!(assignment["run"], json!(run), "the others have workers of their own");
                let mut report = attempt(&assignment);
                report["outcome"] = completed(json!("done"));
                (bytes(&format!("/agent/{session}/complete-step"), &api.key, "", &report), run)
            }
        };
        Self { kind, request, about }
    }

    /// Looks at what a request is answered that was sent before, in part or as a whole.
    fn check(&self, said: &WireAnswer, sent_before: bool, what: &str) {
        match self.kind {
            Kind::Start | Kind::Signal => {
                assert_eq!(said.status, 201, "{what}: {said:?}");
                assert!(sent_before || !said.replayed, "{what}: {said:?}");
            }
            // The vote may count already, and a voter who repeats it is told where the approval stands.
            Kind::Vote => {
                assert_eq!(said.status, 200, "{what}: {said:?}");
                assert_eq!(said.body["votes"].as_array().unwrap().len(), 1, "{what}: {said:?}");
            }
            Kind::Complete => {
                assert_eq!(said.status, 200, "{what}: {said:?}");
                assert!(sent_before || said.body["recorded"] == true, "{what}: {said:?}");
            }
        }
    }

    /// The effect has happened, once.
    async fn happened_once(&self, wire: &Wire, what: &str) {
        let (api, about) = (&wire.api, &self.about);
        match self.kind {
            Kind::Start => {
                let runs = api.get(&format!("/runs?subject={about}")).await.ok();
                assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{what}: {runs}");
            }
            Kind::Signal => {
                let steps = api.get(&format!("/runs/{about}/steps")).await.ok();
                let states: Vec<_> = (0..2).map(|step| steps["steps"][step]["state"].clone()).collect();
                assert_eq!(states, ["succeeded", "waiting_signal"], "{what}");
            }
            Kind::Vote => {
                let listed = api.get(&format!("/approvals?run={about}")).await.ok();
                let approval = &listed["approvals"][0];
                assert_eq!(approval["votes"].as_array().unwrap().len(), 1, "{what}: {approval}");
                assert_eq!(approval["state"], "requested", "{what}");
            }
            Kind::Complete => {
                let events = api.get(&format!("/runs/{about}/events")).await.ok();
                let events = events["events"].as_array().unwrap();
                let ended = events.iter().filter(|event| event.to_string().contains("execution.step.completed"));
                assert_eq!(ended.count(), 1, "{what}: {events:?}");
            }
        }
        self.clear(wire).await;
    }

    /// How long the requests of its kind are. It is not sent, and what was prepared for it goes.
    async fn length(self, wire: &Wire) -> usize {
        if !matches!(self.kind, Kind::Start) {
            self.clear(wire).await;
        }
        self.request.len()
    }

    /// What is left of the run does not get in the way of the next one.
    async fn clear(&self, wire: &Wire) {
        let api = &wire.api;
        let run = match self.kind {
            Kind::Start => {
                let runs = api.get(&format!("/runs?subject={}", self.about)).await.ok();
                runs["runs"][0]["run_id"].as_str().unwrap().to_owned()
            }
            _ => self.about.clone(),
        };
        api.post(&format!("/runs/{run}/cancel"), json!({ "reason": "looked at" })).await.ok();
    }
}

/// Cuts requests of a kind behind every `step`-th byte and sends them again.
async fn cut_everywhere(wire: &Wire, kind: Kind, step: usize) {
    let length = Case::new(wire, kind, 0).await.length(wire).await;
    let ends = (0..length).step_by(step).chain([length - 1, length]);
    for (number, end) in (1..).zip(ends) {
        let case = Case::new(wire, kind, number).await;
        assert_eq!(case.request.len(), length, "{kind:?}");
        let reset = number % 2 == 0;
        wire.cut(&case.request[..end], reset).await;
        let what = format!("{kind:?}, cut after {end} of {length} bytes, reset: {reset}");
        let said = wire.send(&case.request).await;
        case.check(&said, end == length, &what);
        let again = wire.send(&case.request).await;
        case.check(&again, true, &what);
        case.happened_once(wire, &what).await;
    }
}

/// At every byte.
async fn cut_at_every_byte(kind: Kind) {
    let wire = Wire::new(Api::new().await).await;
    cut_everywhere(&wire, kind, 1).await;
    wire.end().await;
}

#[tokio::test]
async fn a_start_cut_at_any_byte_starts_one_run() {
    cut_at_every_byte(Kind::Start).await;
}

#[tokio::test]
async fn a_signal_cut_at_any_byte_is_heard_once() {
    cut_at_every_byte(Kind::Signal).await;
}

#[tokio::test]
async fn a_vote_cut_at_any_byte_counts_once() {
    cut_at_every_byte(Kind::Vote).await;
}

#[tokio::test]
async fn a_report_cut_at_any_byte_is_recorded_once() {
    cut_at_every_byte(Kind::Complete).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_cut_at_any_byte_has_its_effect_once_on_postgres() {
    let wire = Wire::new(Api::on_postgres("cut").await).await;
    for kind in KINDS {
        cut_everywhere(&wire, kind, 37).await;
    }
    wire.end().await;
}

/// The same bytes on several connections at the same time.
async fn at_once(wire: &Wire, rounds: usize) {
    for kind in KINDS {
        for round in 0..rounds {
            let case = Case::new(wire, kind, round).await;
            let what = format!("{kind:?}, several at once, round {round}");
            let said = futures::future::join_all((0..3).map(|_| wire.send(&case.request))).await;
            for said in &said {
                case.check(said, true, &what);
            }
            let firsts = said.iter().filter(|said| match kind {
                Kind::Start | Kind::Signal => !said.replayed,
                Kind::Vote => said.status == 200,
                Kind::Complete => said.body["recorded"] == true,
            });
            // A vote's answer does not tell whether it was the first to say so.
            let expected = if matches!(kind, Kind::Vote) { said.len() } else { 1 };
            assert_eq!(firsts.count(), expected, "{what}: {said:?}");
            case.happened_once(wire, &what).await;
        }
    }
}

#[tokio::test]
async fn the_same_request_several_times_at_once_has_its_effect_once() {
    let wire = Wire::new(Api::new().await).await;
    at_once(&wire, 30).await;
    wire.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_request_several_times_at_once_has_its_effect_once_on_postgres() {
    let wire = Wire::new(Api::on_postgres("at_once").await).await;
    at_once(&wire, 20).await;
    wire.end().await;
}

/// Slow senders are heard out, and those who take too long over their headers are not; either way nothing happens twice.
#[tokio::test]
async fn a_request_that_dribbles_in_has_its_effect_once() {
    let wire = Wire::new(Api::new().await).await;
    for kind in KINDS {
        for number in 0..3 {
            let case = Case::new(&wire, kind, number).await;
            let what = format!("{kind:?}, byte by byte");
            // One that never gets through its headers, beside it.
            let mut silent = TcpStream::connect(wire.impatient).await.unwrap();
            silent.write_all(&case.request[..case.request.len() / 4]).await.unwrap();
            case.check(&wire.dribble(&case.request).await, false, &what);
            case.check(&wire.dribble(&case.request).await, true, &what);
            let mut rest = Vec::new();
            let closed = timeout(PATIENCE, silent.read_to_end(&mut rest)).await;
            assert!(closed.is_ok(), "{what}: a head that does not end is not waited for");
            case.happened_once(&wire, &what).await;
        }
    }
    wire.end().await;
}
