//! One action on many runs.

use std::time::Duration;

use interlock_core::bulk::BulkAction;
use interlock_core::ids::{JobId, RunId};
use interlock_core::json::Json;
use interlock_core::run::change::Context;
use interlock_core::state::Initiator;
use interlock_engine::IdempotencyKey;
use interlock_store::{BulkJob, PutBulkJob};
use serde_json::{Value, json};

use crate::harness::{Api, failed, plan, task};

async fn start(api: &Api, label: &str) -> String {
    let body = json!({ "plan": plan(json!([task("a")])), "labels": { "batch": label } });
    api.post("/runs", body).await.text("run_id")
}

/// Waits until a job has finished. Time is paused: it passes while all tasks wait.
async fn finished(api: &Api, job: &str) -> Value {
    for _ in 0..1_000 {
        let seen = api.get(&format!("/bulk/{job}")).await.ok();
        if seen["finished"] == true {
            return seen;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the job does not end");
}

#[tokio::test(start_paused = true)]
async fn what_was_previewed_is_what_is_done() {
    let api = Api::new().await;
    let mut wanted = Vec::new();
    for _ in 0..40 {
        wanted.push(start(&api, "old").await);
    }
    let other = start(&api, "new").await;
    let filter = json!({ "labels": { "batch": "old" }, "state": "pending" });
    let preview = api.post("/bulk/preview", json!({ "filter": filter })).await.ok();
    assert_eq!((&preview["count"], preview["sample"].as_array().unwrap().len()), (&json!(40), 10));

    let mut body = json!({ "action": "cancel", "filter": filter, "expected_count": 39, "reason": "cleaning up" });
    assert_eq!(api.post("/bulk", body.clone()).await.problem(), (409, "BULK_COUNT_MISMATCH"));
    body["expected_count"] = json!(40);
    let made = api.post("/bulk", body).await;
    assert_eq!((made.status.as_u16(), &made.body["total"]), (201, &json!(40)));
    // Too late for the job: its runs are fixed.
    let late = start(&api, "old").await;

    let ended = finished(&api, &made.text("job_id")).await;
    assert_eq!((&ended["done"], &ended["succeeded"], &ended["failed"]), (&json!(40), &json!(40), &json!(0)));
    for run in &wanted {
        assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["state"], "canceled");
    }
    for run in [other, late] {
        assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["state"], "pending");
    }
    let listed = api.get("/bulk?limit=1").await.ok();
    assert_eq!(listed["jobs"][0], ended);
    // What has ended is not counted among those to cancel.
    let all = json!({ "labels": { "batch": "old" } });
    let preview = api.post("/bulk/preview", json!({ "filter": all, "action": "cancel" })).await.ok();
    assert_eq!(preview["count"], json!(1), "{preview}");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_filter_is_needed_and_no_matches_are_no_work() {
    let api = Api::new().await;
    let body = |filter: Value| json!({ "action": "resume", "filter": filter, "expected_count": 0, "reason": "why" });
    assert_eq!(api.post("/bulk", body(json!({}))).await.problem(), (422, "INPUT_INVALID"));
    assert_eq!(api.post("/bulk/preview", json!({ "filter": {} })).await.problem(), (422, "INPUT_INVALID"));
    let crowded = json!({ "labels": { "a": "1", "b": "1", "c": "1", "d": "1" } });
    assert_eq!(api.post("/bulk", body(crowded)).await.problem(), (422, "INPUT_INVALID"));
    let none = api.post("/bulk", body(json!({ "workflow": "nobody's" }))).await;
    assert_eq!((none.status.as_u16(), &none.body["finished"], &none.body["total"]), (201, &json!(true), &json!(0)));
    for job in ["job_000000000000000000000000000000ff", "7"] {
        assert_eq!(api.get(&format!("/bulk/{job}")).await.problem(), (404, "BULK_NOT_FOUND"));
        assert_eq!(api.get(&format!("/bulk/{job}/failures")).await.problem(), (404, "BULK_NOT_FOUND"));
    }
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_done_is_told_run_by_run() {
    let api = Api::new().await;
    let (good, running) = (start(&api, "x").await, start(&api, "x").await);
    api.post(&format!("/runs/{good}/pause"), json!({ "reason": "why" })).await.ok();
    let filter = json!({ "labels": { "batch": "x" } });
    let body = json!({ "action": "resume", "filter": filter, "expected_count": 2, "reason": "go on" });
    let job = api.post("/bulk", body).await.text("job_id");
    let ended = finished(&api, &job).await;
    assert_eq!((&ended["succeeded"], &ended["failed"]), (&json!(1), &json!(1)));
    let failures = api.get(&format!("/bulk/{job}/failures")).await.ok();
    assert_eq!(failures["failures"].as_array().unwrap().len(), 1);
    assert_eq!(failures["failures"][0]["run_id"], json!(running));
    assert_eq!(failures["failures"][0]["code"], "RUN_INVALID_TRANSITION");
    api.end().await;
}

/// A server was lost after it had acted on some runs and before it could write that down: the server that takes the job
/// over finds what was done, and does the rest.
#[tokio::test(start_paused = true)]
async fn a_job_that_is_taken_over_does_nothing_twice() {
    let api = Api::new().await;
    let session = api.register().await;
    let mut runs: Vec<RunId> = Vec::new();
    for _ in 0..3 {
        runs.push(start(&api, "y").await.parse().unwrap());
        let assignment = api.poll(&session).await;
        api.report(&session, &assignment, failed("BROKEN")).await.ok();
    }
    let paused = start(&api, "y").await;
    api.post(&format!("/runs/{paused}/pause"), json!({ "reason": "why" })).await.ok();
    runs.push(paused.parse().unwrap());
    let (engine, tenant) = (&api.engine, api.tenant);
    let id = JobId(engine.fresh_id());
    let mark = Some(Json::trusted(format!(r#"{{"bulk_job":"{id}"}}"#)));
    // As it is noted of a key without an owner.
    let by = Context { metadata: mark, ..Context::by(Initiator::Operator) }.telling("key_name", "deploy-bot");
    // What the lost server did: the first run as a new one, and the paused one in place.
    let key = IdempotencyKey { client: "interlock.bulk".into(), key: format!("{id}:0") };
    engine.runs().resume_as_new(tenant, runs[0], None, Some(key), by.clone()).await.unwrap();
    engine.runs().resume(tenant, runs[3], by.clone()).await.unwrap();
    let count = async || api.get("/runs?label=batch:y").await.ok()["runs"].as_array().unwrap().len();
    assert_eq!(count().await, 5);

    let job = BulkJob {
        id,
        action: BulkAction::Retry,
        filter: Json::trusted("{}"),
        reason: "again".into(),
        rollback: false,
        person: None,
        key: Some("deploy-bot".into()),
        maker: None,
        total: 4,
        runs,
        next: 0,
        succeeded: 0,
        failed: 0,
        created_at: engine.now(),
        finished_at: None,
    };
    engine.store().write(PutBulkJob { tenant, job }).await.unwrap();
    let ended = finished(&api, &id.to_string()).await;
    assert_eq!((&ended["succeeded"], &ended["failed"]), (&json!(4), &json!(0)));
    assert_eq!(count().await, 7, "two more runs were made, and none twice");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_is_made_once_under_a_key() {
    let api = Api::new().await;
    start(&api, "z").await;
    let body = |reason: &str| json!({ "action": "cancel", "filter": { "labels": { "batch": "z" } }, "expected_count": 1, "reason": reason });
    let headers = [("idempotency-key", "k1")];
    let first = api.post_with("/bulk", body("a"), &headers).await;
    let again = api.post_with("/bulk", body("a"), &headers).await;
    assert_eq!((first.status.as_u16(), again.status.as_u16()), (201, 201));
    assert_eq!(first.body, again.body);
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(api.post_with("/bulk", body("b"), &headers).await.problem(), (422, "IDEMPOTENCY_MISMATCH"));
    assert_eq!(api.get("/bulk").await.ok()["jobs"].as_array().unwrap().len(), 1);

    // What failed may be tried again under its key, but not for ever.
    let wrong =
        json!({ "action": "cancel", "filter": { "labels": { "batch": "z" } }, "expected_count": 9, "reason": "r" });
    let headers = [("idempotency-key", "k2")];
    for _ in 0..3 {
        let answer = api.post_with("/bulk", wrong.clone(), &headers).await;
        assert_eq!(answer.problem(), (409, "BULK_COUNT_MISMATCH"));
    }
    assert_eq!(api.post_with("/bulk", wrong, &headers).await.problem(), (409, "IDEMPOTENCY_SPENT"));
    api.end().await;
}
