//! How runs and steps end without a word of their worker: the codes that the server itself gives.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Api, completed, failed, plan, task};
use crate::set_up::{code_of_step, in_doubt, pay, unsafe_effect, until};

#[tokio::test(start_paused = true)]
async fn nobody_decides_in_time() {
    let api = Api::new().await;
    let gate = json!([{ "key": "gate", "kind": "approval", "quorum": 1, "expires_after": 1_000 }]);
    let run = api.start(gate).await;
    assert_eq!(until(&api, &run, "failed").await["reason"], "approval_expired");
    assert_eq!(code_of_step(&api, &run, 0).await, "APPROVAL_EXPIRED");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_passes_its_deadline() {
    let api = Api::new().await;
    let mut plan = plan(json!([task("a")]));
    plan["timeout"] = json!(1_000);
    let run = api.post("/runs", json!({ "plan": plan })).await.text("run_id");
    assert_eq!(until(&api, &run, "failed").await["reason"], "deadline");
    assert_eq!(code_of_step(&api, &run, 0).await, "RUN_DEADLINE");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_step_given_back_with_an_open_effect_is_in_doubt_until_somebody_knows() {
    let api = Api::new().await;
    let run = in_doubt(&api).await;
    until(&api, &run, "paused").await;
    assert_eq!(code_of_step(&api, &run, 0).await, "RELEASED");
    // Until then the worker might still send.
    tokio::time::sleep(Duration::from_secs(61)).await;
    let known = json!({ "outcome": "failed", "reason": "the bank has never heard of it" });
    api.post(&format!("/runs/{run}/steps/pay/resolve"), known).await.ok();
    assert_eq!(until(&api, &run, "failed").await["reason"], "step_failed");
    assert_eq!(code_of_step(&api, &run, 0).await, "RESOLVED_FAILED");
    api.end().await;
}

/// A run that goes on where another left off shares its keys, and its doubts: they are settled first.
#[tokio::test(start_paused = true)]
async fn a_canceled_run_tells_its_doubt_and_is_not_started_over_before_it_is_settled() {
    let api = Api::new().await;
    let run = in_doubt(&api).await;
    until(&api, &run, "paused").await;
    api.post(&format!("/runs/{run}/cancel"), json!({ "reason": "enough" })).await.ok();
    let why = api.get(&format!("/runs/{run}/why")).await.ok();
    let doubt = why["because"].as_array().unwrap().iter().find(|cause| cause["cause"] == "doubt");
    assert_eq!(doubt.unwrap()["step"], "pay", "{why}");
    assert_eq!(why["next"], json!(["resolve"]));
    for (verb, body) in [("retry", json!({})), ("restart", json!({ "from": "pay" }))] {
        let refused = api.post(&format!("/runs/{run}/{verb}"), body).await;
        assert_eq!(refused.problem(), (409, "RUN_RESUME_FAILED"), "{verb}");
        let command = format!("interlock run resolve {run} --step pay");
        assert!(refused.text("detail").contains(&command), "{}", refused.body);
    }
    let known = json!({ "outcome": "happened", "reason": "the bank has it" });
    api.post(&format!("/runs/{run}/steps/pay/resolve"), known).await.ok();
    let why = api.get(&format!("/runs/{run}/why")).await.ok();
    assert_eq!(why["next"], json!(["retry", "restart"]), "{why}");
    api.post(&format!("/runs/{run}/retry"), json!({})).await.ok();
    let session = api.register_naming_effects().await;
    let assignment = api.poll(&session).await;
    assert_eq!(unsafe_effect(&api, &session, &assignment).await.ok()["answer"], "performed");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_further_starts_in_a_run_that_is_being_canceled() {
    let api = Api::new().await;
    let run = api.start(json!([pay()])).await;
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    api.post(&format!("/runs/{run}/cancel"), json!({ "reason": "enough" })).await.ok();
    assert_eq!(unsafe_effect(&api, &session, &assignment).await.problem(), (409, "RUN_CANCELING"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_can_neither_be_reused_nor_repeated_stands_in_the_way() {
    let api = Api::new().await;
    let mut pay = pay();
    pay["resumable"] = json!(false);
    let run = api.start(json!([pay, task("b")])).await;
    let session = api.register().await;
    let first = api.poll(&session).await;
    api.report(&session, &first, completed(json!(1))).await.ok();
    let second = api.poll(&session).await;
    api.report(&session, &second, failed("BROKEN")).await.ok();
    until(&api, &run, "failed").await;
    let refused = api.post(&format!("/runs/{run}/retry"), json!({})).await;
    assert_eq!(refused.problem(), (409, "RUN_RESUME_FAILED"));
    assert!(refused.text("detail").contains("pay"), "{}", refused.body);
    api.end().await;
}

/// A worker that has been silent for long, before a server takes its step back.
#[tokio::test(start_paused = true)]
async fn a_worker_is_not_heard_of() {
    let api = Api::new().await;
    let run = api.start(json!([task("a")])).await;
    let session = api.register().await;
    api.poll(&session).await;
    let shown = api.get(&format!("/runs/{run}")).await.ok();
    let heard_at = shown["last_heartbeat_at"].as_i64().unwrap();
    assert_eq!(shown["detail"], Value::Null);
    let why = api.get(&format!("/runs/{run}/why")).await.ok();
    assert_eq!(
        (&why["because"][0]["cause"], &why["because"][0]["last_heartbeat_at"]),
        (&json!("running"), &json!(heard_at))
    );

    api.engine.clock().adjust(6 * 60_000);
    let shown = api.get(&format!("/runs/{run}")).await.ok();
    assert_eq!((&shown["detail"], &shown["last_heartbeat_at"]), (&json!("orphaned"), &json!(heard_at)));
    let why = api.get(&format!("/runs/{run}/why")).await.ok();
    assert_eq!((&why["because"][0]["cause"], &why["because"][0]["code"]), (&json!("orphaned"), &json!("RUN_ORPHANED")));
    let numbers = api.engine.health().orphans(api.engine.now()).await.unwrap();
    assert_eq!(numbers, 1);
    api.end().await;
}
