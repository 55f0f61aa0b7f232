//! A Vault in a test: the calls that a worker makes, over loopback, with faults on demand and an audit log.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};
use futures::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub const ROLE_ID: &str = "role-of-the-worker";
pub const SECRET_ID: &str = "s3cr3t-id-0123456789";
pub const JWT: &str = "eyJhbGciOi.s3cr3t.c2ln";
pub const DATABASE: &str = "database/creds/readonly";

/// What goes wrong with the next call to a path that begins like this.
#[derive(Debug, Clone)]
pub enum Fault {
    /// The token is dead from here on.
    Expired,
    Throttled {
        after: u64,
    },
    Status(u16),
    Slow(Duration),
    /// Half of the answer, then the connection ends.
    Truncated,
    /// All of it, and it is not JSON.
    Garbled,
}

/// A line of the audit log. As in a real one, values are not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audited {
    pub request_id: String,
    pub operation: &'static str,
    pub path: String,
    pub status: u16,
}

#[derive(Debug, Clone)]
pub struct IssuedLease {
    pub revoked: bool,
    pub duration: u64,
    pub renewals: u32,
}

/// Everything that the simulated Vault knows.
pub struct World {
    pub sealed: bool,
    faults: VecDeque<(String, Fault)>,
    /// With how often each may still be used.
    pub secret_ids: BTreeMap<String, u32>,
    /// Wrapping tokens: what is inside, and which path made it.
    pub wrapped: BTreeMap<String, (String, String)>,
    pub tokens: BTreeSet<String>,
    pub token_seconds: u64,
    pub token_renewals: u32,
    pub kv: BTreeMap<String, Value>,
    pub denied: BTreeSet<String>,
    pub lease_seconds: u64,
    pub renewable: bool,
    /// A role whose leases cannot be made shorter.
    pub keeps_duration: bool,
    pub leases: BTreeMap<String, IssuedLease>,
    pub audit: Vec<Audited>,
    pub namespaces: BTreeSet<String>,
    /// What AWS says to a signed question that it is sent on; nobody here knows it where no test says so.
    pub aws: fn(&Value) -> Result<(), String>,
    count: u64,
}

impl World {
    fn new() -> Self {
        Self {
            sealed: false,
            faults: VecDeque::new(),
            secret_ids: [(SECRET_ID.to_owned(), 100)].into(),
            wrapped: BTreeMap::new(),
            tokens: BTreeSet::new(),
            token_seconds: 600,
            token_renewals: 0,
            kv: BTreeMap::new(),
            denied: BTreeSet::new(),
            lease_seconds: 60,
            renewable: true,
            keeps_duration: false,
            leases: BTreeMap::new(),
            audit: Vec::new(),
            namespaces: BTreeSet::new(),
            aws: |_| Err("there is no such account".to_owned()),
            count: 0,
        }
    }

    pub fn fail(&mut self, path: &str, fault: Fault) {
        self.faults.push_back((path.to_owned(), fault));
    }

    /// Whether a call has met every fault, though perhaps its answer is still to come.
    pub fn all_faults_met(&self) -> bool {
        self.faults.is_empty()
    }

    pub fn logins(&self) -> usize {
        self.audit.iter().filter(|line| line.path.ends_with("/login") && line.status == 200).count()
    }

    pub fn open_leases(&self) -> Vec<&String> {
        self.leases.iter().filter(|(_, lease)| !lease.revoked).map(|(id, _)| id).collect()
    }

    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    fn fault(&mut self, path: &str) -> Option<Fault> {
        let at = self.faults.iter().position(|(begins, _)| path.starts_with(begins.as_str()))?;
        self.faults.remove(at).map(|(_, fault)| fault)
    }

    fn granted(&mut self) -> Value {
        let token = format!("hvs.{:020}", self.next());
        self.tokens.insert(token.clone());
        self.auth(&token)
    }

