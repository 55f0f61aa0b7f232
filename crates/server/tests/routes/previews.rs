//! What a rollback would undo is told without anything being done.

use serde_json::json;

use crate::harness::{Api, plan, task};

#[tokio::test]
async fn a_preview_of_a_rollback_changes_nothing() {
    let api = Api::new().await;
    let run = api.post("/runs", json!({ "plan": plan(json!([task("a"), task("b")])) })).await.text("run_id");
    let before = api.get(&format!("/runs/{run}")).await.ok();
    let preview = api.get(&format!("/runs/{run}/rollback")).await.ok();
    assert_eq!((&preview["undone"], &preview["left"]), (&json!([]), &json!([])), "nothing has been done yet");
    assert!(preview["asks"].as_str().unwrap().starts_with("nobody"));
    api.get(&format!("/runs/{run}/rollback?step=a")).await.ok();
    assert_eq!(api.get(&format!("/runs/{run}/rollback?step=z")).await.problem(), (404, "STEP_NOT_FOUND"));
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok(), before);
    api.end().await;
}
