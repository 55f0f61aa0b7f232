//! Streams: what a socket's frames name, what its query and headers carry, and what comes back on it.

use axum::http::HeaderValue;
use futures::SinkExt as _;
use interlock_core::ids::{RunId, TenantId};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::neighbour;
use crate::harness::{attempt, completed};
use crate::live::{Harness, Sse, next};
use crate::set_up::{intent, outcome};

/// Everything that a socket says to its first frame, until it closes or has shown `max` messages.
async fn said(harness: &Harness, path: &str, frame: Value, max: usize) -> Vec<Value> {
    let mut socket = harness.stranger(path).await;
    socket.send(Message::text(frame.to_string())).await.unwrap();
    listen(&mut socket, max).await
}

async fn listen(socket: &mut WebSocketStream<TcpStream>, max: usize) -> Vec<Value> {
    let mut said = Vec::new();
    while said.len() < max {
        let Some(message) = next(socket).await else { break };
        said.push(message);
    }
    said
}

/// The same with the id taken out.
fn without(said: Vec<Value>, run: RunId) -> String {
    json!(said).to_string().replace(&run.to_string(), "RUN")
}

#[tokio::test]
async fn a_frame_opens_nothing_of_another_tenant() {
    let harness = Harness::new().await;
    let ours = harness.start(1).await;
    let theirs = harness.start_of(harness.other_tenant, 1).await;
    let nobodys = RunId::from_bytes([9; 16]);
    let subscribe = |token: &str| json!({ "type": "subscribe", "token": token, "last_event_id": "0" });
    for socket in ["runs", "executions"] {
        for (token, foreign) in [(&harness.key, theirs), (&harness.other_key, ours)] {
            let known = said(&harness, &format!("/ws/{socket}/{foreign}"), subscribe(token), 5).await;
            let unknown = said(&harness, &format!("/ws/{socket}/{nobodys}"), subscribe(token), 5).await;
            assert_eq!(known[0]["code"], "RUN_NOT_FOUND", "{known:?}");
            assert_eq!(without(known, foreign), without(unknown, nobodys));
        }
    }
    // A frame has no place for anything else: what it might name is not looked up.
    for run in [theirs, nobodys] {
        let mut frame = subscribe(&harness.key);
        frame["run"] = json!(run);
        let refused = said(&harness, &format!("/ws/runs/{ours}"), frame, 5).await;
        assert_eq!(refused[0]["code"], "REQUEST_INVALID", "{refused:?}");
    }
    harness.end().await;
}

/// A place in another tenant's feed is a place that no event has reached, wherever it stands in the request.
#[tokio::test]
async fn a_cursor_of_another_tenants_feed_is_ahead() {
    let harness = Harness::new().await;
    harness.start(1).await;
    for _ in 0..20 {
        harness.start_of(harness.other_tenant, 1).await;
    }
    let mut newest = 0;
    while newest < 20 {
        newest = harness.engine.store().last_cursor(harness.other_tenant).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut answers = Vec::new();
    for cursor in [newest, 999_999] {
        let frame = json!({ "type": "subscribe", "token": harness.key, "last_event_id": cursor.to_string() });
        let in_frame = said(&harness, "/ws/feed", frame, 5).await;
        let in_query = refused(&harness, &format!("/ws/feed?last_event_id={cursor}"), None).await;
        let in_header = refused(&harness, "/ws/feed", Some(cursor)).await;
        let mut events = Sse::open(&harness, "/api/v1/events/stream", cursor).await;
        answers.push((in_frame, in_query, in_header, events.status().await));
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0].0[0]["code"], "LIVE_CURSOR_AHEAD");
    assert_eq!((answers[0].1, answers[0].2), (409, 409));
    assert!(answers[0].3.contains("409"), "{}", answers[0].3);
    harness.end().await;
}

/// The status by which an upgrade is refused.
async fn refused(harness: &Harness, path: &str, last_event_id: Option<u64>) -> u16 {
    let stream = TcpStream::connect(harness.address).await.unwrap();
    let mut request = harness.request(path, Some(&harness.key));
    if let Some(cursor) = last_event_id {
        request.headers_mut().insert("last-event-id", HeaderValue::from(cursor));
    }
    match client_async(request, stream).await {
        Err(Error::Http(response)) => response.status().as_u16(),
        Err(other) => panic!("{other}"),
        Ok(_) => 101,
    }
}

