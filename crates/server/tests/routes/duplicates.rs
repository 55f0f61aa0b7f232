//! A request that is repeated ten thousand times at once is one request.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use interlock_core::ids::{ServerId, TenantId};
use interlock_core::tenant::identity::Role;
use interlock_engine::Engine;
use interlock_server::identity::NewKey;
use interlock_server::{ServerOptions, router};
use interlock_store::{Options, Page, RunFilter, Store, StoreUrl, Tenant};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::harness::{self, plan, task};

/// `INTERLOCK_TEST_DUPLICATES` says otherwise.
const REPEATS: usize = 2_000;
/// Requests that are under way at once.
const CALLERS: usize = 256;

async fn repeat(url: StoreUrl) {
    let repeats = std::env::var("INTERLOCK_TEST_DUPLICATES").map_or(REPEATS, |text| text.parse().unwrap());
    let options = harness::equipped();
    let store = Store::open(&url, Options::new(ServerId(options.ids.fresh()))).await.unwrap();
    let engine = Engine::open(store, options).await.unwrap();
    let tenant = TenantId(engine.fresh_id());
    engine.tenants().put(Tenant::new(tenant, "one", engine.now())).await.unwrap();
    let options = ServerOptions { requests_per_min: None, ..ServerOptions::new(tenant) };
    let new = NewKey::new(tenant, "test", [Role::Operator].into_iter().collect());
    let key = Arc::new(harness::key(&engine, &options.secret, new).await);
    let router = router(engine.clone(), &options, CancellationToken::new());
    let body = Arc::new(json!({ "plan": plan(json!([task("a")])), "inputs": { "n": 1 } }).to_string());

    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (router, body, key) = (router.clone(), Arc::clone(&body), Arc::clone(&key));
            let share = repeats / CALLERS + usize::from(caller < repeats % CALLERS);
            tokio::spawn(async move {
                let mut answers = Vec::with_capacity(share);
                for _ in 0..share {
                    answers.push(start(&router, &key, &body).await);
                }
                answers
            })
        })
        .collect();
    let mut answers = Vec::with_capacity(repeats);
    for caller in callers {
        answers.extend(caller.await.unwrap());
    }
    assert_eq!(answers.len(), repeats);
    assert!(answers.iter().all(|(run, _)| *run == answers[0].0), "they name more than one run");
    assert_eq!(answers.iter().filter(|(_, replayed)| !replayed).count(), 1, "exactly one of them made it");
    let page = Page { limit: 10, after: None };
    assert_eq!(engine.store().list_runs(tenant, &RunFilter::default(), page).await.unwrap().len(), 1);
    engine.stop().await;
    engine.store().clone().close().await;
}

async fn start(router: &Router, key: &str, body: &str) -> (String, bool) {
    let request = Request::post("/api/v1/runs")
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::AUTHORIZATION, format!("Bearer {key}"))
        .header("idempotency-key", "\"the same\"")
        .body(Body::from(body.to_owned()));
    let response = router.clone().oneshot(request.unwrap()).await.unwrap();
    assert_eq!(response.status(), 201);
    let replayed = response.headers().contains_key("idempotency-replayed");
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let answer: Value = serde_json::from_slice(&bytes).unwrap();
    (answer["run_id"].as_str().unwrap().to_owned(), replayed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_makes_one_run_of_thousands_of_duplicates() {
    let folder = std::env::temp_dir().join(format!("interlock-duplicates-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    repeat(StoreUrl::Sqlite(folder.join("test.db"))).await;
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_makes_one_run_of_thousands_of_duplicates() {
    repeat(harness::postgres("duplicates").await).await;
}
