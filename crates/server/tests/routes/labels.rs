//! Labels of a run that has ended can be changed; nothing else about it can.

use interlock_core::tenant::identity::Role;
use interlock_server::identity::NewKey;
use serde_json::{Value, json};

use crate::harness::{Api, plan, task};

async fn found_by(api: &Api, label: &str) -> usize {
    api.get(&format!("/runs?label={label}")).await.ok()["runs"].as_array().unwrap().len()
}

async fn ended(api: &Api, labels: Value) -> String {
    let body = json!({ "plan": plan(json!([task("a")])), "labels": labels });
    let run = api.post("/runs", body).await.text("run_id");
    api.post(&format!("/runs/{run}/cancel"), json!({ "reason": "seen" })).await.ok();
    run
}

async fn set_removed_and_found(api: &Api) {
    let run = ended(api, json!({ "team": "web", "env": "dev", "kept": "1" })).await;
    let path = format!("/api/v1/runs/{run}/labels");
    let change = async |labels: Value| api.send("PATCH", &path, json!({ "labels": labels })).await;
    let before = api.get(&format!("/runs/{run}")).await.ok();
    let now = change(json!({ "env": "prod", "team": null, "cause": "disk", "absent": null })).await.ok();
    let expected = json!({ "env": "prod", "kept": "1", "cause": "disk" });
    assert_eq!((&now["labels"], &now["run_id"]), (&expected, &json!(run)));
    let mut after = api.get(&format!("/runs/{run}")).await.ok();
    assert_eq!(after["labels"], expected);
    after["labels"] = before["labels"].clone();
    assert_eq!(after, before, "nothing else has changed");
    for (label, runs) in [("env:dev", 0), ("team:web", 0), ("env:prod", 1), ("cause:disk", 1), ("kept:1", 1)] {
        assert_eq!(found_by(api, label).await, runs, "{label}");
    }
    // At once: none of them is lost.
    let many = (0..8).map(|at| {
        let (api, path) = (api, &path);
        async move { api.send("PATCH", path, json!({ "labels": { format!("at{at}"): "x" } })).await.ok() }
    });
    futures::future::join_all(many).await;
    for at in 0..8 {
        assert_eq!(found_by(api, &format!("at{at}:x")).await, 1);
    }
    for (wrong, problem) in [
        (json!({ "interlock.state": "succeeded" }), (422, "INPUT_INVALID")),
        (json!({ "input.incident": null }), (422, "INPUT_INVALID")),
        (json!({ "env": "x".repeat(5000) }), (413, "PAYLOAD_TOO_LARGE")),
        (json!({ "env": 1 }), (400, "REQUEST_INVALID")),
        ((0..40).map(|at| (format!("more{at}"), json!("x"))).collect(), (422, "INPUT_INVALID")),
    ] {
        assert_eq!(change(wrong.clone()).await.problem(), problem, "{wrong}");
    }
    let living = api.start(json!([task("a")])).await;
    let refused = api.send("PATCH", &format!("/api/v1/runs/{living}/labels"), json!({ "labels": { "a": "b" } })).await;
    assert_eq!(refused.problem(), (409, "RUN_INVALID_TRANSITION"));
    change(json!({ "kept": null, "env": null, "cause": null })).await.ok();
    assert_eq!(found_by(api, "kept:1").await, 0);
}

#[tokio::test(start_paused = true)]
async fn labels_of_an_ended_run_change_and_nothing_else() {
    let api = Api::new().await;
    set_removed_and_found(&api).await;
    api.end().await;
}

#[tokio::test]
async fn labels_of_an_ended_run_change_and_nothing_else_on_postgresql() {
    let api = Api::on_postgres("labels").await;
    set_removed_and_found(&api).await;
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_viewer_and_another_workspace_change_no_labels() {
    let api = Api::new().await;
    let run = ended(&api, json!({})).await;
    let change = json!({ "labels": { "a": "b" } });
    let path = format!("/api/v1/runs/{run}/labels");
    let viewer = NewKey::new(api.tenant, "viewer", [Role::Viewer].into_iter().collect());
    let viewer = api.with_key(&api.new_key(viewer).await);
    assert_eq!(viewer.send("PATCH", &path, change.clone()).await.problem(), (403, "PERMISSION_DENIED"));
    let mut red = NewKey::new(api.tenant, "confined", Role::ALL.iter().copied().collect());
    red.workspace = Some("red".into());
    let red = api.with_key(&api.new_key(red).await);
    assert_eq!(red.send("PATCH", &path, change).await.problem(), (404, "RUN_NOT_FOUND"));
    api.end().await;
}
