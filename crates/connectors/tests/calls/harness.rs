//! A system that answers as a test tells it to, and remembers who came.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::Response;
use interlock_connectors::send::{Caller, Operation};
use interlock_connectors::{CallFacts, CallFailure, Connection, Connections, Connector, Fields, Inverse, Probed, find};
use interlock_core::ids::TenantId;
use interlock_core::time::Timestamp;
use interlock_credentials::providers::fixed::FixedSecrets;
use interlock_credentials::{Clock, Credentials, StepCredentials, StepScope};
use interlock_outbound::{Outbound, OutboundOptions};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use uuid::Uuid;

pub const TOKEN: &str = "tok-0123456789";

#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub method: String,
    pub path: String,
    pub query: String,
    pub headers: BTreeMap<String, String>,
    pub body: Value,
}

pub enum Reply {
    Json(u16, Value),
    With(u16, Vec<(&'static str, String)>, Value),
    /// As it stands, whatever it is.
    Text(u16, String),
    /// The system did what it was asked to, and its answer is lost.
    Lost,
}

#[derive(Clone)]
pub struct StandIn {
    pub url: String,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl StandIn {
    pub async fn start(answer: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
        let (remembered, answer) = (Arc::clone(&seen), Arc::new(answer));
        let app = Router::new().fallback(move |request: Request| {
            let (remembered, answer) = (Arc::clone(&remembered), Arc::clone(&answer));
            async move {
                let seen = read(request).await;
                remembered.lock().unwrap().push(seen.clone());
                reply(answer(&seen))
            }
        });
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, seen }
    }

    pub fn seen(&self) -> Vec<ReceivedRequest> {
        self.seen.lock().unwrap().clone()
    }
}

async fn read(request: Request) -> ReceivedRequest {
    let (head, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let headers = head.headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    ReceivedRequest {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: headers.collect(),
        body: serde_json::from_str(&text).unwrap_or(Value::String(text)),
    }
}

fn reply(reply: Reply) -> Response {
    let (status, headers, body) = match reply {
        Reply::Json(status, body) => (status, Vec::new(), body),
        Reply::With(status, headers, body) => (status, headers, body),
        Reply::Text(status, text) => {
            let response = Response::builder().status(status).header("content-type", "application/json");
            return response.body(Body::from(text)).unwrap();
        }
        Reply::Lost => {
            let broken = futures::stream::once(async { Err::<Bytes, _>(std::io::Error::other("lost")) });
            return Response::new(Body::from_stream(broken));
        }
    };
    let mut response = Response::builder().status(status).header("content-type", "application/json");
    for (name, value) in headers {
        response = response.header(name, value);
    }
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    response.body(body).unwrap()
}

pub fn outbound() -> Outbound {
    let open = vec!["127.0.0.1".parse().unwrap()];
    Outbound::new(OutboundOptions { open, ..OutboundOptions::default() }).unwrap()
}

/// A caller that reaches the stand-in under the name of a system, with a token.
pub fn caller(name: &str, url: &str) -> Caller {
    with_connections(Connections::default().with(Connection::new(name, url).with_secret("TOKEN")))
}

pub fn with_connections(connections: Connections) -> Caller {
    Caller::new(outbound(), connections, credentials())
}

/// A worker that knows one token.
pub fn credentials() -> Credentials {
    let secrets = FixedSecrets([("TOKEN".to_owned(), TOKEN.to_owned())].into());
    Credentials::of_one("fixed", Arc::new(secrets), Clock::new(|| Timestamp(0)))
}

pub fn facts() -> CallFacts {
    let since = Some(Timestamp(1_700_000_000_000));
    CallFacts { key: "demo:effect#run/step/0/0".to_owned(), before: None, since }
}

/// An operation whose fields are fine.
pub fn checked(operation: &str, fields: Value) -> (&'static dyn Connector, Fields) {
    let connector = find(operation).unwrap();
    let fields = Fields::check(connector.declaration(), fields).unwrap();
    connector.check(&fields).unwrap();
    (connector, fields)
}

pub const TENANT: TenantId = TenantId(Uuid::nil());

/// The secrets of a step.
pub fn secrets(caller: &Caller) -> StepCredentials {
    caller.step(StepScope { tenant: TENANT, environment: None })
}

pub async fn perform(caller: &Caller, operation: &str, fields: Value) -> Result<Value, CallFailure> {
    let (connector, fields) = checked(operation, fields);
    let secrets = secrets(caller);
    let operation = Operation { connector, fields: &fields, secrets: &secrets };
    let before = caller.before(operation).await?;
    caller.perform(operation, &CallFacts { before, ..facts() }, &|| true).await
}

pub async fn probe(caller: &Caller, operation: &str, fields: Value) -> Probed {
    let (connector, fields) = checked(operation, fields);
    caller.probe(Operation { connector, fields: &fields, secrets: &secrets(caller) }, &facts()).await
}

/// Undoes what was done, by its exact inverse.
pub async fn undo(caller: &Caller, operation: &str, fields: Value, output: &Value) -> Result<Value, CallFailure> {
    let (connector, fields) = checked(operation, fields);
    let Inverse { operation, fields } = connector.inverse(&fields, output).unwrap();
    perform(caller, operation, fields).await
}

pub fn ok() -> Value {
    json!({ "ok": true })
}
