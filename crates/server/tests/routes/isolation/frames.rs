//! Streams: what a socket's frames name, what its query and headers carry, and what comes back on it.

use axum::http::HeaderValue;
use futures::SinkExt as _;
use interlock_core::ids::RunId;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::live::{Harness, Sse, next};

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

/// Another tenant's token in a later frame moves no stream over, and streams tell only of their own tenant.
#[tokio::test]
async fn a_stream_shows_its_own_tenant_only() {
    let harness = Harness::new().await;
    let mut ours = vec![harness.start(1).await];
    let mut sockets = Vec::new();
    for token in [&*harness.other_key, "nonsense"] {
        let mut socket = harness.stranger("/ws/feed").await;
        for token in [&*harness.key, token] {
            let frame = json!({ "type": "subscribe", "token": token, "last_event_id": "0" });
            socket.send(Message::text(frame.to_string())).await.unwrap();
        }
        sockets.push(socket);
    }
    let mut events = Sse::open(&harness, "/api/v1/events/stream", 0).await;
    for _ in 0..5 {
        harness.start_of(harness.other_tenant, 1).await;
        ours.push(harness.start(1).await);
    }
    let wanted: Vec<Value> = ours.iter().map(|run| json!(run)).collect();
    for socket in &mut sockets {
        let mut seen = Vec::new();
        while !wanted.iter().all(|run| seen.contains(run)) {
            let event = next(socket).await.unwrap();
            assert!(wanted.contains(&event["run_id"]), "{event}");
            seen.push(event["run_id"].clone());
        }
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
