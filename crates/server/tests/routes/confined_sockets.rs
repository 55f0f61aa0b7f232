//! Workspace confinement over WebSockets, whichever way a watcher says who it is: a key that is limited to a workspace
//! meets no other's runs there, and no feed of the tenant.

use futures::SinkExt as _;
use serde_json::{Value, json};
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::connections::{Listening, listen_on};
use crate::harness::Api;
use crate::isolation::neighbour;
use crate::live::next;
use crate::workspaces::{WORKSPACE, confined};

/// How a watcher says who it is.
#[derive(Debug, Clone, Copy)]
enum Introduction {
    Header,
    QueryToken,
    FirstFrame,
}

const INTRODUCTIONS: [Introduction; 3] = [Introduction::Header, Introduction::QueryToken, Introduction::FirstFrame];

/// What a watcher is told: that the socket is open, or the code and the detail of the refusal.
async fn told(server: &Listening, path: &str, by: Introduction, token: &str) -> Value {
    let upgrade = |path: &str| {
        let request = reqwest::Client::new().get(format!("http://{}{path}", server.address));
        let key = "dGhlIHNhbXBsZSBub25jZQ==";
        let request = request.header("sec-websocket-version", "13").header("sec-websocket-key", key);
        request.header("connection", "upgrade").header("upgrade", "websocket")
    };
    let answer = match by {
        Introduction::Header => upgrade(path).bearer_auth(token).send().await.unwrap(),
        Introduction::QueryToken => upgrade(&format!("{path}?token={token}")).send().await.unwrap(),
        Introduction::FirstFrame => return told_after_frame(server, path, token).await,
    };
    let status = answer.status().as_u16();
    if status == 101 {
        return json!("open");
    }
    let problem: Value = answer.json().await.unwrap();
    json!({ "status": status, "code": problem["code"], "detail": problem["detail"] })
}

async fn told_after_frame(server: &Listening, path: &str, token: &str) -> Value {
    let request = format!("ws://{}{path}", server.address).into_client_request().unwrap();
    let mut socket = client_async(request, server.connect().await).await.unwrap().0;
    let frame = json!({ "type": "subscribe", "token": token, "last_event_id": "0" });
    socket.send(Message::text(frame.to_string())).await.unwrap();
    let first = next(&mut socket).await.unwrap();
    if first["type"] != "refused" {
        return json!("open");
    }
    assert!(next(&mut socket).await.is_none(), "{path}: it closes");
    json!({ "code": first["code"], "detail": first["detail"] })
}

#[tokio::test]
async fn another_workspaces_runs_do_not_exist_over_a_confined_socket() {
    let api = Api::new().await;
    api.post("/workflows", json!({ "source": "name: one\nsteps:\n  - { id: a, task: a }\n" })).await.ok();
    let foreign = api.post("/runs", json!({ "workflow": "one" })).await.text("run_id");
    let confined = confined(&api).await;
    let own = confined.post("/runs", json!({ "workflow": "one" })).await.text("run_id");
    let unknown = neighbour(&foreign);
    let short = confined.post("/auth/ws-token", json!({})).await.text("token");
    let whole_tenant = api.post("/auth/ws-token", json!({})).await.text("token");
    let server = listen_on(api.engine.clone(), api.options(), api.database.clone()).await;
    for by in INTRODUCTIONS {
        for token in [confined.key.as_str(), short.as_str()] {
            // The short token is for where no header can be set.
            if token == short && matches!(by, Introduction::Header) {
                continue;
            }
            let told_of = async |path: &str, run: &str| {
                let told = told(&server, &path.replace("{run}", run), by, token).await.to_string();
                told.replace(run, "ID")
            };
            for path in ["/ws/runs/{run}", "/ws/executions/{run}"] {
                assert_eq!(told_of(path, &own).await, "\"open\"", "{path} {by:?}");
                let known = told_of(path, &foreign).await;
                assert_eq!(known, told_of(path, &unknown).await, "{path} {by:?}");
                assert!(known.contains("RUN_NOT_FOUND"), "{path} {by:?}: {known}");
            }
            let feed = told(&server, "/ws/feed", by, token).await;
            assert_eq!(feed["code"], "PERMISSION_DENIED", "{by:?}: {feed}");
            assert!(feed["detail"].as_str().unwrap().contains(WORKSPACE), "{by:?}: {feed}");
        }
        // What is refused to the confined key is open to the tenant's own.
        let token = if matches!(by, Introduction::Header) { &api.key } else { &whole_tenant };
        for path in [format!("/ws/runs/{foreign}"), format!("/ws/executions/{foreign}"), "/ws/feed".to_owned()] {
            assert_eq!(told(&server, &path, by, token).await, "open", "{path} {by:?}");
        }
    }
    server.end().await;
}
