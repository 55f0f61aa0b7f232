//! Requests that break off: their work goes on, and a client that sends the same one again gets the first answer.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, header};
use futures::FutureExt as _;
use interlock_core::json::Hash;
use interlock_core::limits;
use interlock_core::time::{Millis, Timestamp};
use interlock_engine::IdempotencyKey;
use interlock_engine::commands::once::{Once, OnceRequest};
use interlock_engine::error::EngineError;
use interlock_store::{BeginIdempotency, Changed, RenewIdempotency, Stored};
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

#[tokio::test(start_paused = true)]
async fn a_request_that_breaks_off_is_answered_when_it_is_sent_again() {
    broken_off_and_sent_again(Api::new().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_breaks_off_on_postgres_is_answered_when_it_is_sent_again() {
    broken_off_and_sent_again(Api::on_postgres("broken_off").await).await;
}

/// The connection is cut after every number of steps that a request takes, from the first to the last.
async fn broken_off_and_sent_again(api: Api) {
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
            // Polled only when there is something to go on with, so that each step is one of the request's.
            let mut left = steps;
            let cut_off = poll_fn(|context| {
                if left == 0 || cut.poll_unpin(context).is_ready() {
                    return Poll::Ready(());
                }
                left -= 1;
                if left == 0 { Poll::Ready(()) } else { Poll::Pending }
            });
            cut_off.await;
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

/// The same by instants that are given, because a clock that is stopped does not stop PostgreSQL's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lock_of_a_key_dies_with_its_server_on_postgres() {
    let api = Api::on_postgres("broken_off_lock").await;
    let (store, began) = (api.engine.store(), api.engine.now());
    let begin = |request: OnceRequest, now: Timestamp| BeginIdempotency {
        tenant: request.tenant,
        client: request.key.client,
        key: request.key.key,
        source: request.source,
        request_hash: request.hash,
        now,
        lock_until: now + limits::IDEMPOTENCY_REQUEST_LOCK,
        expires_at: now + limits::IDEMPOTENCY_COMPLETED_TTL,
        attempts_max: limits::IDEMPOTENCY_ATTEMPTS_MAX,
    };
    for key in ["dead", "alive"] {
        assert_eq!(store.write(begin(once(&api, key), began)).await.unwrap(), Stored::Stored, "{key}");
    }
    let mut now = began;
    for _ in 0..5 {
        now = now + Millis::from_secs(3);
        let OnceRequest { tenant, key, .. } = once(&api, "alive");
        let lock_until = now + limits::IDEMPOTENCY_REQUEST_LOCK;
        let renew = RenewIdempotency { tenant, client: key.client, key: key.key, lock_until };
        assert_eq!(store.write(renew).await.unwrap(), Changed::Done);
    }
    assert_eq!(store.write(begin(once(&api, "dead"), now)).await.unwrap(), Stored::Stored);
    assert_eq!(store.write(begin(once(&api, "alive"), now)).await.unwrap(), Stored::Duplicate);
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_key_is_spent_after_its_attempts_and_not_before() {
    a_key_is_spent_after_its_attempts(Api::new().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_spent_after_its_attempts_on_postgres() {
    a_key_is_spent_after_its_attempts(Api::on_postgres("broken_off_spent").await).await;
}

async fn a_key_is_spent_after_its_attempts(api: Api) {
    let request = once(&api, "failing");
    for attempt in 1..=3 {
        assert_eq!(api.engine.requests().begin_once(&request).await.unwrap(), Once::Begin, "attempt {attempt}");
        api.engine.requests().finish_once(&request, Err("STORE_UNAVAILABLE".to_owned())).await.unwrap();
    }
    assert!(matches!(api.engine.requests().begin_once(&request).await, Err(EngineError::IdempotencySpent)));
    api.end().await;
}
