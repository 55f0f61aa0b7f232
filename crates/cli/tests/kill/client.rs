//! A client that insists: it repeats every request until it has an answer, as clients of a server that is being killed
//! must. All its requests may be repeated.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

pub struct Client {
    http: reqwest::Client,
    ports: Vec<u16>,
    key: String,
}

impl Client {
    /// Waits for the key that the first server leaves in its data folder.
    pub async fn new(ports: Vec<u16>, folder: &Path) -> Self {
        let http = reqwest::Client::builder().timeout(Duration::from_secs(5)).build().unwrap();
        let path = folder.join("interlock-data/local.key");
        for _ in 0..600 {
            if let Ok(text) = std::fs::read_to_string(&path) {
                return Self { http, ports, key: text.trim().to_owned() };
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("no server has made {}", path.display());
    }

    /// Sends until the server answers with something that is not its own trouble.
    async fn insist(
        &self,
        method: reqwest::Method,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> (u16, Value) {
        for attempt in 0.. {
            let port = self.ports[attempt % self.ports.len()];
            let mut request = self.http.request(method.clone(), format!("http://127.0.0.1:{port}/api/v1{path}"));
            request = request.bearer_auth(&self.key);
            if let Some(body) = body {
                request = request.json(body);
            }
            if let Some(key) = key {
                request = request.header("Idempotency-Key", key);
            }
            if let Ok(response) = request.send().await {
                let status = response.status().as_u16();
                if let Ok(answer) = response.json::<Value>().await
                    && status < 500
                    && status != 429
                {
                    return (status, answer);
                }
            }
            assert!(attempt < 2_000, "no answer to {method} {path}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        unreachable!()
    }

    pub async fn start(&self, plan: &Value, key: &str) -> String {
        let body = json!({ "plan": plan, "inputs": { "key": key } });
        let (status, answer) = self.insist(reqwest::Method::POST, "/runs", Some(&body), Some(key)).await;
        assert!(status == 201 || status == 200, "{status}: {answer}");
        answer["run_id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    pub async fn run(&self, run: &str) -> Value {
        let (status, answer) = self.insist(reqwest::Method::GET, &format!("/runs/{run}"), None, None).await;
        assert_eq!(status, 200, "{answer}");
        answer
    }

    pub async fn steps(&self, run: &str) -> Vec<Value> {
        let (status, answer) = self.insist(reqwest::Method::GET, &format!("/runs/{run}/steps"), None, None).await;
        assert_eq!(status, 200, "{answer}");
        answer["steps"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
    }

    /// Tells the server what became of an effect in doubt. A repeat after a lost answer is refused, which is fine.
    pub async fn resolve(&self, run: &str, step: &str, outcome: &str) {
        let body = json!({ "outcome": outcome, "reason": "the ledger says so" });
        let path = format!("/runs/{run}/steps/{step}/resolve");
        self.insist(reqwest::Method::POST, &path, Some(&body), None).await;
    }
}
