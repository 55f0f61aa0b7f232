//! What was taken back: credentials of open streams, and tenants that are disabled.

use axum::body::Body;
use axum::http::{Request, header};
use futures::StreamExt as _;
use interlock_core::json::Json;
use interlock_engine::commands::announce::Origin;
use interlock_engine::commands::signal::SignalRequest;
use interlock_engine::{EngineError, StartWorkflow};
use interlock_protocol::live::{close, limits};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::connections::{listen_on, pass};
use crate::harness::{Api, task};
use crate::schedules::apply;
use crate::webhooks::{COUNT, endpoint, github, pull_request};

const QUICK: &str = "name: quick\non: { signal: { type: disk.full } }\nsteps:\n  - id: a\n    transform: seen\n";

/// What a stream says until it closes.
async fn listen(api: &Api, path: &str, meanwhile: impl AsyncFnOnce()) -> String {
    let request = Request::get(path)
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, format!("Bearer {}", api.key));
    let response = api.raw(request.body(Body::empty()).unwrap()).await;
    assert_eq!(response.status(), 200);
    let mut chunks = response.into_body().into_data_stream();
    let first = chunks.next().await.unwrap().unwrap();
    assert!(first.starts_with(b"retry:"));
    meanwhile().await;
    let mut said = String::new();
    let rest = async {
        while let Some(chunk) = chunks.next().await {
            said.push_str(&String::from_utf8_lossy(&chunk.unwrap()));
        }
    };
    tokio::time::timeout(Duration::from_mins(1), rest).await.expect("the stream ends within a few heartbeats");
    said
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_its_key_is_revoked() {
    let api = Api::new().await;
    let made = api.post("/keys", json!({ "name": "watching", "roles": ["viewer"] })).await.ok();
    let (key, text) = (made["key"].as_str().unwrap(), made["text"].as_str().unwrap());
    let watcher = api.with_key(text);
    let said = listen(&watcher, "/api/v1/events/stream", async || {
        api.send("DELETE", &format!("/api/v1/keys/{key}"), json!({})).await.ok();
    })
    .await;
    assert!(said.ends_with("\n\n") && said.contains("event: stream.refused"), "{said}");
    assert!(said.contains("UNAUTHORIZED"), "{said}");
    api.end().await;
}

