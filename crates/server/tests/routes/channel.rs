//! A worker's calls over one WebSocket: each is what a request of its own would be.

use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use interlock_core::ids::{KeyId, TenantId};
use interlock_core::json::Json;
use interlock_core::plan::{Plan, StepSpec};
use interlock_core::tenant::identity::Role;
use interlock_engine::{EncodedPlan, StartRun};
use interlock_protocol::live::close;
use interlock_server::identity::{NewKey, create_key};
use interlock_server::{ServerOptions, ServerSecret};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::connections::{Listening, listen_with};
use crate::harness::{attempt, completed};

const PATIENCE: Duration = Duration::from_mins(1);

struct ChannelServer {
    server: Listening,
    tenant: TenantId,
    secret: ServerSecret,
}

type Socket = WebSocketStream<TcpStream>;

impl ChannelServer {
    async fn new() -> Self {
        let mut made = None;
        let server = listen_with(|tenant| {
            let options = ServerOptions::new(tenant);
            made = Some((tenant, options.secret.clone()));
            options
        })
        .await;
        let (tenant, secret) = made.unwrap();
        Self { server, tenant, secret }
    }

    async fn key(&self, role: Role) -> (KeyId, String) {
        let new = NewKey::new(self.tenant, "one", [role].into_iter().collect());
        let (row, text) = create_key(&self.server.engine, &self.secret, new).await.unwrap();
        (row.id, text.reveal().to_owned())
    }

    async fn open(&self, key: &str) -> Result<Socket, Error> {
        let address = self.server.address;
        let mut request = format!("ws://{address}/api/v1/agent/channel").into_client_request()?;
        request.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
        let stream = TcpStream::connect(address).await.unwrap();
        client_async(request, stream).await.map(|(socket, _)| socket)
    }

    async fn worker(&self) -> Socket {
        let (_, key) = self.key(Role::Worker).await;
        self.open(&key).await.unwrap()
    }
}

async fn send(socket: &mut Socket, id: u64, call: &str, body: Value) {
    let frame = json!({ "id": id, "call": format!("/api/v1/agent/{call}"), "body": body });
    socket.send(Message::text(frame.to_string())).await.unwrap();
}

async fn answer(socket: &mut Socket) -> Value {
    let message = timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap();
    serde_json::from_str(message.to_text().unwrap()).unwrap()
}

async fn closed_with(socket: &mut Socket) -> u16 {
    let closing = async {
        loop {
            match socket.next().await {
                Some(Ok(Message::Close(frame))) => return frame.map_or(1005, |frame| frame.code.into()),
                Some(Ok(_)) => {}
                Some(Err(error)) => panic!("{error}"),
                None => return 1006,
            }
        }
    };
    timeout(PATIENCE, closing).await.unwrap()
}

fn hello() -> Value {
    json!({ "worker": "w", "queues": ["default"], "slots": 4 })
}

#[tokio::test]
async fn calls_are_answered_by_their_numbers() {
    let served = ChannelServer::new().await;
    let mut socket = served.worker().await;
    send(&mut socket, 1, "register", hello()).await;
    let registered = answer(&mut socket).await;
    assert_eq!((registered["id"].as_u64(), registered["status"].as_u64()), (Some(1), Some(200)), "{registered}");
    let session = &registered["body"]["session"];
    // The poll waits for work, and what comes after it does not wait for it.
    send(&mut socket, 2, "poll", json!({ "session": session, "max": 1, "wait_ms": 60_000 })).await;
    send(&mut socket, 3, "heartbeat", json!({ "session": session, "held": [] })).await;
    let first = answer(&mut socket).await;
    assert_eq!((first["id"].as_u64(), first["status"].as_u64()), (Some(3), Some(200)), "{first}");
    let plan = EncodedPlan::new(Plan::new("w", vec![StepSpec::task("a", "count")])).unwrap();
    let started = served.server.engine.runs().start(StartRun::new(served.tenant, plan, Json::null())).await.unwrap();
    let second = answer(&mut socket).await;
    let given = (second["id"].as_u64(), second["body"]["assignments"][0]["run"].as_str());
    assert_eq!(given, (Some(2), Some(started.run.to_string().as_str())), "{second}");
    send(&mut socket, 4, "unregister", json!({ "session": session })).await;
    assert_eq!(answer(&mut socket).await, json!({ "id": 4, "status": 204 }));
    served.server.end().await;
}

