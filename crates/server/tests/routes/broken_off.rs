//! Requests that break off: their work goes on, and a client that sends the same one again gets the first answer.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, header};
use interlock_core::json::Hash;
use interlock_engine::IdempotencyKey;
use interlock_engine::commands::once::{Once, OnceRequest};
use interlock_engine::error::EngineError;
use serde_json::{Value, json};

use crate::harness::Api;

fn request(api: &Api, path: &str, body: &Value, key: &str) -> Request<Body> {
    Request::post(format!("/api/v1{path}"))
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, format!("Bearer {}", api.key))
        .header(header::CONTENT_TYPE, "application/json")
        .header("idempotency-key", key)
        .header("prefer", "wait=5")
        .body(Body::from(body.to_string()))
        .unwrap()
}

type MakeBody = fn(&str) -> Value;

/// The connection is cut after every number of steps that a request takes, from the first to the last.
#[tokio::test(start_paused = true)]
async fn a_request_that_breaks_off_is_answered_when_it_is_sent_again() {
    let api = Api::new().await;
    let requests: [(&str, MakeBody); 3] = [
        ("/signals", |name| json!({ "type": "disk.full", "key": name })),
        ("/keys", |name| json!({ "name": name, "roles": ["viewer"] })),
        ("/users", |name| json!({ "name": name, "roles": ["viewer"] })),
    ];
    for (path, body) in requests {
        for steps in 0..40 {
            let name = format!("cut-{steps}");
            let (body, key) = (body(&name), format!("{path}-{steps}"));
            let mut cut = Box::pin(api.raw(request(&api, path, &body, &key)));
            for _ in 0..steps {
                if futures::poll!(&mut cut).is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            drop(cut);
            let again = api.ask(request(&api, path, &body, &key)).await;
            assert_eq!(again.status, 201, "{path}, cut after {steps}: {}", again.body);
            let third = api.ask(request(&api, path, &body, &key)).await;
            assert_eq!(third.headers["idempotency-replayed"], "true", "{path}, cut after {steps}");
        }
    }
    // Nothing was made twice.
    let keys = api.get("/keys?limit=200").await.ok();
    let made = keys["keys"].as_array().unwrap().iter().filter(|key| key["name"].as_str().unwrap().starts_with("cut-"));
    assert_eq!(made.count(), 40);
    api.end().await;
}

fn once(api: &Api, key: &str) -> OnceRequest {
    let key = IdempotencyKey { client: "somebody".to_owned(), key: key.to_owned() };
    OnceRequest { tenant: api.tenant, key, source: "keys".to_owned(), hash: Hash::of(b"x") }
}

/// A server that dies keeps the key for seconds, not for minutes; one that lives keeps it for as long as it takes.
#[tokio::test(start_paused = true)]
async fn the_lock_of_a_key_dies_with_its_server() {
    let api = Api::new().await;
    let (dead, alive) = (once(&api, "dead"), once(&api, "alive"));
    assert_eq!(api.engine.requests().begin_once(&dead).await.unwrap(), Once::Begin);
    assert_eq!(api.engine.requests().begin_once(&alive).await.unwrap(), Once::Begin);
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_secs(3)).await;
        api.engine.requests().renew_once(&alive).await.unwrap();
    }
    assert_eq!(api.engine.requests().begin_once(&dead).await.unwrap(), Once::Begin);
    assert!(matches!(api.engine.requests().begin_once(&alive).await, Err(EngineError::IdempotencyConflict)));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_key_is_spent_after_its_attempts_and_not_before() {
    let api = Api::new().await;
    let request = once(&api, "failing");
    for attempt in 1..=3 {
        assert_eq!(api.engine.requests().begin_once(&request).await.unwrap(), Once::Begin, "attempt {attempt}");
        api.engine.requests().finish_once(&request, Err("STORE_UNAVAILABLE".to_owned())).await.unwrap();
    }
    assert!(matches!(api.engine.requests().begin_once(&request).await, Err(EngineError::IdempotencySpent)));
    api.end().await;
}
