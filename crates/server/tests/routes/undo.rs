//! A run that has succeeded is rolled back by a new one, with a preview, and with approval where its effects demand it.

use serde_json::{Value, json};

use crate::approvals::Person;
use crate::harness::{Api, completed, task};
use crate::set_up::{state_of, until};

fn undoable(key: &str) -> Value {
    let mut step = task(key);
    step["rollback"] = json!({ "handler": format!("un{key}") });
    step
}

/// Does what it is asked to do, and answers by which handlers.
async fn works(api: &Api, session: &str, times: usize) -> Vec<Value> {
    let mut handlers = Vec::new();
    for _ in 0..times {
        let assignment = api.poll(session).await;
        api.report(session, &assignment, completed(json!(1))).await.ok();
        handlers.push(assignment["handler"].clone());
    }
    handlers
}

fn keys(preview: &Value, field: &str) -> Vec<Value> {
    preview[field].as_array().unwrap().iter().map(|step| step["step"].clone()).collect()
}

async fn undone_by_a_new_run(api: &Api) {
    let mut left = task("b");
    left["effect"] = json!("unsafe");
    let run = api.start(json!([undoable("a"), left, undoable("c")])).await;
    let session = api.register().await;
    works(api, &session, 3).await;
    assert_eq!(state_of(api, &run).await, "succeeded");
    let path = format!("/runs/{run}/rollback");
    let preview = api.get(&path).await.ok();
    assert_eq!((keys(&preview, "undone"), keys(&preview, "left")), (vec![json!("c"), json!("a")], vec![json!("b")]));
    assert!(preview["asks"].as_str().unwrap().contains("policy"), "{preview}");

    let made = api.post(&path, json!({ "reason": "a mistake", "step": "c" })).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let part = made.text("run_id");
    let living = api.post(&path, json!({ "reason": "again" })).await;
    assert_eq!(living.problem(), (409, "RUN_CONTINUED"), "{}", living.body);
    assert_eq!(works(api, &session, 1).await, ["unc"]);
    until(api, &part, "succeeded").await;
    let preview = api.get(&path).await.ok();
    assert_eq!(keys(&preview, "undone"), ["a"], "what is undone is not listed again: {preview}");

    let rest = api.post(&path, json!({ "reason": "the rest" })).await.text("run_id");
    assert_eq!(works(api, &session, 1).await, ["una"]);
    let shown = until(api, &rest, "succeeded").await;
    assert_eq!((&shown["resumed_from"], &shown["trigger"]["type"]), (&json!(part), &json!("rollback")), "{shown}");
    assert_eq!(shown["trigger"]["ref"], json!(run));
    let no = api.post(&path, json!({ "reason": "once more" })).await;
    assert_eq!(no.problem(), (409, "RUN_INVALID_TRANSITION"), "{}", no.body);
    assert!(no.body["detail"].as_str().unwrap().contains("nothing in run"), "{}", no.body);
    assert_eq!(api.get(&path).await.ok()["undone"], json!([]));
    assert_eq!(state_of(api, &run).await, "succeeded", "the run itself stays what it was");
    let events = api.get(&format!("/runs/{part}/events")).await.ok().to_string();
    assert!(events.contains("a mistake"), "{events}");
    api.post("/agent/unregister", json!({ "session": session })).await;
}

#[tokio::test(start_paused = true)]
async fn a_succeeded_run_is_undone_by_a_new_one() {
    let api = Api::new().await;
    undone_by_a_new_run(&api).await;
    api.end().await;
}

#[tokio::test]
async fn a_succeeded_run_is_undone_by_a_new_one_on_postgresql() {
    let api = Api::on_postgres("undo").await;
    undone_by_a_new_run(&api).await;
    api.end().await;
}

/// A run whose first step people have agreed to, and did; its second is done too.
async fn agreed_and_done(api: &Api, session: &str) -> String {
    let source =
        "name: w\nsteps:\n  - { id: a, task: a, critical: true, rollback: { task: undo } }\n  - { id: b, task: b }\n";
    api.post("/workflows", json!({ "source": source })).await.ok();
    let run = api.post("/runs", json!({ "workflow": "w" })).await.text("run_id");
    until(api, &run, "waiting_approval").await;
    let ada = Person::new(api, "ada", json!(["approver"]), json!([])).await;
    let asked = api.get(&format!("/approvals?run={run}")).await.ok()["approvals"][0].clone();
    let path = format!("/approvals/{}/vote", asked["approval"].as_str().unwrap());
    ada.post(&path, json!({ "approve": true, "digest": asked["digest"] })).await.ok();
    works(api, session, 2).await;
    until(api, &run, "succeeded").await;
    run
}

/// What undoes the first step was judged, and waits for people.
async fn asks_before_it_undoes(api: &Api, run: &str) {
    let decided = api.get(&format!("/runs/{run}/decisions")).await.ok();
    let last = decided["decisions"].as_array().unwrap().last().expect("it was judged").clone();
    assert_eq!((&last["operation"], &last["verdict"]), (&json!("undo"), &json!("needs_approval")), "{decided}");
    assert_eq!(crate::approvals::card(api, run).await["state"], "requested", "people are asked before it acts");
}

/// What undoes a step while the run fails is covered by the step's own approval. Who undoes it afterwards begins something new.
#[tokio::test(start_paused = true)]
async fn what_undoes_it_needs_approval_like_anything_new() {
    let api = Api::new().await;
    let session = api.register().await;
    let run = agreed_and_done(&api, &session).await;
    let undo = api.post(&format!("/runs/{run}/rollback"), json!({ "reason": "a mistake" })).await.text("run_id");
    asks_before_it_undoes(&api, &undo).await;
    // No approver has agreed yet, so it can be withdrawn, and asked for again.
    api.post(&format!("/runs/{undo}/cancel"), json!({ "reason": "not after all" })).await.ok();
    until(&api, &undo, "canceled").await;
    let again = api.post(&format!("/runs/{run}/rollback"), json!({ "reason": "after all" })).await.text("run_id");
    asks_before_it_undoes(&api, &again).await;
    api.end().await;
}

/// Nor does a new run that has taken the step over make it its own to undo.
#[tokio::test(start_paused = true)]
async fn who_begins_again_behind_a_step_is_asked_before_undoing_it() {
    let api = Api::new().await;
    let session = api.register().await;
    let run = agreed_and_done(&api, &session).await;
    let again = api.post(&format!("/runs/{run}/restart"), json!({ "from": "b" })).await.text("run_id");
    assert_ne!(again, run);
    let preview = api.get(&format!("/runs/{again}/rollback")).await.ok();
    assert!(preview.to_string().contains("needs_approval"), "{preview}");
    api.post(&format!("/runs/{again}/rollback"), json!({ "reason": "a way around" })).await.ok();
    asks_before_it_undoes(&api, &again).await;
    api.end().await;
}
