//! The client against a real server: `rvault` of the crate `rusty_vault`, which `scripts/need rusty-vault` installs.
//!
//! It has AppRole, tokens that expire, a seal, and KV of version 1. It has no policies, no audit log, no `sys/health`, no
//! wrapping, nothing below `sys/leases`, and a token cannot renew or revoke itself: the simulator stands for those.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use interlock_credentials::vault::{Login, Vault, VaultOptions};
use interlock_credentials::{Credentials, EntryKind, StepScope, limits};
use interlock_outbound::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use interlock_outbound::{Call, Method, Outbound, OutboundOptions};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::harness::{Folder, TENANT, clock, secret, step, worker};

const VALUE: &str = "s3cr3t-value-0123456789";
const START_MAX: Duration = Duration::from_mins(1);
/// After this long a client asks for a new token where the old one was given for two seconds.
const PAST_HALF: Duration = Duration::from_millis(1_200);

/// A server with an unsealed, empty store, gone with its test.
struct RustyVault {
    url: String,
    outbound: Outbound,
    root_token: String,
    unseal_key: String,
    process: Child,
    folder: Folder,
}

impl Drop for RustyVault {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn outbound() -> Outbound {
    let open = vec!["127.0.0.1/32".parse().unwrap()];
    Outbound::new(OutboundOptions { open, ..OutboundOptions::default() }).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

impl RustyVault {
    async fn start() -> Self {
        let program = std::env::var("INTERLOCK_TEST_RVAULT").expect(
            "INTERLOCK_TEST_RVAULT is not set: run `make soak`, or `scripts/need rusty-vault` and name its program",
        );
        let folder = Folder::new();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let config = json!({
            "listener": { "tcp": { "address": address.to_string(), "tls_disable": true } },
            "storage": { "file": { "path": folder.0.join("storage") } },
            "work_dir": folder.0.join("work"),
            "log_level": "error",
        });
        let config = folder.put("rvault.json", &config.to_string());
        let mut command = Command::new(program);
        command.arg("server").arg("--config").arg(config).stdin(Stdio::null()).stdout(Stdio::null());
        let mut server = Self {
            url: format!("http://{address}"),
            outbound: outbound(),
            root_token: String::new(),
            unseal_key: String::new(),
            process: command.stderr(Stdio::null()).spawn().unwrap(),
            folder,
        };
        let answers = async {
            while server.call(Method::GET, "sys/init", None).await.is_err() {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(START_MAX, answers).await.expect("rvault does not answer");
        let init = json!({ "secret_shares": 1, "secret_threshold": 1 });
        let made = server.call(Method::PUT, "sys/init", Some(&init)).await.unwrap();
        (server.root_token, server.unseal_key) = (text(&made["root_token"]), text(&made["keys"][0]));
        server.unseal().await;
        server.call(Method::POST, "sys/auth/approle", Some(&json!({ "type": "approle" }))).await.unwrap();
        let app = json!({ "token": VALUE, "port": 5432 });
        server.call(Method::POST, "secret/app", Some(&app)).await.unwrap();
        server
    }

    /// A call of the operator's.
    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert("x-vault-token", HeaderValue::from_str(&self.root_token).unwrap());
        let call = Call {
            headers,
            body: body.map(|body| body.to_string().into_bytes()).unwrap_or_default(),
            timeout: limits::CALL_TIMEOUT_MAX,
            ..Call::new(method, format!("{}/v1/{path}", self.url))
        };
        let answer = self.outbound.send(call).await.map_err(|error| error.to_string())?;
        if !answer.status.is_success() {
            return Err(format!("{path}: {} {}", answer.status, String::from_utf8_lossy(&answer.body)));
        }
        Ok(serde_json::from_slice(&answer.body).unwrap_or(Value::Null))
    }

    async fn unseal(&self) {
        let key = json!({ "key": self.unseal_key });
        let status = self.call(Method::PUT, "sys/unseal", Some(&key)).await.unwrap();
        assert_eq!(status["sealed"], json!(false), "{status}");
    }

    /// A worker that signs in with a new role of these terms, and what its secret id is.
    async fn worker(&self, role: &str, terms: &Value) -> (Credentials, String) {
        let path = format!("auth/approle/role/{role}");
        self.call(Method::POST, &path, Some(terms)).await.unwrap();
        let role_id = self.call(Method::GET, &format!("{path}/role-id"), None).await.unwrap();
        let made = self.call(Method::POST, &format!("{path}/secret-id"), Some(&json!({}))).await.unwrap();
        let secret_id = text(&made["data"]["secret_id"]);
        let login = Login::AppRole {
            mount: "approle".to_owned(),
            role_id: text(&role_id["data"]["role_id"]),
            secret_id_file: self.folder.put("secret-id", &secret_id),
            wrapped: false,
        };
        let vault = Vault::new(VaultOptions {
            name: "corp".to_owned(),
            url: self.url.clone(),
            namespace: None,
            login,
            secrets: BTreeMap::from([
                ("TOKEN".to_owned(), secret("secret/app", EntryKind::Plain, "token")),
                ("PORT".to_owned(), secret("secret/app", EntryKind::Plain, "port")),
                ("NO_FIELD".to_owned(), secret("secret/app", EntryKind::Plain, "nothing")),
                ("NO_ENTRY".to_owned(), secret("secret/nothing", EntryKind::Plain, "token")),
                ("VERSIONED".to_owned(), secret("secret/data/app", EntryKind::Versioned, "token")),
                ("LEASED".to_owned(), secret("secret/app", EntryKind::Leased, "token")),
            ]),
            timeout: limits::CALL_TIMEOUT_MAX,
            outbound: outbound(),
            clock: clock(),
        });
        (worker(vault, &self.folder.journals()), secret_id)
    }
}

#[tokio::test]
#[ignore = "for `make soak`: the server is built from its crate first"]
async fn a_worker_is_let_in_and_reads_what_is_there() {
    let server = RustyVault::start().await;
    let (credentials, secret_id) = server.worker("steady", &json!({ "token_ttl": 600 })).await;
    let scope = StepScope { tenant: TENANT, environment: None };
    credentials.check(&scope, "TOKEN").await.unwrap();
    let running = step(&credentials);
    assert_eq!(running.get("TOKEN").await.unwrap().reveal(), VALUE);
    assert_eq!(running.get("PORT").await.unwrap().reveal(), "5432");
    for (name, code) in [
        ("NO_FIELD", "SECRET_UNUSABLE"),
        ("NO_ENTRY", "SECRET_UNUSABLE"),
        ("VERSIONED", "SECRET_UNUSABLE"),
        ("LEASED", "CREDENTIAL_UNREADABLE"),
    ] {
        let error = running.get(name).await.err().unwrap();
        assert_eq!(error.cause.code(), code, "{name}: {error}");
        let said = format!("{error} {error:?}");
        assert!(!said.contains(VALUE) && !said.contains(&secret_id), "{said}");
    }
    let used = running.end().await;
    let ids: Vec<&str> = used.iter().map(|used| used.credential_id.as_str()).collect();
    assert_eq!(ids, ["corp/TOKEN", "corp/PORT"]);
    assert!(used.iter().all(|used| used.lease_id.is_none() && used.revoked_at.is_none()), "{used:?}");
    credentials.close().await;
}

#[tokio::test]
#[ignore = "for `make soak`: the server is built from its crate first"]
async fn a_token_that_ends_is_replaced_while_the_secret_id_is_good() {
    let server = RustyVault::start().await;
    let (credentials, _) = server.worker("short", &json!({ "token_ttl": 2 })).await;
    for _ in 0..3 {
        assert_eq!(step(&credentials).get("TOKEN").await.unwrap().reveal(), VALUE);
        sleep(PAST_HALF).await;
    }

    let (credentials, secret_id) = server.worker("once", &json!({ "token_ttl": 2, "secret_id_num_uses": 1 })).await;
    assert_eq!(step(&credentials).get("TOKEN").await.unwrap().reveal(), VALUE);
    sleep(PAST_HALF).await;
    let error = step(&credentials).get("TOKEN").await.err().unwrap();
    assert_eq!(error.cause.code(), "CREDENTIAL_LOGIN_REFUSED", "{error}");
    let said = error.to_string();
    assert!(said.contains("invalid secret id") && said.contains("used up or expired"), "{said}");
    assert!(!said.contains(&secret_id), "{said}");
}

#[tokio::test]
#[ignore = "for `make soak`: the server is built from its crate first"]
async fn a_sealed_server_is_named_and_serves_again_once_it_is_unsealed() {
    let server = RustyVault::start().await;
    let (credentials, _) = server.worker("steady", &json!({ "token_ttl": 600 })).await;
    assert_eq!(step(&credentials).get("TOKEN").await.unwrap().reveal(), VALUE);
    server.call(Method::PUT, "sys/seal", Some(&json!({}))).await.unwrap();
    let error = step(&credentials).get("TOKEN").await.err().unwrap();
    assert_eq!(error.cause.code(), "CREDENTIAL_SEALED", "{error}");
    server.unseal().await;
    assert_eq!(step(&credentials).get("TOKEN").await.unwrap().reveal(), VALUE);
}