    fn auth(&self, token: &str) -> Value {
        json!({ "auth": {
            "client_token": token, "accessor": "acc", "policies": ["worker"],
            "lease_duration": self.token_seconds, "renewable": true,
        }})
    }

    fn answer(&mut self, path: &str, token: &str, body: &Value) -> Reply {
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        match path {
            "auth/approle/login" => {
                let uses = self.secret_ids.get_mut(&text("secret_id")).filter(|uses| **uses > 0);
                let Some(uses) = uses.filter(|_| text("role_id") == ROLE_ID) else {
                    // As a careless server would: it repeats what it was given.
                    return refused(400, &format!("invalid secret id {}", text("secret_id")));
                };
                *uses -= 1;
                return Ok(self.granted());
            }
            "auth/azure/login" if text("vm_name") != "worker-1" || text("subscription_id").is_empty() => {
                return refused(400, "the token is not of this machine");
            }
            "auth/jwt/login" | "auth/kubernetes/login" | "auth/team/gcp/login" | "auth/azure/login" => {
                return if text("jwt") == JWT && text("role") == "worker" {
                    Ok(self.granted())
                } else {
                    refused(400, "error validating token: token expired")
                };
            }
            "auth/aws/login" => {
                return match (self.aws)(body) {
                    Ok(()) if text("role") == "worker" => Ok(self.granted()),
                    Ok(()) => refused(400, "entry for role not found"),
                    // As a careless server would: it repeats what it was given.
                    Err(why) => refused(400, &format!("{why}: {}", text("iam_request_headers"))),
                };
            }
            "sys/wrapping/lookup" => {
                return match self.wrapped.get(&text("token")) {
                    Some((_, made_by)) => Ok(json!({ "data": { "creation_path": made_by, "creation_ttl": 60 } })),
                    None => refused(400, "wrapping token is not valid or does not exist"),
                };
            }
            "sys/wrapping/unwrap" => {
                return match self.wrapped.remove(token) {
                    Some((inside, _)) => Ok(json!({ "data": { "secret_id": inside, "secret_id_accessor": "a" } })),
                    None => refused(400, "wrapping token is not valid or does not exist"),
                };
            }
            "sys/health" => return Ok(json!({ "initialized": true, "sealed": false, "version": "1.99.0" })),
            _ => {}
        }
        if !self.tokens.contains(token) || self.denied.iter().any(|denied| path.starts_with(denied.as_str())) {
            return refused(403, "permission denied");
        }
        match path {
            "sys/capabilities-self" => {
                let asked = body["paths"][0].as_str().unwrap_or_default();
                let is_denied = self.denied.iter().any(|denied| asked.starts_with(denied.as_str()));
                let told = if is_denied { "deny" } else { "read" };
                Ok(json!({ "data": { "capabilities": [told], asked: [told] } }))
            }
            "auth/token/lookup-self" => Ok(json!({ "data": { "ttl": self.token_seconds } })),
            "auth/token/renew-self" => {
                self.token_renewals += 1;
                Ok(self.auth(token))
            }
            "auth/token/revoke-self" => {
                self.tokens.remove(token);
                Ok(Value::Null)
            }
            DATABASE => {
                let number = self.next();
                let id = format!("{DATABASE}/{number:08}");
                let duration = self.lease_seconds;
                self.leases.insert(id.clone(), IssuedLease { revoked: false, duration, renewals: 0 });
                Ok(json!({
                    "lease_id": id, "lease_duration": duration, "renewable": self.renewable,
                    "data": { "username": format!("v-{number}"), "password": format!("db-s3cr3t-{number}") },
                }))
            }
            "sys/leases/renew" => {
                let (id, keeps) = (text("lease_id"), self.keeps_duration);
                let Some(lease) = self.leases.get_mut(&id).filter(|lease| !lease.revoked) else {
                    return refused(400, "lease not found");
                };
                lease.renewals += 1;
                if !keeps {
                    lease.duration = lease.duration.min(body["increment"].as_u64().unwrap_or(lease.duration));
                }
                Ok(json!({ "lease_id": id, "lease_duration": lease.duration, "renewable": true }))
            }
            "sys/leases/revoke" => {
                match self.leases.get_mut(&text("lease_id")) {
                    Some(lease) => lease.revoked = true,
                    None => return refused(400, "invalid lease ID"),
                }
                Ok(Value::Null)
            }
            _ => match (self.kv.get(path), path.contains("/data/")) {
                (Some(data), true) => Ok(json!({ "data": { "data": data, "metadata": { "version": 3 } } })),
                (Some(data), false) => Ok(json!({ "lease_id": "", "lease_duration": 2_764_800, "data": data })),
                (None, _) => Err((404, json!({ "errors": [] }))),
            },
        }
    }
}

