//! Directives and approvals: no directive takes a run past a gate without the approvers whom it names.

use serde_json::{Value, json};

use crate::approvals::{Person, card};
use crate::harness::{Api, completed, failed, plan, task};

/// A gate of two keys that pauses the run when it is rejected, and what it guards.
fn guarded() -> Value {
    let gate = json!({ "key": "ok", "kind": "approval", "quorum": 2, "approvers": ["sre"], "message": "delete?",
        "on_reject": "pause", "on_expiry": "pause" });
    let mut delete = task("delete");
    delete["on_failure"] = json!("pause");
    plan(json!([gate, delete]))
}

struct People<'a> {
    starter: Person<'a>,
    ada: Person<'a>,
    bob: Person<'a>,
    cat: Person<'a>,
}

impl<'a> People<'a> {
    async fn of(api: &'a Api) -> Self {
        let both = || json!(["operator", "approver"]);
        Self {
            starter: Person::new(api, "sam", both(), json!(["sre"])).await,
            ada: Person::new(api, "ada", both(), json!(["sre"])).await,
            bob: Person::new(api, "bob", both(), json!(["sre"])).await,
            cat: Person::new(api, "cat", json!(["operator"]), json!([])).await,
        }
    }
}

async fn vote(api: &Api, person: &Person<'_>, run: &str, approve: bool) -> Value {
    let open = card(api, run).await;
    let path = format!("/approvals/{}/vote", open["approval"].as_str().unwrap());
    let notes = if approve { "fine" } else { "not like this" };
    person.post(&path, json!({ "approve": approve, "digest": open["digest"], "notes": notes })).await.ok()
}

#[tokio::test(start_paused = true)]
async fn a_rejected_gate_is_skipped_by_as_many_as_could_have_approved_it() {
    let api = Api::new().await;
    let people = People::of(&api).await;
    let run = people.starter.post("/runs", json!({ "plan": guarded() })).await.text("run_id");
    vote(&api, &people.ada, &run, false).await;
    let skip = format!("/runs/{run}/skip");
    let because = json!({ "reason": "the ticket says so" });

    for refused in [people.starter.post(&skip, because.clone()).await, api.post(&skip, because.clone()).await] {
        assert_eq!(refused.problem(), (403, "DIRECTIVE_NOT_PERMITTED"));
        assert!(refused.body["detail"].as_str().unwrap().contains("2 of those"), "{}", refused.body);
    }
    let outsider = people.cat.post(&skip, because.clone()).await;
    assert_eq!(outsider.problem(), (403, "DIRECTIVE_NOT_PERMITTED"));
    assert!(outsider.body["detail"].as_str().unwrap().contains("the role `approver`"), "{}", outsider.body);

    let first = people.ada.post(&skip, because.clone()).await;
    assert_eq!(first.status, 202, "{}", first.body);
    assert_eq!((&first.body["needs"]["approved"], &first.body["needs"]["needed"]), (&json!(1), &json!(2)));
    let why = api.get(&format!("/runs/{run}/why")).await.ok();
    let cause = why["because"].as_array().unwrap().iter().find(|cause| cause["cause"] == "approval").unwrap();
    assert_eq!((&cause["purpose"], &cause["approved_by"]), (&json!("skip"), &json!(["ada"])));
    let session = api.register().await;
    assert_eq!(api.poll(&session).await, Value::Null, "nothing runs yet");

    let blind = people.bob.post(&format!("/runs/{run}/approve"), json!({ "approve": true })).await;
    assert_eq!(blind.problem(), (409, "APPROVAL_DIGEST_REQUIRED"), "it is not the gate that is asked");
    let second = people.bob.post(&skip, because).await.ok();
    assert_eq!(second["needs"], Value::Null);
    assert_eq!(api.poll(&session).await["step"], "delete");
    let rows = api.get(&format!("/approvals?run={run}")).await.ok();
    let skipped = rows["approvals"].as_array().unwrap().iter().find(|row| row["purpose"] == "skip").unwrap();
    assert_eq!((&skipped["state"], skipped["votes"].as_array().unwrap().len()), (&json!("approved"), 2));
    api.end().await;
}

/// A run whose guarded step has failed after two people approved it.
async fn failed_behind_the_gate(api: &Api, people: &People<'_>, outcome: Value) -> String {
    let run = people.starter.post("/runs", json!({ "plan": guarded() })).await.text("run_id");
    vote(api, &people.ada, &run, true).await;
    vote(api, &people.bob, &run, true).await;
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    api.report(&session, &assignment, outcome).await.ok();
    api.post("/agent/unregister", json!({ "session": session })).await;
    run
}

#[tokio::test(start_paused = true)]
async fn a_changed_input_is_approved_anew_and_keeps_the_rule_on_secrets() {
    let api = Api::new().await;
    let people = People::of(&api).await;
    let run = failed_behind_the_gate(&api, &people, failed("BROKEN")).await;
    let retry = format!("/runs/{run}/retry");
    let smuggled = json!({ "input": { "target": "PRODUCTION", "pw": { "$secret": "DB" } } });
    let refused = people.starter.post(&retry, smuggled).await;
    assert_eq!(refused.problem(), (422, "INPUT_INVALID"));
    assert!(refused.body["detail"].as_str().unwrap().contains("input.pw"), "{}", refused.body);

    let changed = json!({ "input": { "target": "PRODUCTION" } });
    assert_eq!(people.starter.post(&retry, changed).await.ok()["state"], "waiting_approval");
    let open = card(&api, &run).await;
    assert_eq!(open["purpose"], "retry");
    assert!(open["message"].as_str().unwrap().contains(r#"+ target: "PRODUCTION""#), "{open}");
    let session = api.register().await;
    assert_eq!(api.poll(&session).await, Value::Null, "nobody has approved the new input");
    vote(&api, &people.ada, &run, true).await;
    vote(&api, &people.bob, &run, true).await;
    assert_eq!(api.poll(&session).await["input"], json!({ "target": "PRODUCTION" }));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_does_not_inherit_the_approval() {
    let api = Api::new().await;
    let people = People::of(&api).await;
    let run = failed_behind_the_gate(&api, &people, completed(json!("gone"))).await;
    let again = people.starter.post(&format!("/runs/{run}/restart"), json!({ "from": "delete" })).await;
    assert_eq!(again.status, 201, "{}", again.body);
    let again = again.text("run_id");
    assert_eq!(api.get(&format!("/runs/{again}")).await.ok()["state"], "waiting_approval");
    let session = api.register().await;
    assert_eq!(api.poll(&session).await, Value::Null, "one approval is one execution");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_step_that_was_not_reached_is_no_place_to_go_back_to() {
    let api = Api::new().await;
    let people = People::of(&api).await;
    let run = people.starter.post("/runs", json!({ "plan": guarded() })).await.text("run_id");
    vote(&api, &people.ada, &run, false).await;
    let refused = api.post(&format!("/runs/{run}/restart"), json!({ "from": "delete" })).await;
    assert_eq!(refused.problem(), (409, "STEP_NOT_REACHED"));
    api.end().await;
}
