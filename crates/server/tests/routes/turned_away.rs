//! Refusals that need a situation of their own, with all that comes with them (`codes` looks at the code alone).

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use interlock_core::json::canonical_hash;
use interlock_core::limits::SUBJECT_QUEUE_MAX;
use interlock_core::tenant::identity::Role;
use interlock_engine::IdempotencyKey;
use interlock_engine::commands::once::OnceRequest;
use interlock_engine::webhooks::outbound::NewOutbound;
use interlock_server::identity::NewKey;
use interlock_server::{ServerOptions, router};
use interlock_store::forget_memory;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::harness::{Api, attempt, engine, engine_without_calls, plan, task};

/// As docs/reference/live.md has it.
const LIVE_STREAMS_MAX: usize = 10_000;

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
    for path in [format!("/runs/{run}/events"), format!("/executions/{run}/events"), "/events".to_owned()] {
        let ahead = api.get(&format!("{path}?since=999999")).await;
        assert_eq!(ahead.problem(), (409, "LIVE_CURSOR_AHEAD"), "{path}");
    }
    let plain = Request::get("/ws/feed")
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, format!("Bearer {}", api.key));
    let plain = api.ask(plain.body(Body::empty()).unwrap()).await;
    assert_eq!(plain.problem(), (426, "UPGRADE_REQUIRED"));
    for (name, value) in [("upgrade", "websocket"), ("connection", "upgrade"), ("sec-websocket-version", "13")] {
        assert_eq!(plain.headers[name], value);
    }
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_tenant_has_as_many_pending_runs_as_it_may() {
    let api = Api::new().await;
    let mut tenant = api.engine.store().tenant(api.tenant).await.unwrap().unwrap();
    tenant.pending_runs_max = Some(1);
    api.engine.tenants().put(tenant).await.unwrap();
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
    api.engine.requests().begin_once(&first).await.unwrap();
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

#[tokio::test(start_paused = true)]
async fn only_so_many_runs_queue_for_a_subject() {
    let api = Api::new().await;
    let start = async |on_conflict: &str| {
        let plan = plan(json!([task("a")]));
        api.post("/runs", json!({ "plan": plan, "subject": "db", "on_conflict": on_conflict })).await
    };
    for _ in 0..=SUBJECT_QUEUE_MAX {
        start("queue").await.ok();
    }
    for on_conflict in ["queue", "cancel_previous"] {
        let full = start(on_conflict).await;
        assert_eq!(full.problem(), (429, "RUN_SUBJECT_QUEUE_FULL"), "{on_conflict}");
        assert!(full.headers.contains_key(header::RETRY_AFTER));
    }
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_has_only_so_many_live_streams() {
    let api = Api::new().await;
    let stream = |key: &str| {
        let request = Request::get("/api/v1/events/stream")
            .header(header::HOST, "localhost")
            .header(header::AUTHORIZATION, format!("Bearer {key}"));
        request.body(Body::empty()).unwrap()
    };
    let mut open = Vec::new();
    // One tenant has half of the places, and leaves the others theirs.
    for key in [&api.key, &api.other_key] {
        for _ in 0..LIVE_STREAMS_MAX / 2 {
            let response = api.raw(stream(key)).await;
            assert_eq!(response.status(), 200);
            open.push(response);
        }
        assert_eq!(api.ask(stream(key)).await.problem(), (503, "LIVE_STREAMS_FULL"));
    }
    open.pop();
    assert_eq!(api.ask(stream(&api.key)).await.problem(), (503, "LIVE_STREAMS_FULL"), "it was another tenant's");
    assert_eq!(api.raw(stream(&api.other_key)).await.status(), 200, "whoever leaves makes room");
    drop(open);
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_told_to_stop_is_not_ready() {
    let (engine, [tenant, _], database) = engine().await;
    let stop = CancellationToken::new();
    let server = router(engine.clone(), &ServerOptions::new(tenant), stop.clone());
    let ready = async || {
        let request = Request::get("/readyz").header(header::HOST, "localhost").body(Body::empty()).unwrap();
        let (parts, body) = server.clone().oneshot(request).await.unwrap().into_parts();
        let body = to_bytes(body, 10_000).await.unwrap();
        (parts.status.as_u16(), serde_json::from_slice::<Value>(&body).unwrap())
    };
    assert_eq!(ready().await.0, 200);
    stop.cancel();
    let (status, problem) = ready().await;
    assert_eq!((status, &problem["code"]), (503, &json!("NOT_READY")));
    engine.stop().await;
    engine.store().clone().close().await;
    forget_memory(&database);
}

/// Hashing a password is work: a sign-in that meets a long queue is turned away instead.
#[tokio::test]
async fn too_many_people_sign_in_at_once() {
    let api = Api::new().await;
    let account = json!({ "name": "person-0", "roles": ["viewer"], "password": "correct horse battery" });
    api.post("/users", account).await.ok();
    let kept = api.engine.store().user_named(api.tenant, "person-0").await.unwrap().unwrap().password;
    // A password that takes long to look at: sign-ins come faster than they are answered, however slow the machine is.
    let slow = kept.as_ref().map(|kept| kept.replace(",t=2,", ",t=60,"));
    assert_ne!(slow, kept);
    for number in 1..100 {
        let mut person = api.identity().new_user(api.tenant, format!("person-{number}"));
        person.password.clone_from(&slow);
        assert!(api.identity().add_user(person).await.is_ok());
    }
    let sign_in = |number: usize| {
        let body = json!({ "name": format!("person-{number}"), "password": "correct horse battery" });
        let request = Request::post("/api/v1/auth/login")
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/json");
        api.ask(request.body(Body::from(body.to_string())).unwrap())
    };
    let mut under_way: FuturesUnordered<_> = (0..100).map(sign_in).collect();
    let mut refused = under_way.next().await.unwrap();
    while refused.status != 503 {
        refused = under_way.next().await.expect("one of them is turned away");
    }
    assert_eq!(refused.problem(), (503, "OVERLOADED"));
    assert!(refused.headers.contains_key(header::RETRY_AFTER));
    drop(under_way);
    api.end().await;
}

/// A server brings its client for calls to the outside along; an engine without one takes no addresses to call.
#[tokio::test(start_paused = true)]
async fn an_engine_that_makes_no_calls_takes_no_addresses() {
    let database = "turned-away-without-calls";
    let (engine, [tenant, _]) = engine_without_calls(database).await;
    let new =
        NewOutbound { name: None, url: "https://example.org".into(), description: None, events: None, workflows: None };
    assert_eq!(engine.webhooks().draft_outbound(tenant, new, None).await.unwrap_err().code(), "OUTBOUND_UNAVAILABLE");
    engine.stop().await;
    engine.store().clone().close().await;
    forget_memory(database);
}