/// A token in a later frame moves no stream over: it is refused, whose ever it is. And streams tell only of their own tenant.
#[tokio::test]
async fn a_stream_shows_its_own_tenant_only() {
    let harness = Harness::new().await;
    let mut ours = vec![harness.start(1).await];
    let subscribe =
        |token: &str| Message::text(json!({ "type": "subscribe", "token": token, "last_event_id": "0" }).to_string());
    for token in [&*harness.other_key, &*harness.key, "nonsense"] {
        let mut socket = harness.stranger("/ws/feed").await;
        socket.send(subscribe(&harness.key)).await.unwrap();
        socket.send(subscribe(token)).await.unwrap();
        let mut said = listen(&mut socket, usize::MAX).await;
        assert_eq!(said.pop().unwrap()["code"], "REQUEST_INVALID", "{token}");
        assert!(said.iter().all(|event| event["run_id"] == json!(ours[0])), "{said:?}");
    }
    let mut socket = harness.stranger("/ws/feed").await;
    socket.send(subscribe(&harness.key)).await.unwrap();
    let mut events = Sse::open(&harness, "/api/v1/events/stream", 0).await;
    for _ in 0..5 {
        harness.start_of(harness.other_tenant, 1).await;
        ours.push(harness.start(1).await);
    }
    let wanted: Vec<Value> = ours.iter().map(|run| json!(run)).collect();
    let mut seen = Vec::new();
    while !wanted.iter().all(|run| seen.contains(run)) {
        let event = next(&mut socket).await.unwrap();
        assert!(wanted.contains(&event["run_id"]), "{event}");
        seen.push(event["run_id"].clone());
    }
    let mut seen = Vec::new();
    while !wanted.iter().all(|run| seen.contains(run)) {
        let (_, event) = events.next().await.unwrap();
        if event["run_id"].is_string() {
            assert!(wanted.contains(&event["run_id"]), "{event}");
            seen.push(event["run_id"].clone());
        }
    }
    harness.end().await;
}

/// A worker that makes its calls over a channel, and holds a step whose effect is under way.
struct ChannelWorker {
    socket: WebSocketStream<TcpStream>,
    session: String,
    /// The attempt of its step.
    attempt: Value,
    receipt: Value,
}

impl ChannelWorker {
    async fn new(harness: &Harness, tenant: TenantId, key: &str) -> Self {
        let stream = TcpStream::connect(harness.address).await.unwrap();
        let socket = client_async(harness.request("/api/v1/agent/channel", Some(key)), stream).await.unwrap().0;
        let mut worker = Self { socket, session: String::new(), attempt: Value::Null, receipt: Value::Null };
        let hello = json!({ "worker": "w", "queues": ["default"], "slots": 4, "capabilities": ["effects"] });
        let registered = worker.call("register", hello).await;
        worker.session = registered["body"]["session"].as_str().unwrap_or_else(|| panic!("{registered}")).to_owned();
        harness.start_of(tenant, 1).await;
        let poll = json!({ "session": worker.session, "max": 1, "wait_ms": 30_000 });
        let polled = worker.call("poll", poll).await;
        let assignment = &polled["body"]["assignments"][0];
        assert!(assignment.is_object(), "{polled}");
        worker.attempt = attempt(assignment);
        let permitted = worker.call(&format!("{}/effects", worker.session), intent(assignment, 0, "keyed")).await;
        assert_eq!(permitted["body"]["answer"], "perform", "{permitted}");
        worker.receipt = permitted["body"]["receipt"].clone();
        worker
    }

    async fn call(&mut self, call: &str, body: Value) -> Value {
        let frame = json!({ "id": 7, "call": format!("/api/v1/agent/{call}"), "body": body });
        self.socket.send(Message::text(frame.to_string())).await.unwrap();
        next(&mut self.socket).await.unwrap_or_else(|| panic!("{call} closes the channel"))
    }
}

