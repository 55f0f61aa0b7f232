//! What an operator can tell a run.

use interlock_core::tenant::identity::{Role, Roles};
use interlock_server::identity::NewKey;
use serde_json::json;

use crate::harness::{Api, completed, task};
use crate::set_up::{broken, pay, state_of, unsafe_effect};

#[tokio::test(start_paused = true)]
async fn pause_resume_and_cancel() {
    let api = Api::new().await;
    let run = api.start(json!([task("a")])).await;
    let because = json!({ "reason": "maintenance" });
    let paused = api.post(&format!("/runs/{run}/pause"), because.clone()).await.ok();
    assert_eq!((&paused["run_id"], &paused["state"]), (&json!(run), &json!("paused")));
    let resumed = api.post(&format!("/runs/{run}/resume"), json!({})).await.ok();
    assert_ne!(resumed["state"], "paused");
    let canceled = api.post(&format!("/runs/{run}/cancel"), because.clone()).await.ok();
    assert_eq!(canceled["state"], "canceled");
    let version = api.get(&format!("/runs/{run}")).await.ok()["version"].clone();
    assert_eq!(canceled["version"], version);

    let again = api.post(&format!("/runs/{run}/cancel"), because).await;
    assert_eq!(again.problem(), (409, "RUN_TERMINAL_STATE"));
    api.end().await;
}

