//! What an operator looks at: workers, queues, attempts, and everything at one glance.

use std::time::Duration;

use interlock_core::tenant::identity::Role;
use interlock_server::identity::NewKey;
use serde_json::{Value, json};

use crate::harness::{Api, completed, plan, task};

fn kinds(status: &Value) -> Vec<&str> {
    status["problems"].as_array().unwrap().iter().map(|problem| problem["kind"].as_str().unwrap()).collect()
}

/// From an idle tenant to a step that waits, one that runs, and one whose worker has died.
async fn workers_queues_and_status(api: &Api) {
    let idle = api.get("/status").await.ok();
    assert_eq!((kinds(&idle), &idle["runs"]), (vec![], &json!([])), "{idle}");
    assert_eq!(api.get("/workers").await.ok()["workers"], json!([]));

    let run = api.start(json!([task("a")])).await;
    let waiting = api.get("/status").await.ok();
    assert_eq!(kinds(&waiting), ["queue_without_workers"], "{waiting}");
    let queue = &waiting["queues"][0];
    assert_eq!((&queue["queue"], &queue["ready"], &queue["workers"]), (&json!("default"), &json!(1), &json!(0)));
    assert!(queue["oldest_ready_at"].is_i64(), "{queue}");

    let session = api.register().await;
    let assignment = api.poll(&session).await;
    let running = api.get("/status").await.ok();
    assert_eq!(kinds(&running), Vec::<&str>::new(), "{running}");
    assert_eq!(running["runs"][0]["state"], "running");
    let worker = &api.get("/workers").await.ok()["workers"][0];
    assert_eq!((&worker["worker"], &worker["running"], &worker["slots"]), (&json!("test"), &json!(1), &json!(10)));
    assert_eq!((&worker["state"], &worker["silent"]), (&json!("online"), &json!(false)));
    let shown = api.get(&format!("/workers/{session}")).await.ok();
    assert_eq!((&shown["worker"], &shown["holds"][0]["run_id"]), (&json!("test"), &json!(run)));
    assert_eq!(shown["holds"][0]["step"], "a", "{shown}");
    assert_eq!(api.get("/workers/ses_nobody").await.problem(), (404, "WORKER_NOT_FOUND"));
    let why = api.get(&format!("/runs/{run}/why")).await.ok();
    assert_eq!((&why["because"][0]["cause"], &why["because"][0]["worker"]), (&json!("running"), &json!("test")));
    let attempts = api.get(&format!("/runs/{run}/attempts")).await.ok();
    let attempt = &attempts["attempts"][0];
    assert_eq!((&attempt["step"], &attempt["worker"]), (&json!("a"), &json!("test")));
    assert_eq!(attempt["outcome"], "running");

    api.report(&session, &assignment, completed(json!(1))).await.ok();
    let attempts = api.get(&format!("/runs/{run}/attempts")).await.ok();
    assert_eq!(attempts["attempts"][0]["outcome"], "completed", "{attempts}");
    assert!(attempts["attempts"][0]["ended_at"].is_i64(), "{attempts}");
    assert_eq!(api.get("/runs/run_000000000000000000000000000000ff/attempts").await.problem(), (404, "RUN_NOT_FOUND"));
    let idle = api.get("/queues").await.ok();
    assert_eq!((&idle["queues"][0]["ready"], &idle["queues"][0]["workers"]), (&json!(0), &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn what_waits_what_runs_and_who_has_it() {
    let api = Api::new().await;
    workers_queues_and_status(&api).await;
    api.end().await;
}

#[tokio::test]
async fn what_waits_what_runs_and_who_has_it_on_postgresql() {
    let api = Api::on_postgres("operations").await;
    workers_queues_and_status(&api).await;
    api.end().await;
}

/// Long before its lease is over.
#[tokio::test(start_paused = true)]
async fn a_dead_worker_is_named_within_seconds() {
    let api = Api::new().await;
    let run = api.start(json!([task("a")])).await;
    let session = api.register().await;
    api.poll(&session).await;
    tokio::time::advance(Duration::from_secs(12)).await;
    let why = api.get(&format!("/runs/{run}/why")).await.ok();
    let cause = &why["because"][0];
    assert_eq!((&cause["cause"], &cause["worker"]), (&json!("silent"), &json!("test")), "{why}");
    assert!(cause["lease_expires_at"].as_i64() > cause["last_heartbeat_at"].as_i64(), "{why}");
    assert_eq!(why["next"], json!(["start_worker", "cancel"]), "nobody else would take it");
    let status = api.get("/status").await.ok();
    assert_eq!(kinds(&status), ["worker_silent"], "{status}");
    assert!(
        status["problems"][0]["text"].as_str().unwrap().contains("worker `test` has 1 step and is silent"),
        "{status}"
    );
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_oldest_run_that_waits_for_a_person_says_why() {
    let api = Api::new().await;
    let gate = json!([{ "key": "sure", "kind": "approval", "message": "Delete it?" }, task("a")]);
    let asked = api.post("/runs", json!({ "plan": plan(gate.clone()), "subject": "T-1" })).await.text("run_id");
    tokio::time::advance(Duration::from_secs(1)).await;
    api.post("/runs", json!({ "plan": plan(gate), "subject": "T-2" })).await.ok();
    let status = api.get("/status").await.ok();
    assert_eq!((&status["need_a_person"], kinds(&status)), (&json!(2), vec![]), "{status}");
    let oldest = &status["oldest"][0];
    assert_eq!((&oldest["run_id"], &oldest["subject"]), (&json!(asked), &json!("T-1")));
    assert_eq!(oldest["because"][0]["cause"], "approval");
    assert_eq!(status["approvals"][0]["message"], "Delete it?");
    let needy = api.get("/runs?state=paused&state=waiting_approval").await.ok();
    assert_eq!(needy["runs"].as_array().unwrap().len(), 2);
    assert_eq!(api.get("/runs?state=paused&state=failed").await.ok()["runs"], json!([]));
    api.end().await;
}

/// It is written from the feed, a moment behind it.
#[tokio::test(start_paused = true)]
async fn the_status_says_how_far_the_audit_log_is() {
    let api = Api::new().await;
    api.start(json!([task("a")])).await;
    let mut status = api.get("/status").await.ok();
    let is_written = |status: &Value| status["audit"]["entries"].as_u64() > Some(0) && status["audit"]["lag_ms"] == 0;
    for _ in 0..200 {
        if is_written(&status) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        status = api.get("/status").await.ok();
    }
    assert!(is_written(&status), "{status}");
    api.end().await;
}

/// A key limited to a workspace sees its runs and queues, and nothing of the tenant as a whole.
#[tokio::test(start_paused = true)]
async fn a_confined_key_sees_the_status_of_its_workspace() {
    let api = Api::new().await;
    let mut new = NewKey::new(api.tenant, "confined", Role::ALL.iter().copied().collect());
    new.workspace = Some("red".into());
    let red = api.with_key(&api.new_key(new).await);
    api.post("/runs", json!({ "plan": plan(json!([task("a")])), "workspace": "blue" })).await.ok();
    api.register().await;
    let status = red.get("/status").await.ok();
    for list in ["runs", "queues", "workers", "endpoints", "problems"] {
        assert_eq!(status[list], json!([]), "{list} of {status}");
    }
    assert_eq!((&status["feed"], &status["audit"]), (&Value::Null, &Value::Null));
    assert_eq!(red.get("/workers").await.problem(), (403, "PERMISSION_DENIED"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn runs_are_found_by_a_text_and_unsearchable_inputs_are_refused() {
    let api = Api::new().await;
    let source = "name: w\ninputs: { sha: { type: string }, pr: { type: string, searchable: true } }\n\
                  steps: [{ id: a, task: t }]\n";
    api.post("/workflows", json!({ "source": source })).await.ok();
    let start = json!({ "workflow": "w", "subject": "Order-41931", "labels": { "team": "sales" },
        "inputs": { "sha": "no-hex", "pr": "pr-77" } });
    let run = api.post("/runs", start).await.text("run_id");
    api.start(json!([task("a")])).await;
    for text in ["order-419", "SALES", "pr-7", &run[24..]] {
        let list = api.get(&format!("/runs?text={text}")).await.ok();
        let ids: Vec<_> = list["runs"].as_array().unwrap().iter().map(|found| &found["run_id"]).collect();
        assert_eq!(ids, [&json!(run)], "{text}");
    }
    assert_eq!(api.get("/runs?text=nothing").await.ok(), json!({ "runs": [] }));
    assert_eq!(api.get("/runs?text=no-hex").await.ok()["runs"], json!([]), "inputs are not looked through");
    assert_eq!(api.get("/runs?input=pr:pr-77").await.ok()["runs"][0]["run_id"], json!(run));
    for query in ["input=sha:no-hex", "workflow=w&input=sha:no-hex"] {
        let refused = api.get(&format!("/runs?{query}")).await;
        assert_eq!(refused.problem(), (422, "INPUT_INVALID"), "{query}");
        let detail = refused.text("detail");
        assert!(detail.contains("`searchable: true` under `inputs.sha`"), "{detail}");
    }
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn events_come_newest_first_and_say_who_caused_them() {
    let api = Api::new().await;
    let run = api.start(json!([task("a")])).await;
    api.post(&format!("/runs/{run}/cancel"), json!({ "reason": "not today" })).await.ok();
    let mut newest = Value::Null;
    for _ in 0..100 {
        newest = api.get("/events?order=newest&limit=1").await.ok();
        if newest["events"][0]["type"] == "session.canceled" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let last = &newest["events"][0];
    assert_eq!((&last["type"], &last["payload"]["reason"]), (&json!("session.canceled"), &json!("not today")));
    assert_eq!(last["context"]["reason"], "not today");
    assert!(last["context"]["person"].is_string() || last["context"]["initiator"] == "operator", "{last}");
    let before = newest["next_before"].as_str().unwrap().to_owned();
    let older = api.get(&format!("/events?order=newest&before={before}&limit=500")).await.ok();
    let names: Vec<_> = older["events"].as_array().unwrap().iter().map(|event| &event["type"]).collect();
    assert_eq!(names.last(), Some(&&json!("session.created")), "{names:?}");
    assert_eq!(older["next_before"], Value::Null);
    let from = api.engine.now().0 + 60_000;
    assert_eq!(api.get(&format!("/events?order=newest&from={from}")).await.ok()["events"], json!([]));
    assert_eq!(api.get("/events?before=3").await.problem(), (400, "REQUEST_INVALID"));
    assert_eq!(api.get("/events?order=newest&wait_ms=5").await.problem(), (400, "REQUEST_INVALID"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_step_tells_what_it_was_given_and_its_phase() {
    let api = Api::new().await;
    let source = "name: w\ninputs: { host: { type: string } }\nsteps:\n\
                  \x20 - { id: look, task: t, phase: prechecks, with: { host: \"${{ inputs.host }}\" } }\n\
                  \x20 - { id: work, task: t, with: { seen: \"${{ steps.look.output }}\" } }\n";
    api.post("/workflows", json!({ "source": source })).await.ok();
    let run = api.post("/runs", json!({ "workflow": "w", "inputs": { "host": "db-1" } })).await.text("run_id");
    let steps = api.get(&format!("/runs/{run}/steps")).await.ok();
    assert_eq!(steps["steps"][0]["input"], json!({ "host": "db-1" }), "{steps}");
    assert_eq!((&steps["steps"][0]["phase"], &steps["steps"][1]["phase"]), (&json!("prechecks"), &Value::Null));
    assert_eq!(steps["steps"][1]["input"], Value::Null, "{steps}");
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    api.report(&session, &assignment, completed(json!("up"))).await.ok();
    let steps = api.get(&format!("/runs/{run}/steps")).await.ok();
    assert_eq!(steps["steps"][0]["input"], json!({ "host": "db-1" }), "{steps}");
    assert_eq!(steps["steps"][1]["input"], json!({ "seen": "up" }), "{steps}");
    api.end().await;
}
