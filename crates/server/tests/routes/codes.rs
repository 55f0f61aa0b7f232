//! Refusals that no other test meets, each with what brings it about.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, header};
use interlock_core::identity::Role;
use interlock_core::json::canonical_hash;
use interlock_engine::IdempotencyKey;
use interlock_engine::commands::once::OnceRequest;
use interlock_server::identity::NewKey;
use serde_json::json;

use crate::api::{Api, attempt, plan, task};

#[tokio::test(start_paused = true)]
async fn things_that_are_not_there() {
    let api = Api::new().await;
    let all = Role::ALL.iter().copied().collect();
    let key = api.new_key(NewKey { installation: true, ..NewKey::new(api.tenant, "all", all) }).await;
    let api = api.with_key(&key);
    for (path, code) in [
        ("/approvals/nope", "APPROVAL_NOT_FOUND"),
        ("/delegations/nope", "DELEGATION_NOT_FOUND"),
        ("/tenants/nope", "TENANT_NOT_FOUND"),
        ("/users/nope", "USER_NOT_FOUND"),
    ] {
        assert_eq!(api.get(path).await.problem(), (404, code), "{path}");
    }
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn streams_that_cannot_be_opened() {
    let api = Api::new().await;
    let run = api.start(json!([task("a")])).await;
    for path in [format!("/runs/{run}/events/stream"), "/events/stream".to_owned()] {
        let ahead = api.get(&format!("{path}?last_event_id=999999")).await;
        assert_eq!(ahead.problem(), (409, "LIVE_CURSOR_AHEAD"), "{path}");
    }
    let plain = Request::get("/ws/feed")
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, format!("Bearer {}", api.key));
    let plain = api.ask(plain.body(Body::empty()).unwrap()).await;
    assert_eq!(plain.problem(), (426, "UPGRADE_REQUIRED"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_tenant_has_as_many_pending_runs_as_it_may() {
    let api = Api::new().await;
    let mut tenant = api.engine.store().tenant(api.tenant).await.unwrap().unwrap();
    tenant.pending_runs_max = Some(1);
    api.engine.put_tenant(tenant).await.unwrap();
    api.start(json!([task("a")])).await;
    let full = api.post("/runs", json!({ "plan": plan(json!([task("a")])) })).await;
    assert_eq!(full.problem(), (429, "TENANT_PENDING_RUNS"));
    assert!(full.headers.contains_key(header::RETRY_AFTER));
    api.end().await;
}

/// A creating request that is under way elsewhere is neither made again nor answered.
#[tokio::test(start_paused = true)]
async fn a_request_under_way_is_not_made_again() {
    let api = Api::new().await;
    let made = api.post("/keys", json!({ "name": "asking", "roles": ["admin"] })).await.ok();
    let asking = api.with_key(made["text"].as_str().unwrap());
    let body = json!({ "name": "new", "roles": ["viewer"] });
    let first = OnceRequest {
        tenant: api.tenant,
        key: IdempotencyKey { client: made["client"].as_str().unwrap().to_owned(), key: "same".to_owned() },
        source: "keys".to_owned(),
        hash: canonical_hash(&body).unwrap(),
    };
    api.engine.begin_once(&first).await.unwrap();
    let headers = [("idempotency-key", "same")];
    let again = asking.post_with("/keys", body.clone(), &headers).await;
    assert_eq!(again.problem(), (409, "IDEMPOTENCY_CONFLICT"));
    assert!(again.headers.contains_key(header::RETRY_AFTER));
    let waited = asking.post_with("/keys", body, &[headers[0], ("prefer", "wait=1")]).await;
    assert_eq!(waited.status, 202);
    let keys = api.get("/keys").await.ok();
    assert!(!keys["keys"].as_array().unwrap().iter().any(|key| key["name"] == "new"), "{keys}");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_on_its_way_out_takes_nothing() {
    let api = Api::new().await;
    api.engine.stop().await;
    api.engine.store().clone().close().await;
    let late = api.post("/runs", json!({ "plan": plan(json!([task("a")])) })).await;
    assert_eq!(late.problem(), (503, "SHUTTING_DOWN"));
    assert!(late.headers.contains_key(header::RETRY_AFTER));
    api.end().await;
}

/// The step's time is up and its worker is well: until its lease has ended, the effect may yet be sent.
#[tokio::test(start_paused = true)]
async fn what_may_still_be_sent_cannot_be_denied() {
    let api = Api::new().await;
    let step = json!({ "key": "pay", "kind": "task", "handler": "pay", "effect": "unsafe", "timeout": 1_000 });
    let run = api.start(json!([step])).await;
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    let mut intent = attempt(&assignment);
    intent["template"] = json!("card:charge");
    intent["number"] = json!(0);
    intent["effect"] = json!("unsafe");
    intent["request"] = json!({ "cents": 100 });
    api.post(&format!("/agent/{session}/effects"), intent).await.ok();
    while api.get(&format!("/runs/{run}")).await.ok()["state"] != "paused" {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let path = format!("/runs/{run}/steps/pay/resolve");
    let denied = json!({ "outcome": "did_not_happen", "reason": "not at the bank" });
    assert_eq!(api.post(&path, denied).await.problem(), (409, "EFFECT_UNDER_WAY"));
    let happened = json!({ "outcome": "happened", "output": 1, "reason": "seen at the bank" });
    api.post(&path, happened).await.ok();
    api.end().await;
}
