//! A client that repeats every request until it has an answer, as clients of a server that is being killed must. All its
//! requests may be repeated. Each goes to another server than the one before, so that what an operator does seldom goes
//! through the worker's server.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

/// How long a request is repeated at most. Servers are killed, frozen and started again meanwhile, on a busy machine.
const ANSWER_MAX: Duration = Duration::from_mins(3);

pub struct Client {
    http: reqwest::Client,
    ports: Vec<u16>,
    turn: AtomicUsize,
    key: String,
    retry_after: Duration,
}

impl Client {
    /// Waits for the key that the first server leaves in its data folder.
    pub async fn new(ports: Vec<u16>, folder: &Path) -> Self {
        let path = folder.join("interlock-data/local.key");
        let since = Instant::now();
        while since.elapsed() < ANSWER_MAX {
            if let Ok(text) = std::fs::read_to_string(&path)
                && !text.trim().is_empty()
            {
                return Self::with(ports, text.trim());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("no server has made {}", path.display());
    }

    fn with(ports: Vec<u16>, key: &str) -> Self {
        let http = reqwest::Client::builder().timeout(Duration::from_secs(5)).build().unwrap();
        Self { http, ports, turn: AtomicUsize::new(0), key: key.to_owned(), retry_after: Duration::from_millis(50) }
    }

    /// The same caller through another address, with a connection for each request and hardly a pause between them.
    pub fn connecting_anew(&self, port: u16) -> Self {
        let http =
            reqwest::Client::builder().timeout(Duration::from_secs(5)).pool_max_idle_per_host(0).build().unwrap();
        Self { http, retry_after: Duration::from_millis(2), ..Self::with(vec![port], &self.key) }
    }

    /// The same caller, through one server only.
    pub fn through(&self, port: u16) -> Self {
        Self::with(vec![port], &self.key)
    }

    /// The same caller, through any of these.
    pub fn over(&self, ports: &[u16]) -> Self {
        Self::with(ports.to_vec(), &self.key)
    }

    /// The same servers, under another key.
    pub fn as_bearer(&self, key: &str) -> Self {
        Self::with(self.ports.clone(), key)
    }

    /// Sends until the server answers with something that is not its own trouble.
    pub async fn with_retries(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> (u16, Value) {
        let since = Instant::now();
        loop {
            if let Some((status, answer)) = self.send(method.clone(), path, body, key).await
                && status < 500
                && status != 429
            {
                return (status, answer);
            }
            assert!(since.elapsed() < ANSWER_MAX, "no answer to {method} {path}");
            tokio::time::sleep(self.retry_after).await;
        }
    }

    /// Sends once.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> Option<(u16, Value)> {
        let port = self.ports[self.turn.fetch_add(1, Ordering::Relaxed) % self.ports.len()];
        let mut request = self.http.request(method, format!("http://127.0.0.1:{port}/api/v1{path}"));
        request = request.bearer_auth(&self.key);
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        Some((status, response.json::<Value>().await.ok()?))
    }

    /// Waits until the server answers.
    pub async fn answers(&self) {
        let (status, answer) = self.with_retries(Method::GET, "/me", None, None).await;
        assert_eq!(status, 200, "{answer}");
    }

    pub async fn start(&self, plan: &Value, key: &str) -> String {
        let body = json!({ "plan": plan, "inputs": { "key": key } });
        let (status, answer) = self.with_retries(Method::POST, "/runs", Some(&body), Some(key)).await;
        assert!(status == 201 || status == 200, "{status}: {answer}");
        answer["run_id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    pub async fn run(&self, run: &str) -> Value {
        let (status, answer) = self.with_retries(Method::GET, &format!("/runs/{run}"), None, None).await;
        assert_eq!(status, 200, "{answer}");
        answer
    }

    pub async fn steps(&self, run: &str) -> Vec<Value> {
        let (status, answer) = self.with_retries(Method::GET, &format!("/runs/{run}/steps"), None, None).await;
        assert_eq!(status, 200, "{answer}");
        answer["steps"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
    }

    /// Something that an operator wants of a run. What does not fit any more, after a lost answer too, is refused.
    pub async fn tell(&self, run: &str, verb: &str, body: Value) -> u16 {
        self.with_retries(Method::POST, &format!("/runs/{run}/{verb}"), Some(&body), None).await.0
    }

    /// Tells the server what became of an effect in doubt. A repeat after a lost answer is refused, which is fine.
    pub async fn resolve(&self, run: &str, step: &str, outcome: &str) {
        let body = json!({ "outcome": outcome, "reason": "the ledger says so" });
        self.tell(run, &format!("steps/{step}/resolve"), body).await;
    }

    /// The caller's tenant gets a limit on steps that run at the same time.
    pub async fn limit_own_tenant(&self, max_concurrency: u32) {
        let (_, me) = self.with_retries(Method::GET, "/me", None, None).await;
        let path = format!("/tenants/{}", me["tenant"].as_str().unwrap());
        let body = json!({ "max_concurrency": max_concurrency });
        let (status, answer) = self.with_retries(Method::PATCH, &path, Some(&body), None).await;
        assert_eq!(status, 200, "{answer}");
    }

    /// A client of a new tenant's first admin.
    pub async fn new_tenant(&self, name: &str) -> Self {
        let (status, answer) = self.with_retries(Method::POST, "/tenants", Some(&json!({ "name": name })), None).await;
        assert!(status == 200 || status == 201, "{status}: {answer}");
        self.as_bearer(answer["admin_key"].as_str().unwrap())
    }

    /// A person who may approve, signed in.
    pub async fn new_person(&self, name: &str) -> Self {
        let password = "correct horse battery";
        let person = json!({ "name": name, "roles": ["approver", "operator"], "password": password });
        let (status, answer) = self.with_retries(Method::POST, "/users", Some(&person), None).await;
        assert!(status == 200 || status == 201, "{status}: {answer}");
        let login = json!({ "by": "password", "name": name, "password": password });
        let (status, answer) = self.with_retries(Method::POST, "/auth/token", Some(&login), None).await;
        assert_eq!(status, 200, "{answer}");
        self.as_bearer(answer["token"].as_str().unwrap())
    }
}
