//! Messages from outside.

use serde_json::json;

use crate::api::{Api, plan};

fn waiting() -> serde_json::Value {
    plan(json!([{ "key": "w", "kind": "wait", "signal": { "type": "go" } }]))
}

#[tokio::test(start_paused = true)]
async fn a_signal_wakes_the_run_it_is_for() {
    let api = Api::new().await;
    let run = api.post("/runs", json!({ "plan": waiting() })).await.text("run_id");
    let sent = api.post(&format!("/runs/{run}/signals"), json!({ "type": "go", "payload": { "by": "me" } })).await;
    assert_eq!(sent.status, 201);
    assert_eq!(sent.body["duplicate"], false);
    let ended = api.get(&format!("/runs/{run}?wait_ms=5000")).await.ok();
    assert_eq!((&ended["state"], &ended["output"]), (&json!("succeeded"), &json!({ "by": "me" })));

    let late = api.post(&format!("/runs/{run}/signals"), json!({ "type": "go" })).await;
    assert_eq!(late.problem(), (409, "RUN_TERMINAL_STATE"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_signal_finds_its_wait_by_key_and_counts_once() {
    let api = Api::new().await;
    let body = json!({ "plan": waiting(), "subject": "INC-7" });
    let run = api.post("/runs", body).await.text("run_id");
    let signal = json!({ "type": "go", "key": "INC-7", "payload": 1, "source_id": "m-1" });
    assert_eq!(api.post("/signals", signal.clone()).await.status, 201);
    let ended = api.get(&format!("/runs/{run}?wait_ms=5000")).await.ok();
    assert_eq!(ended["state"], "succeeded");

    let again = api.post("/signals", signal).await;
    assert_eq!((again.status.as_u16(), &again.body), (200, &json!({ "duplicate": true })));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn signals_that_cannot_be_are_refused() {
    let api = Api::new().await;
    let nameless = api.post("/signals", json!({ "type": "", "key": "k" })).await;
    assert_eq!(nameless.problem(), (422, "INPUT_INVALID"));
    let elsewhere = api.post("/signals", json!({ "tenant": api.other_tenant, "type": "go", "key": "k" })).await;
    assert_eq!(elsewhere.problem(), (400, "REQUEST_INVALID"), "the key names the tenant");
    api.end().await;
}