/// A key is told by its name, with its owner where it has one, and never by any part of its text.
#[tokio::test(start_paused = true)]
async fn what_a_key_does_is_told_under_its_name() {
    let api = Api::new().await;
    let operator: Roles = [Role::Operator].into_iter().collect();
    let ownerless = api.new_key(NewKey::new(api.tenant, "deploy-bot", operator)).await;
    let owned = NewKey { owner: Some("ada".into()), ..NewKey::new(api.tenant, "ci", operator) };
    let owned = api.new_key(owned).await;
    for (text, key, person, who) in
        [(&ownerless, "deploy-bot", json!(null), "key deploy-bot"), (&owned, "ci", json!("ada"), "key ci of ada")]
    {
        let by_key = api.with_key(text);
        let run = by_key.start(json!([task("a")])).await;
        let because = json!({ "reason": "maintenance" });
        by_key.post(&format!("/runs/{run}/pause"), because.clone()).await.ok();
        assert_eq!(by_key.get(&format!("/runs/{run}")).await.ok()["pause"]["by"], who);
        by_key.post(&format!("/runs/{run}/resume"), json!({})).await.ok();
        by_key.post(&format!("/runs/{run}/cancel"), because).await.ok();
        let shown = by_key.get(&format!("/runs/{run}")).await.ok();
        assert_eq!((&shown["started_by"], &shown["cancellation"]["by"]), (&json!(who), &json!(who)), "{shown}");
        assert_eq!(shown["trigger"], json!({ "type": "api", "ref": format!("key {key}") }));

        let events = by_key.get(&format!("/runs/{run}/events")).await.ok();
        for kind in ["session.created", "session.paused", "session.resumed", "session.canceled"] {
            let told = events["events"].as_array().unwrap().iter().find(|event| event["type"] == kind);
            let context = &told.unwrap_or_else(|| panic!("{kind} in {events}"))["context"];
            assert_eq!((&context["key"], &context["person"]), (&json!(key), &person), "{kind}: {context}");
        }
        // Neither the part that finds the key nor the part that opens anything.
        let told = format!("{shown}{events}");
        assert!(!told.contains(&text[4..16]) && !told.contains(&text[16..]), "{told}");
    }
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_directive_needs_a_reason() {
    let api = Api::new().await;
    let run = api.start(json!([task("a")])).await;
    for verb in ["cancel", "pause", "skip", "rollback"] {
        let silent = api.post(&format!("/runs/{run}/{verb}"), json!({ "reason": "  " })).await;
        assert_eq!(silent.problem(), (422, "INPUT_INVALID"), "{verb}");
        let long = api.post(&format!("/runs/{run}/{verb}"), json!({ "reason": "x".repeat(5000) })).await;
        assert_eq!(long.problem(), (413, "PAYLOAD_TOO_LARGE"), "{verb}");
    }
    api.end().await;
}

/// By its key or by its position; the steps before it stay as they are.
#[tokio::test(start_paused = true)]
async fn a_rollback_goes_back_to_a_step() {
    let api = Api::new().await;
    for step in [json!("b"), json!(1)] {
        let undone = |key: &str| {
            let mut step = task(key);
            step["rollback"] = json!({ "handler": "undo" });
            step
        };
        let run = api.start(json!([undone("a"), undone("b"), undone("c")])).await;
        let session = api.register().await;
        for _ in 0..2 {
            let assignment = api.poll(&session).await;
            api.report(&session, &assignment, completed(json!(1))).await.ok();
        }
        let path = format!("/runs/{run}/rollback");
        for unknown in [json!("nowhere"), json!(3), json!("1")] {
            let refused = api.post(&path, json!({ "reason": "x", "step": unknown })).await;
            assert_eq!(refused.problem(), (404, "STEP_NOT_FOUND"), "{unknown}");
        }
        let nonsense = api.post(&path, json!({ "reason": "x", "step": { "key": "b" } })).await;
        assert_eq!(nonsense.problem(), (400, "REQUEST_INVALID"));
        let not_run = api.post(&path, json!({ "reason": "x", "step": "c" })).await;
        assert_eq!(not_run.problem(), (409, "RUN_INVALID_TRANSITION"), "{}", not_run.body);
        let began = api.post(&path, json!({ "reason": "wrong box", "step": step })).await.ok();
        assert_eq!((&began["run_id"], &began["state"]), (&json!(run), &json!("rolling_back")), "{step}");
        let assignment = api.poll(&session).await;
        assert_eq!(assignment["handler"], "undo", "{assignment}");
        api.report(&session, &assignment, completed(json!(1))).await.ok();
        assert_eq!(state_of(&api, &run).await, "failed");
        let steps = api.get(&format!("/executions/{run}")).await.ok()["steps"].clone();
        assert_eq!((&steps[0]["status"], &steps[1]["status"]), (&json!("succeeded"), &json!("rolled_back")), "{steps}");
        api.post("/agent/unregister", json!({ "session": session })).await;
    }
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_run_is_retried_or_skipped_in_place() {
    let api = Api::new().await;
    let retried = broken(&api, "pause").await;
    assert_eq!(state_of(&api, &retried).await, "paused");
    let plain = api.post(&format!("/runs/{retried}/resume"), json!({})).await;
    assert_eq!(plain.problem(), (409, "RUN_DIRECTIVE_DUE"));
    let standing = api.post(&format!("/runs/{retried}/retry"), json!({ "input": { "x": 1 } })).await;
    assert_eq!((standing.status.as_u16(), standing.text("run_id")), (200, retried.clone()));
    let session = api.register().await;
    let again = api.poll(&session).await;
    assert_eq!((&again["step"], &again["input"]), (&json!("b"), &json!({ "x": 1 })));
    api.post("/agent/unregister", json!({ "session": session })).await;
    api.post(&format!("/runs/{retried}/cancel"), json!({ "reason": "enough" })).await.ok();

    let skipped = broken(&api, "pause").await;
    api.post(&format!("/runs/{skipped}/skip"), json!({ "reason": "not needed" })).await.ok();
    let session = api.register().await;
    assert_eq!(api.poll(&session).await["step"], "c");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_run_goes_back_to_a_step() {
    let api = Api::new().await;
    let run = broken(&api, "pause").await;
    let unknown = api.post(&format!("/runs/{run}/restart"), json!({ "from": "nowhere" })).await;
    assert_eq!(unknown.problem(), (404, "STEP_NOT_FOUND"));
    api.post(&format!("/runs/{run}/restart"), json!({})).await.ok();
    let session = api.register().await;
    assert_eq!(api.poll(&session).await["step"], "a");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_has_ended_is_continued_by_a_new_one() {
    let api = Api::new().await;
    let run = broken(&api, "fail").await;
    assert_eq!(state_of(&api, &run).await, "failed");
    let changed = api.post(&format!("/runs/{run}/retry"), json!({ "input": 1 })).await;
    assert_eq!(changed.problem(), (422, "INPUT_INVALID"));

    let retried = api.post(&format!("/runs/{run}/retry"), json!({})).await;
    assert_eq!(retried.status, 201);
    let successor = api.get(&format!("/runs/{}", retried.text("run_id"))).await.ok();
    assert_eq!((&successor["resumed_from"], &successor["resume_count"]), (&json!(run), &json!(1)));
    let session = api.register().await;
    assert_eq!(api.poll(&session).await["step"], "b", "what had succeeded is used again");
    api.post("/agent/unregister", json!({ "session": session })).await;
    let path = format!("/runs/{}/cancel", retried.text("run_id"));
    api.post(&path, json!({ "reason": "enough" })).await.ok();

    // It has a successor by now: the chain goes on from there.
    for verb in ["retry", "restart"] {
        let refused = api.post(&format!("/runs/{run}/{verb}"), json!({})).await;
        assert_eq!((refused.problem(), refused.text("run_id")), ((409, "RUN_CONTINUED"), retried.text("run_id")));
    }
    let first = api.get(&format!("/runs/{run}")).await.ok();
    assert_eq!(first["continued_by"], json!(retried.text("run_id")));
    let restarted = api.post(&format!("/runs/{}/restart", retried.text("run_id")), json!({})).await;
    assert_eq!(restarted.status, 201);
    let session = api.register().await;
    assert_eq!(api.poll(&session).await["step"], "a");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_doubt_is_resolved_by_a_person() {
    let api = Api::new().await;
    let run = api.start(json!([pay()])).await;
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    let answer = unsafe_effect(&api, &session, &assignment).await.ok();
    assert_eq!(answer["answer"], "perform");
    let timeout = json!({ "class": "timeout", "code": "CARD_TIMEOUT", "message": "no answer" });
    let lost = json!({ "status": "retry", "error": timeout });
    api.report(&session, &assignment, lost).await.ok();
    assert_eq!(state_of(&api, &run).await, "paused");

    let resolution = json!({ "outcome": "happened", "output": { "charged": true }, "reason": "seen at the bank" });
    let unknown = api.post(&format!("/runs/{run}/steps/other/resolve"), resolution.clone()).await;
    assert_eq!(unknown.problem(), (404, "STEP_NOT_FOUND"));
    let resolved = api.post(&format!("/runs/{run}/steps/pay/resolve"), resolution.clone()).await.ok();
    assert_eq!(resolved["state"], "succeeded");
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["output"], json!({ "charged": true }));
    let late = api.post(&format!("/runs/{run}/steps/pay/resolve"), resolution).await;
    assert_eq!(late.problem(), (409, "RUN_TERMINAL_STATE"));
    api.end().await;
}