type Reply = Result<Value, (u16, Value)>;

fn refused(status: u16, why: &str) -> Reply {
    Err((status, json!({ "errors": [why] })))
}

pub struct Simulator {
    pub url: String,
    world: Arc<Mutex<World>>,
    serving: JoinHandle<()>,
}

impl Simulator {
    pub async fn start() -> Self {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let world = Arc::new(Mutex::new(World::new()));
        let router = Router::new().fallback(serve).with_state(Arc::clone(&world));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, world, serving }
    }

    /// Several things at one moment.
    pub fn look<T>(&self, look: impl FnOnce(&World) -> T) -> T {
        look(&self.world())
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(
    State(world): State<Arc<Mutex<World>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let path = uri.path().trim_start_matches("/v1/").to_owned();
    let token = headers.get("x-vault-token").and_then(|token| token.to_str().ok()).unwrap_or_default().to_owned();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let fault = {
        let mut world = world.lock().unwrap();
        if let Some(namespace) = headers.get("x-vault-namespace") {
            world.namespaces.insert(namespace.to_str().unwrap().to_owned());
        }
        world.fault(&path)
    };
    if let Some(Fault::Slow(pause)) = fault {
        tokio::time::sleep(pause).await;
    }
    let mut world = world.lock().unwrap();
    let reply = match &fault {
        _ if world.sealed => refused(503, "Vault is sealed"),
        Some(Fault::Expired) => {
            world.tokens.remove(&token);
            refused(403, "permission denied")
        }
        Some(Fault::Throttled { .. }) => refused(429, "request path is rate limited"),
        Some(Fault::Status(status)) => refused(*status, "internal error"),
        _ => world.answer(&path, &token, &body),
    };
    let (status, mut answer) = match reply {
        Ok(answer) => (200, answer),
        Err((status, errors)) => (status, errors),
    };
    let request_id = format!("{:08x}-0000-4000-8000-000000000000", world.next());
    let operation = if method == Method::GET { "read" } else { "update" };
    world.audit.push(Audited { request_id: request_id.clone(), operation, path, status });
    if answer.is_null() {
        return response(StatusCode::NO_CONTENT, None, Body::empty());
    }
    answer["request_id"] = Value::String(request_id);
    let text = answer.to_string();
    let after = match fault {
        Some(Fault::Throttled { after }) => Some(after),
        _ => None,
    };
    let body = match fault {
        Some(Fault::Truncated) => {
            let half = Bytes::copy_from_slice(&text.as_bytes()[..text.len() / 2]);
            Body::from_stream(stream::iter([Ok(half), Err(std::io::Error::other("cut off"))]))
        }
        Some(Fault::Garbled) => Body::from(text.replace(':', ";")),
        _ => Body::from(text),
    };
    response(StatusCode::from_u16(status).unwrap(), after, body)
}

fn response(status: StatusCode, after: Option<u64>, body: Body) -> Response<Body> {
    let mut response = Response::builder().status(status).header("content-type", "application/json");
    if let Some(after) = after {
        response = response.header("retry-after", after);
    }
    response.body(body).unwrap()
}