#[tokio::test]
async fn another_report_than_the_first_is_refused_there_too() {
    let served = ChannelServer::new().await;
    let mut socket = served.worker().await;
    send(&mut socket, 1, "register", hello()).await;
    let session = answer(&mut socket).await["body"]["session"].as_str().unwrap().to_owned();
    let plan = EncodedPlan::new(Plan::new("w", vec![StepSpec::task("a", "count")])).unwrap();
    served.server.engine.runs().start(StartRun::new(served.tenant, plan, Json::null())).await.unwrap();
    send(&mut socket, 2, "poll", json!({ "session": session, "max": 1, "wait_ms": 60_000 })).await;
    let claimed = answer(&mut socket).await["body"]["assignments"][0].clone();
    let call = format!("{session}/complete-step");
    for (id, output, status) in [(3, 1, 200), (4, 1, 200), (5, 2, 409)] {
        let mut report = attempt(&claimed);
        report["outcome"] = completed(json!(output));
        send(&mut socket, id, &call, report).await;
        let said = answer(&mut socket).await;
        assert_eq!((said["id"].as_u64(), said["status"].as_u64()), (Some(id), Some(status)), "{said}");
        if status == 200 {
            assert_eq!(said["body"]["recorded"], json!(id == 3), "{said}");
        } else {
            assert_eq!(said["body"]["code"], "STEP_STALE_ATTEMPT", "{said}");
        }
    }
    served.server.end().await;
}

#[tokio::test]
async fn a_frame_may_have_the_name_of_its_call_and_a_trace() {
    let served = ChannelServer::new().await;
    let mut socket = served.worker().await;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let mut sessions = Vec::new();
    for (id, key) in [(1, "a-name"), (2, "a-name"), (3, "no header\u{7}")] {
        let call = "/api/v1/agent/register";
        let frame = json!({ "id": id, "call": call, "idempotency_key": key, "traceparent": parent, "body": hello() });
        socket.send(Message::text(frame.to_string())).await.unwrap();
        let registered = answer(&mut socket).await;
        assert_eq!((registered["id"].as_u64(), registered["status"].as_u64()), (Some(id), Some(200)), "{registered}");
        sessions.push(registered["body"]["session"].clone());
    }
    assert!(sessions[0] == sessions[1] && sessions[1] != sessions[2], "one name is one call: {sessions:?}");
    served.server.end().await;
}

/// Whatever a request would be refused for, a frame is.
#[tokio::test]
async fn what_a_request_may_not_a_frame_may_not() {
    let served = ChannelServer::new().await;
    let mut socket = served.worker().await;
    for (call, body, status, code) in [
        ("../runs", json!({}), 404, "ROUTE_NOT_FOUND"),
        ("channel", json!({}), 404, "ROUTE_NOT_FOUND"),
        ("enrol", json!({}), 404, "ROUTE_NOT_FOUND"),
        ("poll?wait=1", json!({}), 400, "REQUEST_INVALID"),
        ("register", json!({ "worker": "w" }), 400, "REQUEST_INVALID"),
        ("register", json!([]), 400, "REQUEST_INVALID"),
        ("poll", json!({ "session": "ses_0190a1b2c3d4e5f60718293a4b5c6d7e", "max": 1 }), 410, "SESSION_GONE"),
        ("no address\u{7}", json!({}), 404, "ROUTE_NOT_FOUND"),
    ] {
        send(&mut socket, 7, call, body).await;
        let answer = answer(&mut socket).await;
        assert_eq!(
            (answer["status"].as_u64(), answer["body"]["code"].as_str()),
            (Some(status), Some(code)),
            "{call}: {answer}"
        );
    }
    served.server.end().await;
}

#[tokio::test]
async fn only_workers_open_one() {
    let served = ChannelServer::new().await;
    for (role, status) in [(Role::Viewer, 403), (Role::Operator, 403), (Role::Admin, 403)] {
        let (_, key) = served.key(role).await;
        let Err(Error::Http(refused)) = served.open(&key).await else { panic!("{role:?} was let in") };
        assert_eq!(refused.status(), status, "{role:?}");
    }
    let Err(Error::Http(refused)) = served.open("ilk_nobody").await else { panic!("nobody was let in") };
    assert_eq!(refused.status(), 401);
    served.server.end().await;
}