/// Every call of a session, about this attempt and this receipt.
fn calls(session: &str, at: &Value, receipt: &Value) -> Vec<(String, Value)> {
    let run = json!({ "tenant": at["tenant"], "run": at["run"] });
    let mut held = at.clone();
    held.as_object_mut().unwrap().remove("epoch");
    let with = |more: Value| {
        let mut body = at.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let answer = json!({ "status": "acked" });
    let of_run =
        json!({ "tenant": at["tenant"], "run": at["run"], "epoch": at["epoch"], "number": 1, "answer": answer });
    let chunk = json!({ "seq": 1, "stream": "stdout", "text": "x" });
    vec![
        ("heartbeat".to_owned(), json!({ "session": session, "held": [held], "keeps": [run] })),
        (format!("{session}/assignments"), of_run),
        (format!("{session}/output"), with(json!({ "chunks": [chunk] }))),
        (format!("{session}/effects"), intent(at, 1, "keyed")),
        (format!("{session}/outcomes"), outcome(at, receipt, true, json!("forged"))),
        (format!("{session}/complete-step"), with(json!({ "outcome": completed(json!("forged")) }))),
    ]
}

/// A call in a frame is what its request would be: what it names of another tenant does not exist.
#[tokio::test]
async fn a_workers_frame_reaches_nothing_of_another_tenant() {
    let harness = Harness::new().await;
    let mut ours = ChannelWorker::new(&harness, harness.tenant, &harness.key).await;
    let mut theirs = ChannelWorker::new(&harness, harness.other_tenant, &harness.other_key).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let with = |at: &Value, field: &str, id: &str| {
        let mut at = at.clone();
        at[field] = json!(id);
        at
    };
    let mut tried = 0;
    for place in ["session", "tenant", "run", "attempt"] {
        let known = match place {
            "session" => theirs.session.clone(),
            "tenant" => text(&theirs.attempt["tenant"]),
            _ => text(&theirs.attempt["run"]),
        };
        let mut answers = Vec::new();
        for id in [known.clone(), neighbour(&known)] {
            let asked = match place {
                "session" => {
                    let mut all = calls(&id, &ours.attempt, &ours.receipt);
                    all.push(("poll".to_owned(), json!({ "session": id, "max": 1, "wait_ms": 0 })));
                    all.push(("unregister".to_owned(), json!({ "session": id })));
                    all
                }
                "attempt" => calls(&ours.session, &with(&theirs.attempt, "run", &id), &theirs.receipt),
                field => calls(&ours.session, &with(&ours.attempt, field, &id), &theirs.receipt),
            };
            for (call, body) in asked {
                let answer = ours.call(&call, body).await;
                assert!(answer["status"].as_u64() < Some(500), "{call}: {answer}");
                let is_refused = answer["status"].as_u64() >= Some(400);
                let does_nothing =
                    answer["body"]["known"] == json!(false) || answer["body"]["stop"][0]["run"].is_string();
                assert!(is_refused || does_nothing, "{place} in {call}: {answer}");
                answers.push((call.replace(&id, "ID"), answer.to_string().replace(&id, "ID")));
            }
        }
        let (of_theirs, of_nobody) = answers.split_at(answers.len() / 2);
        assert_eq!(of_theirs, of_nobody, "{place}");
        tried += of_theirs.len();
    }
    assert_eq!(tried, 26);

    // Their session, their attempt and their effect are as they were.
    let session = theirs.session.clone();
    let at = theirs.attempt.clone();
    let mut held = at.clone();
    held.as_object_mut().unwrap().remove("epoch");
    let beat = theirs.call("heartbeat", json!({ "session": session, "held": [held] })).await;
    assert_eq!((&beat["body"]["known"], &beat["body"]["stop"]), (&json!(true), &json!([])), "{beat}");
    let told = outcome(&at, &theirs.receipt, true, json!("own"));
    assert_eq!(theirs.call(&format!("{session}/outcomes"), told).await["status"], 204);
    let again = theirs.call(&format!("{session}/effects"), intent(&at, 0, "keyed")).await;
    assert_eq!(again["body"]["response"], "own", "{again}");
    let mut report = at;
    report["outcome"] = completed(json!("own"));
    let done = theirs.call(&format!("{session}/complete-step"), report).await;
    assert_eq!(done["status"], 200, "{done}");
    harness.end().await;
}
