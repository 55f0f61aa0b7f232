//! What `/readyz` and the status say of a server that cannot do all of its work.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, header};
use interlock_engine::payloads::Objects;
use interlock_store::{CommitFault, FaultFrom};
use serde_json::json;

use crate::harness::{Api, ApiResponse, engine_under};

async fn ready(api: &Api) -> ApiResponse {
    api.ask(Request::get("/readyz").header(header::HOST, "localhost").body(Body::empty()).unwrap()).await
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_commit_lane_has_panicked_is_not_ready() {
    let faults = Arc::new(FaultFrom::new(CommitFault::Panic));
    let (engine, tenants, database) = engine_under(faults.clone(), Objects::memory()).await;
    let api = Api::of(engine, tenants, database).await;
    assert_eq!(ready(&api).await.ok()["status"], "ready");
    faults.now();
    let signal = json!({ "type": "disk.full", "key": "host-1" });
    assert_eq!(api.post("/signals", signal.clone()).await.problem().0, 503);
    let unready = ready(&api).await;
    assert_eq!(unready.problem(), (503, "NOT_READY"));
    assert!(unready.text("detail").contains("a commit lane of this server has panicked"), "{}", unready.body);
    assert_eq!(api.post("/signals", signal).await.problem(), (503, "STORE_UNAVAILABLE"));
    // What can be read is read, and says the same.
    let status = api.get("/status").await.ok();
    assert!(status["problems"].to_string().contains("a commit lane of this server has panicked"), "{status}");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_loop_of_the_server_that_panics_is_told_and_started_again() {
    let api = Api::new().await;
    let (started, mut starts) = tokio::sync::mpsc::unbounded_channel();
    api.engine.supervise("broker", move || {
        let started = started.clone();
        async move {
            started.send(()).unwrap();
            panic!("a bug in a loop");
        }
    });
    for _ in 0..3 {
        starts.recv().await.unwrap();
    }
    let ready = ready(&api).await.ok();
    assert_eq!(ready["status"], "degraded");
    assert!(ready["problems"][0].as_str().unwrap().starts_with("the loop `broker` panicked"), "{ready}");
    api.end().await;
}