#[tokio::test]
async fn a_revoked_key_gets_nothing_more_done() {
    let served = ChannelServer::new().await;
    let (id, key) = served.key(Role::Worker).await;
    let mut socket = served.open(&key).await.unwrap();
    send(&mut socket, 1, "register", hello()).await;
    assert_eq!(answer(&mut socket).await["status"], 200);
    let (_, admin) = served.key(Role::Admin).await;
    let url = format!("http://{}/api/v1/keys/{id}", served.server.address);
    let revoked = reqwest::Client::new().delete(url).bearer_auth(admin).send().await.unwrap();
    assert!(revoked.status().is_success(), "{}", revoked.status());
    send(&mut socket, 2, "register", hello()).await;
    let code: u16 = match timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap() {
        // The server has looked at the key before it has read the call.
        Message::Close(frame) => frame.map_or(1005, |frame| frame.code.into()),
        refused => {
            let refused: Value = serde_json::from_str(refused.to_text().unwrap()).unwrap();
            assert_eq!((refused["id"].as_u64(), refused["status"].as_u64()), (Some(2), Some(401)), "{refused}");
            closed_with(&mut socket).await
        }
    };
    assert_eq!(code, close::UNAUTHORIZED);
    served.server.end().await;
}

/// Even if no call comes that would be refused: a worker cannot hold a channel open with a revoked key.
#[tokio::test]
async fn the_channel_of_a_revoked_key_is_closed() {
    let served = ChannelServer::new().await;
    let (_, admin) = served.key(Role::Admin).await;
    for waits in [false, true] {
        let (id, key) = served.key(Role::Worker).await;
        let mut socket = served.open(&key).await.unwrap();
        send(&mut socket, 1, "register", hello()).await;
        let session = answer(&mut socket).await["body"]["session"].clone();
        if waits {
            send(&mut socket, 2, "poll", json!({ "session": session, "max": 1, "wait_ms": 30_000 })).await;
        }
        let url = format!("http://{}/api/v1/keys/{id}", served.server.address);
        let revoked = reqwest::Client::new().delete(url).bearer_auth(&admin).send().await.unwrap();
        assert!(revoked.status().is_success(), "{}", revoked.status());
        if waits {
            let refused = answer(&mut socket).await;
            assert_eq!((refused["id"].as_u64(), refused["status"].as_u64()), (Some(2), Some(401)), "{refused}");
        }
        assert_eq!(closed_with(&mut socket).await, close::UNAUTHORIZED, "waits: {waits}");
    }
    served.server.end().await;
}

#[tokio::test]
async fn what_is_no_call_ends_the_channel() {
    let served = ChannelServer::new().await;
    for (frame, code) in [
        (Message::text("{"), close::REFUSED),
        (Message::text(r#"{"id":1,"call":"/api/v1/agent/poll"}"#), close::REFUSED),
        (Message::text(r#"{"id":-1,"call":"/api/v1/agent/poll","body":{}}"#), close::REFUSED),
        (Message::text(r#"{"id":1,"call":"/api/v1/agent/poll","body":{},"as":"admin"}"#), close::REFUSED),
        (Message::binary(b"{}".to_vec()), close::REFUSED),
        (Message::text("x".repeat((256 << 10) + 1)), close::TOO_LARGE),
    ] {
        let mut socket = served.worker().await;
        // A frame that is too long is refused before all of it is sent.
        let _ = socket.send(frame).await;
        assert_eq!(closed_with(&mut socket).await, code);
    }
    served.server.end().await;
}

/// A channel that stays open holds memory: a tenant has so many, and its other workers make requests.
#[tokio::test]
async fn a_tenant_has_so_many_channels() {
    let served = ChannelServer::new().await;
    let (_, key) = served.key(Role::Worker).await;
    let mut open = Vec::new();
    for _ in 0..interlock_server::limits::CHANNELS_PER_TENANT_MAX {
        open.push(served.open(&key).await.unwrap());
    }
    let Err(Error::Http(refused)) = served.open(&key).await else { panic!("one too many was let in") };
    assert_eq!(refused.status(), 503);
    drop(open.pop());
    let again = async {
        while served.open(&key).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, again).await.unwrap();
    served.server.end().await;
}

#[tokio::test]
async fn a_tenant_that_has_switched_them_off_has_none() {
    let served = ChannelServer::new().await;
    let (_, key) = served.key(Role::Worker).await;
    let mut open = served.open(&key).await.unwrap();
    let mut row = served.server.engine.store().tenant(served.tenant).await.unwrap().unwrap();
    row.settings.worker_channel = false;
    served.server.engine.tenants().put(row).await.unwrap();
    let code = closed_with(&mut open).await;
    assert_eq!(code, close::RESTART, "one that is open ends, and its worker goes on with requests");
    let Err(Error::Http(refused)) = served.open(&key).await else { panic!("it was let in") };
    assert_eq!(refused.status(), 403);
    served.server.end().await;
}
