//! The limits of a workflow file, as a run meets them.

use serde_json::{Value, json};

use crate::harness::{Api, ApiResponse, completed, failed};
use crate::set_up::intent;

async fn apply(api: &Api, source: &str) -> Value {
    api.post("/workflows", json!({ "source": source })).await.ok()
}

async fn start(api: &Api, workflow: &str) -> String {
    let started = api.post("/runs", json!({ "workflow": workflow, "inputs": {} })).await.ok();
    started["run_id"].as_str().unwrap().to_owned()
}

async fn look(api: &Api, run: &str) -> Value {
    api.get(&format!("/runs/{run}")).await.ok()
}

async fn why(api: &Api, run: &str) -> Value {
    api.get(&format!("/runs/{run}/why")).await.ok()
}

#[tokio::test(start_paused = true)]
async fn of_two_runs_one_waits_and_says_why() {
    let api = Api::new().await;
    let applied = apply(&api, "name: one-by-one\nlimits: { concurrency: 1 }\nsteps: [{ id: a, task: t }]\n").await;
    assert!(applied["warnings"].as_array().is_none_or(Vec::is_empty), "it is enforced: {applied}");
    apply(&api, "name: free\nsteps: [{ id: a, task: t }]\n").await;
    let (first, second) = (start(&api, "one-by-one").await, start(&api, "one-by-one").await);
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    assert_eq!(assignment["run"], json!(first));
    // The next poll finds only the one that has to wait.
    assert_eq!(api.poll(&session).await, Value::Null);
    let free = start(&api, "free").await;
    assert_eq!(api.poll(&session).await["run"], json!(free), "another workflow does not wait with it");

    assert_eq!(look(&api, &first).await["detail"], Value::Null);
    let held = look(&api, &second).await;
    assert_eq!((&held["state"], &held["detail"]), (&json!("pending"), &json!("throttled")));
    let because = why(&api, &second).await;
    let limit = json!({ "cause": "throttled", "limit_of": "workflow", "limit": "concurrency", "max": 1 });
    assert_eq!((&because["because"][0], &because["next"][0]), (&limit, &json!("wait")));

    api.report(&session, &assignment, completed(json!(1))).await.ok();
    let next = api.poll(&session).await;
    assert_eq!(next["run"], json!(second));
    assert_eq!(
        (&look(&api, &second).await["detail"], &why(&api, &second).await["because"][0]["cause"]),
        (&Value::Null, &json!("running"))
    );
    api.report(&session, &next, completed(json!(1))).await.ok();
    assert_eq!(look(&api, &second).await["state"], "succeeded");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn runs_over_the_rate_wait_for_their_time() {
    let api = Api::new().await;
    apply(&api, "name: rationed\nlimits: { runs_per_min: 1 }\nsteps: [{ id: a, task: t }]\n").await;
    let (first, second) = (start(&api, "rationed").await, start(&api, "rationed").await);
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    assert_eq!(assignment["run"], json!(first));
    api.report(&session, &assignment, completed(json!(1))).await.ok();
    assert_eq!(api.poll(&session).await, Value::Null);
    let because = why(&api, &second).await["because"][0].clone();
    assert_eq!((&because["limit"], &because["limit_of"]), (&json!("runs_per_min"), &json!("workflow")));
    assert!(because["until"].is_i64(), "{because}");
    let mut claimed = Value::Null;
    for _ in 0..12 {
        // No worker renews the first session while the minute passes.
        claimed = api.poll(&api.register().await).await;
        if claimed != Value::Null {
            break;
        }
    }
    assert_eq!(claimed["run"], json!(second), "a minute has passed");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_write_too_many_ends_the_run() {
    let api = Api::new().await;
    apply(&api, "name: careful\nlimits: { writes: 1 }\nsteps: [{ id: pay, task: t, effect: keyed }]\n").await;
    let run = start(&api, "careful").await;
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    let write = async |number: u32, effect: &str| -> ApiResponse {
        api.post(&format!("/agent/{session}/effects"), intent(&assignment, number, effect)).await
    };
    assert_eq!(write(0, "keyed").await.ok()["answer"], "perform");
    assert_eq!(write(1, "read").await.ok()["answer"], "perform");
    assert_eq!(write(2, "keyed").await.problem(), (409, "RUN_WRITES_EXHAUSTED"));
    // What a worker does with that: the step fails with the code that it was given.
    api.report(&session, &assignment, failed("RUN_WRITES_EXHAUSTED")).await.ok();
    let ended = look(&api, &run).await;
    assert_eq!((&ended["state"], &ended["reason"]), (&json!("failed"), &json!("writes_exhausted")));
    api.end().await;
}

/// A step that names no effect is a write as well: the run ends before the one that is too many is handed out.
#[tokio::test(start_paused = true)]
async fn a_step_that_names_no_effect_counts_as_a_write() {
    let api = Api::new().await;
    let source = "name: quiet\nlimits: { writes: 2 }\nsteps:\n- { id: look, task: t, effect: read }\n- { id: a, task: t }\n\
                  - { id: b, task: t, effect: keyed }\n- { id: c, task: t }\n";
    apply(&api, source).await;
    let run = start(&api, "quiet").await;
    let session = api.register().await;
    for step in ["look", "a", "b"] {
        let assignment = api.poll(&session).await;
        assert_eq!(assignment["step"], step);
        if step == "a" {
            // Another try is no other write.
            let error = json!({ "class": "unavailable", "code": "TRY_AGAIN", "message": "no" });
            let retry = json!({ "status": "retry", "error": error, "backoff": 1 });
            api.report(&session, &assignment, retry).await.ok();
            let again = api.poll(&session).await;
            api.report(&session, &again, completed(json!(1))).await.ok();
        } else {
            api.report(&session, &assignment, completed(json!(1))).await.ok();
        }
    }
    let polled = api.post("/agent/poll", json!({ "session": session, "max": 1, "wait_ms": 100 })).await.ok();
    assert_eq!(polled["assignments"], json!([]), "the third write is not handed out");
    let ended = look(&api, &run).await;
    assert_eq!((&ended["state"], &ended["reason"]), (&json!("failed"), &json!("writes_exhausted")), "{ended}");
    api.end().await;
}

/// What a task's own code has cost stands on the attempt, adds up on the run, and counts.
#[tokio::test(start_paused = true)]
async fn spending_too_much_ends_the_run() {
    let api = Api::new().await;
    let source =
        "name: thrifty\nlimits: { spend: 0.5 }\nsteps: [{ id: a, task: t }, { id: b, task: t }, { id: c, task: t }]\n";
    apply(&api, source).await;
    let run = start(&api, "thrifty").await;
    let session = api.register().await;
    let path = format!("/agent/{session}/complete-step");
    for micros in [200_000, 300_000] {
        let mut report = crate::harness::attempt(&api.poll(&session).await);
        report["outcome"] = crate::harness::completed(json!(1));
        report["cost"] = json!({ "micros": -1 });
        assert_eq!(api.post(&path, report.clone()).await.problem().0, 400);
        report["cost"] = json!({ "micros": micros, "model": "m", "output_tokens": 7 });
        api.post(&path, report).await.ok();
    }
    let ended = look(&api, &run).await;
    assert_eq!((&ended["state"], &ended["reason"]), (&json!("failed"), &json!("spend_exhausted")));
    assert_eq!(ended["spent_micros"], 500_000);
    let attempts = api.get(&format!("/runs/{run}/attempts")).await.ok();
    assert_eq!(attempts["attempts"][1]["cost"], json!({ "micros": 300_000, "model": "m", "output_tokens": 7 }));
    let why = api.get(&format!("/runs/{run}/steps")).await.ok();
    assert!(why["steps"][2]["error"].to_string().contains("has spent 0.5 of the 0.5"), "{why}");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn costs_are_reported_in_the_unit_that_the_workflow_names() {
    let api = Api::new().await;
    let steps = "steps: [{ id: a, task: t }, { id: b, task: t }]\n";
    apply(&api, &format!("name: thrifty\nlimits: {{ spend: 2, unit: credits }}\n{steps}")).await;
    apply(&api, &format!("name: unnamed\nlimits: {{ spend: 2 }}\n{steps}")).await;
    let session = api.register().await;
    let path = format!("/agent/{session}/complete-step");

    let run = start(&api, "thrifty").await;
    let mut report = crate::harness::attempt(&api.poll(&session).await);
    report["outcome"] = crate::harness::completed(json!(1));
    report["cost"] = json!({ "micros": 2_000_000, "unit": "USD" });
    let refused = api.post(&path, report.clone()).await;
    assert_eq!(refused.problem(), (422, "INPUT_INVALID"));
    assert!(refused.body.to_string().contains("report it in `credits`"), "{}", refused.body);
    assert_eq!(look(&api, &run).await["spent_micros"], json!(null), "nothing of it counts");
    report["cost"] = json!({ "micros": 2_000_000 });
    api.post(&path, report).await.ok();
    let ended = look(&api, &run).await;
    assert_eq!((&ended["spent_micros"], &ended["spent_unit"]), (&json!(2_000_000), &json!("credits")));
    assert_eq!((&ended["state"], &ended["reason"]), (&json!("failed"), &json!("spend_exhausted")));
    let attempts = api.get(&format!("/runs/{run}/attempts")).await.ok();
    assert_eq!(attempts["attempts"][0]["cost"], json!({ "micros": 2_000_000, "unit": "credits" }));
    let steps = api.get(&format!("/runs/{run}/steps")).await.ok();
    assert!(steps["steps"][1]["error"].to_string().contains("has spent 2 of the 2 credits"), "{steps}");

    start(&api, "unnamed").await;
    let mut report = crate::harness::attempt(&api.poll(&session).await);
    report["outcome"] = crate::harness::completed(json!(1));
    report["cost"] = json!({ "micros": 5, "unit": "EUR" });
    let refused = api.post(&path, report).await;
    assert_eq!(refused.problem(), (422, "INPUT_INVALID"));
    assert!(refused.body.to_string().contains("limits: { unit: EUR }"), "{}", refused.body);
    api.end().await;
}