/// A key that may only read, and its id.
async fn watching(api: &Api) -> (Api, String) {
    let made = api.post("/keys", json!({ "name": "watching", "roles": ["viewer"] })).await.ok();
    (api.with_key(made["text"].as_str().unwrap()), made["key"].as_str().unwrap().to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_output_ends_when_its_key_is_revoked() {
    let api = Api::new().await;
    let (watcher, key) = watching(&api).await;
    let run = api.start(json!([task("a")])).await;
    let said = listen(&watcher, &format!("/api/v1/runs/{run}/steps/a/output/stream"), async || {
        revoke(&api, &key).await;
    })
    .await;
    assert!(said.ends_with("\n\n") && said.contains("event: stream.refused"), "{said}");
    assert!(said.contains("UNAUTHORIZED"), "{said}");
    api.end().await;
}

/// A token was made of a credential, and opens nothing once that is revoked.
#[tokio::test]
async fn a_token_for_sockets_is_over_with_its_key() {
    let api = Api::new().await;
    let server = listen_on(api.engine.clone(), api.options(), api.database.clone()).await;
    let (watcher, key) = watching(&api).await;
    let token = watcher.post("/auth/ws-token", json!({})).await.text("token");
    let opened = async || {
        let request = format!("ws://{}/ws/feed?token={token}", server.address).into_client_request().unwrap();
        match client_async(request, server.connect().await).await {
            Ok(_) => 101,
            Err(tokio_tungstenite::tungstenite::Error::Http(response)) => response.status().as_u16(),
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(opened().await, 101);
    revoke(&api, &key).await;
    assert_eq!(opened().await, 401);
    server.end().await;
}

#[tokio::test]
async fn a_socket_closes_when_its_key_is_revoked() {
    let api = Api::new().await;
    let run = api.start(json!([task("a")])).await;
    let server = listen_on(api.engine.clone(), api.options(), api.database.clone()).await;
    let heartbeat = limits::HEARTBEAT.as_duration() + Duration::from_secs(1);
    for path in [format!("/ws/runs/{run}"), format!("/ws/executions/{run}"), "/ws/feed?last_event_id=0".to_owned()] {
        let (watcher, key) = watching(&api).await;
        let mut request = format!("ws://{}{path}", server.address).into_client_request().unwrap();
        request.headers_mut().insert(header::AUTHORIZATION, format!("Bearer {}", watcher.key).parse().unwrap());
        let mut socket = client_async(request, server.connect().await).await.unwrap().0;
        // While the key counts, a look at it ends nothing.
        assert_eq!(message(&mut socket).await["type"], "subscribed", "{path}");
        pass(heartbeat).await;
        while message(&mut socket).await["type"] != "heartbeat" {}
        revoke(&api, &key).await;
        pass(heartbeat).await;
        let refused = loop {
            let said = message(&mut socket).await;
            if said["type"] == "refused" {
                break said;
            }
        };
        assert_eq!(refused["code"], "UNAUTHORIZED", "{path}");
        let closed = socket.next().await.unwrap().unwrap();
        let Message::Close(Some(frame)) = closed else { panic!("{path}: {closed:?}") };
        assert_eq!(u16::from(frame.code), close::UNAUTHORIZED, "{path}");
    }
    server.end().await;
}

/// The next message of a socket.
pub async fn message(socket: &mut WebSocketStream<TcpStream>) -> Value {
    loop {
        let heard = tokio::time::timeout(Duration::from_mins(1), socket.next()).await.expect("something comes in time");
        if let Message::Text(text) = heard.expect("it goes on").unwrap() {
            return serde_json::from_str(&text).unwrap();
        }
    }
}

/// A worker with a key of its own: the key's id, and the worker's session.
async fn worker(api: &Api) -> (Api, String, String) {
    let made = api.post("/keys", json!({ "name": "working", "roles": ["worker"] })).await.ok();
    let worker = api.with_key(made["text"].as_str().unwrap());
    let session = worker.register().await;
    (worker, made["key"].as_str().unwrap().to_owned(), session)
}

async fn revoke(api: &Api, key: &str) {
    api.send("DELETE", &format!("/api/v1/keys/{key}"), json!({})).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_waits_is_handed_nothing_once_its_key_is_revoked() {
    let api = Api::new().await;
    let (revoked, key, session) = worker(&api).await;
    let waiting = revoked.post("/agent/poll", json!({ "session": session, "max": 1, "wait_ms": 30_000 }));
    let meanwhile = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        revoke(&api, &key).await;
        api.start(json!([task("a")])).await
    };
    let (answer, run) = tokio::join!(waiting, meanwhile);
    assert_eq!(answer.problem(), (401, "UNAUTHORIZED"));
    // A worker whose key still counts gets the step, at once.
    let (other, _, session) = worker(&api).await;
    let assignment = other.poll(&session).await;
    assert_eq!(assignment["run"], run, "{assignment}");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_waits_ends_soon_after_its_key_is_revoked() {
    let api = Api::new().await;
    let (revoked, key, session) = worker(&api).await;
    let began = tokio::time::Instant::now();
    let waiting = revoked.post("/agent/poll", json!({ "session": session, "max": 1, "wait_ms": 30_000 }));
    let (answer, ()) = tokio::join!(waiting, async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        revoke(&api, &key).await;
    });
    assert_eq!(answer.problem(), (401, "UNAUTHORIZED"));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_its_tenant_is_disabled() {
    let api = Api::new().await;
    let other = api.with_key(&api.other_key);
    let said = listen(&other, "/api/v1/events/stream", async || disable(&api).await).await;
    assert!(said.contains("event: stream.refused"), "{said}");
    api.end().await;
}

/// Disables the other tenant, so that the first one can still make requests.
async fn disable(api: &Api) {
    let mut tenant = api.engine.store().tenant(api.other_tenant).await.unwrap().unwrap();
    tenant.disabled_at = Some(api.engine.now());
    api.engine.tenants().put(tenant).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nothing_starts_for_a_disabled_tenant() {
    let api = Api::new().await;
    let other = api.with_key(&api.other_key);
    let tenant = api.other_tenant;
    apply(&api.engine, tenant, QUICK).await;
    apply(&api.engine, tenant, COUNT).await;
    let path = endpoint(&other, "github").await;
    let new = json!({ "name": "minutely", "workflow": "quick", "cron": "* * * * *" });
    let schedule: interlock_core::ids::ScheduleId =
        other.post("/schedules", new).await.text("schedule_id").parse().unwrap();
    assert_eq!(github(&api, &path, "d-1", &pull_request(1, "opened", "a")).await.status, 202);
    let runs = async || {
        let page = interlock_store::Page { limit: 100, after: None };
        api.engine.store().list_runs(tenant, &interlock_store::RunFilter::default(), page).await.unwrap().len()
    };
    let before = runs().await;
    assert!(before > 0);
    disable(&api).await;

    let start = StartWorkflow::new(tenant, "quick".to_owned(), Json::trusted("{}"));
    assert!(matches!(api.engine.runs().start_workflow(start).await, Err(EngineError::TenantDisabled)));
    let turned_away = github(&api, &path, "d-2", &pull_request(2, "opened", "b")).await;
    assert_eq!(turned_away.problem(), (401, "WEBHOOK_SIGNATURE_INVALID"), "as if the address did not exist");
    let signal = SignalRequest {
        tenant,
        signal_type: "disk.full".to_owned(),
        key: "host-1".to_owned(),
        payload: Json::trusted("{}"),
        source_id: None,
        broadcast: false,
        run: None,
    };
    let announced = api.engine.signals().announce(signal, Origin::default()).await.unwrap();
    assert!(announced.runs.is_empty());
    assert_eq!(announced.skipped[0].code, "TENANT_DISABLED");
    // Slots pass, and nothing runs.
    tokio::time::sleep(Duration::from_mins(3)).await;
    assert_eq!(runs().await, before);
    let slots = api.engine.store().slots(tenant, schedule, 10).await.unwrap();
    let skipped: Vec<_> =
        slots.iter().filter(|slot| slot.note.as_deref().is_some_and(|note| note.contains("disabled"))).collect();
    assert!(!skipped.is_empty(), "{slots:?}");
    api.end().await;
}
