//! Credentials: which count, which do not, and for how long.

use axum::body::Body;
use axum::http::{Request, header};
use interlock_core::tenant::identity::Role;
use interlock_core::time::Millis;
use interlock_server::identity::NewKey;
use interlock_store::RevokeKey;
use serde_json::json;

use crate::harness::{Api, ApiResponse, task};

const RUNS: &str = "/api/v1/runs";

async fn ask(api: &Api, path: &str, headers: &[(header::HeaderName, &str)]) -> ApiResponse {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    api.ask(request.body(Body::empty()).unwrap()).await
}

#[tokio::test(start_paused = true)]
async fn a_key_opens_everything_but_the_health_checks() {
    let api = Api::new().await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(ask(&api, path, &[]).await.status, 200, "{path}");
    }
    let mut changed = api.key.clone();
    let last = if changed.pop() == Some('x') { 'y' } else { 'x' };
    changed.push(last);
    let unknown = format!("ilk_{}", "a".repeat(55));
    for authorization in [
        "",
        "Bearer",
        "Bearer ",
        "Bearer ilk_",
        &format!("Basic {}", api.key),
        &api.key,
        &format!("Bearer {changed}"),
        &format!("Bearer {unknown}"),
    ] {
        let headers = [(header::AUTHORIZATION, authorization), (header::HOST, "localhost")];
        let answer = ask(&api, RUNS, &headers).await;
        assert_eq!(answer.problem(), (401, "UNAUTHORIZED"), "{authorization}");
        assert_eq!(answer.headers[header::WWW_AUTHENTICATE], "Bearer");
        assert!(!answer.body.to_string().contains("ilk_a"), "a refusal repeats no key");
    }
    let bearer = format!("bearer {}", api.key);
    let answer = ask(&api, RUNS, &[(header::AUTHORIZATION, &bearer), (header::HOST, "example.org")]).await;
    assert_eq!(answer.status, 200);
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn on_loopback_other_names_are_refused_before_anything_else() {
    let api = Api::new().await;
    let local = ask(&api, RUNS, &[(header::HOST, "127.0.0.1:8420")]).await;
    assert_eq!(local.problem(), (401, "UNAUTHORIZED"));
    let rebound = ask(&api, RUNS, &[(header::HOST, "evil.example.org:8420")]).await;
    assert_eq!(rebound.problem(), (403, "HOST_REFUSED"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_key_is_none() {
    let api = Api::new().await;
    let mut new = NewKey::new(api.tenant, "short", [Role::Viewer].into_iter().collect());
    new.expires_at = Some(api.engine.now() + Millis::from_secs(60));
    let short = api.with_key(&api.new_key(new).await);
    assert_eq!(short.get("/runs").await.status, 200);
    tokio::time::advance(std::time::Duration::from_millis(59_900)).await;
    assert_eq!(short.get("/runs").await.status, 200);
    tokio::time::advance(std::time::Duration::from_millis(200)).await;
    assert_eq!(short.get("/runs").await.problem(), (401, "UNAUTHORIZED"));
    api.end().await;
}

/// Behind the server's back, as another server would: the cache believes it no longer than it says.
#[tokio::test(start_paused = true)]
async fn a_key_revoked_elsewhere_is_refused_within_a_second() {
    let api = Api::new().await;
    let key = api.new_key(NewKey::new(api.tenant, "gone", [Role::Viewer].into_iter().collect())).await;
    let gone = api.with_key(&key);
    assert_eq!(gone.get("/runs").await.status, 200);
    let row = api.engine.store().find_keys(&key[4..16]).await.unwrap().remove(0);
    let revoke = RevokeKey { tenant: api.tenant, key: row.id, at: api.engine.now() };
    api.engine.store().write(revoke).await.unwrap();
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    assert_eq!(gone.get("/runs").await.problem(), (401, "UNAUTHORIZED"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_are_told_when_to_come_back() {
    let api = Api::new().await;
    let mut new = NewKey::new(api.tenant, "slow", [Role::Viewer].into_iter().collect());
    new.requests_per_min = Some(30);
    let slow = api.with_key(&api.new_key(new).await);
    for _ in 0..5 {
        assert_eq!(slow.get("/runs").await.status, 200);
    }
    let refused = slow.get("/runs").await;
    assert_eq!(refused.problem(), (429, "RATE_LIMITED"));
    assert_eq!(refused.headers[header::RETRY_AFTER], "2");
    assert_eq!(api.get("/runs").await.status, 200, "others are not held up");
    tokio::time::advance(std::time::Duration::from_secs(2)).await;
    assert_eq!(slow.get("/runs").await.status, 200);
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_key_of_a_workspace_sees_only_that() {
    let api = Api::new().await;
    let mut new = NewKey::new(api.tenant, "emea", [Role::Operator].into_iter().collect());
    new.workspace = Some("emea".into());
    let emea = api.with_key(&api.new_key(new).await);
    let elsewhere = api.start(json!([task("a")])).await;
    api.post("/workflows", json!({ "source": "name: one\nsteps:\n  - { id: a, task: a }\n" })).await.ok();
    let own = emea.post("/runs", json!({ "workflow": "one" })).await.text("run_id");
    assert_eq!(api.get(&format!("/runs/{own}")).await.ok()["workspace"], "emea");

    let listed = emea.get("/runs").await.ok();
    assert_eq!(listed["runs"].as_array().unwrap().len(), 1);
    assert_eq!(listed["runs"][0]["run_id"], json!(own));
    assert_eq!(emea.get(&format!("/runs/{own}")).await.status, 200);
    let hidden = emea.get(&format!("/runs/{elsewhere}")).await;
    assert_eq!(hidden.problem(), (404, "RUN_NOT_FOUND"));
    let cancel = emea.post(&format!("/runs/{elsewhere}/cancel"), json!({ "reason": "x" })).await;
    assert_eq!(cancel.problem(), (404, "RUN_NOT_FOUND"));
    let body = json!({ "workflow": "one", "workspace": "apac" });
    assert_eq!(emea.post("/runs", body).await.problem(), (422, "INPUT_INVALID"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_use_of_a_key_is_noted() {
    let api = Api::new().await;
    api.get("/runs").await.ok();
    let used_at = loop {
        let row = api.engine.store().find_keys(&api.key[4..16]).await.unwrap().remove(0);
        match row.last_used_at {
            Some(at) => break at,
            None => tokio::task::yield_now().await,
        }
    };
    assert_eq!(used_at, api.engine.now());
    api.end().await;
}
