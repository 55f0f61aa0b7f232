//! What many tests begin with: runs that stand somewhere, and how to wait until they do.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Api, ApiResponse, attempt, completed, failed, task};

/// The run, once it is in this state.
pub async fn until(api: &Api, run: &str, state: &str) -> Value {
    for _ in 0..1_000 {
        let shown = api.get(&format!("/runs/{run}")).await.ok();
        if shown["state"] == state {
            return shown;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{run} is never {state}");
}

pub async fn state_of(api: &Api, run: &str) -> Value {
    api.get(&format!("/runs/{run}")).await.ok()["state"].clone()
}

pub async fn code_of_step(api: &Api, run: &str, step: usize) -> Value {
    let steps = api.get(&format!("/runs/{run}/steps")).await.ok();
    steps["steps"][step]["error"]["code"].clone()
}

/// A step whose effect cannot be repeated.
pub fn pay() -> Value {
    json!({ "key": "pay", "kind": "task", "handler": "pay", "effect": "unsafe" })
}

/// The message by which a worker asks to perform the effect of this number and class.
pub fn intent(assignment: &Value, number: u32, effect: &str) -> Value {
    let mut intent = attempt(assignment);
    intent["template"] = json!("card:charge");
    intent["number"] = json!(number);
    intent["effect"] = json!(effect);
    intent["request"] = json!({ "cents": 100 });
    intent
}

/// Asks to perform an effect that cannot be repeated.
pub async fn unsafe_effect(api: &Api, session: &str, assignment: &Value) -> ApiResponse {
    api.post(&format!("/agent/{session}/effects"), intent(assignment, 0, "unsafe")).await
}

/// What became of the effect of a receipt.
pub fn outcome(assignment: &Value, receipt: &Value, happened: bool, response: Value) -> Value {
    let mut outcome = attempt(assignment);
    outcome["receipt"] = receipt.clone();
    outcome["happened"] = json!(happened);
    outcome["response"] = response;
    outcome
}

/// A run whose only step was given back while its effect was under way.
pub async fn in_doubt(api: &Api) -> String {
    let run = api.start(json!([pay()])).await;
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    assert_eq!(unsafe_effect(api, &session, &assignment).await.ok()["answer"], "perform");
    api.report(&session, &assignment, json!({ "status": "released" })).await.ok();
    api.post("/agent/unregister", json!({ "session": session })).await;
    run
}

/// A run whose first step has succeeded and whose second one has failed.
pub async fn broken(api: &Api, on_failure: &str) -> String {
    let mut second = task("b");
    second["on_failure"] = json!(on_failure);
    let run = api.start(json!([task("a"), second, task("c")])).await;
    let session = api.register().await;
    let first = api.poll(&session).await;
    api.report(&session, &first, completed(json!("a's"))).await.ok();
    let second = api.poll(&session).await;
    api.report(&session, &second, failed("BROKEN")).await.ok();
    api.post("/agent/unregister", json!({ "session": session })).await;
    run
}

/// A run that was canceled at once.
pub async fn canceled(api: &Api) -> String {
    let run = api.start(json!([task("a"), task("b")])).await;
    api.post(&format!("/runs/{run}/cancel"), json!({ "reason": "over" })).await.ok();
    run
}
