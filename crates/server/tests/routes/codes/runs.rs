//! Runs that do not take what they are told, and requests that are repeated.

use interlock_core::json::canonical_hash;
use interlock_core::limits::SUBJECT_QUEUE_MAX;
use interlock_engine::IdempotencyKey;
use interlock_engine::commands::once::OnceRequest;
use serde_json::{Value, json};

use super::{CodeSource, table};
use crate::harness::{Api, ApiResponse, completed, failed, plan, task};
use crate::set_up::{broken, canceled, pay, unsafe_effect, until};

async fn direct(api: &Api, run: &str, verb: &str, body: Value) -> ApiResponse {
    api.post(&format!("/runs/{run}/{verb}"), body).await
}

async fn start(api: &Api, subject: &str, on_conflict: &str) -> ApiResponse {
    let plan = plan(json!([task("a")]));
    api.post("/runs", json!({ "plan": plan, "subject": subject, "on_conflict": on_conflict })).await
}

async fn resumed_while_it_runs(api: &Api) -> ApiResponse {
    let run = api.start(json!([task("a")])).await;
    direct(api, &run, "resume", json!({})).await
}

async fn back_to_what_was_not_reached(api: &Api) -> ApiResponse {
    let run = broken(api, "pause").await;
    direct(api, &run, "restart", json!({ "from": "c" })).await
}

async fn continued_twice(api: &Api) -> ApiResponse {
    let run = canceled(api).await;
    direct(api, &run, "retry", json!({})).await.ok();
    direct(api, &run, "retry", json!({})).await
}

async fn without_its_checkpoint(api: &Api) -> ApiResponse {
    let mut pay = pay();
    pay["resumable"] = json!(false);
    let run = api.start(json!([pay, task("b")])).await;
    let session = api.register().await;
    let first = api.poll(&session).await;
    api.report(&session, &first, completed(json!(1))).await.ok();
    let second = api.poll(&session).await;
    api.report(&session, &second, failed("BROKEN")).await.ok();
    until(api, &run, "failed").await;
    direct(api, &run, "retry", json!({})).await
}

async fn busy_subject(api: &Api) -> ApiResponse {
    start(api, "db", "reject").await.ok();
    start(api, "db", "reject").await
}

async fn long_queue(api: &Api) -> ApiResponse {
    for _ in 0..=SUBJECT_QUEUE_MAX {
        start(api, "db", "queue").await.ok();
    }
    start(api, "db", "queue").await
}

async fn under_one_key(api: &Api, first: Value, second: Value) -> ApiResponse {
    let headers = [("idempotency-key", "same")];
    api.post_with("/runs", first, &headers).await.ok();
    api.post_with("/runs", second, &headers).await
}

fn a_start(subject: &str) -> Value {
    json!({ "plan": plan(json!([task("a")])), "subject": subject })
}

async fn key_of_last_week(api: &Api) -> ApiResponse {
    let headers = [("idempotency-key", "same")];
    api.post_with("/runs", a_start("a"), &headers).await.ok();
    // A day is long for an engine that looks at its clock many times a second: it is set forward instead.
    api.engine.clock().adjust(25 * 3_600_000);
    api.post_with("/runs", a_start("a"), &headers).await
}

async fn key_under_way(api: &Api) -> ApiResponse {
    let made = api.post("/keys", json!({ "name": "asking", "roles": ["admin"] })).await.ok();
    let asking = api.with_key(made["text"].as_str().unwrap());
    let body = json!({ "name": "new", "roles": ["viewer"] });
    let key = IdempotencyKey { client: made["client"].as_str().unwrap().to_owned(), key: "same".to_owned() };
    let hash = canonical_hash(&body).unwrap();
    // Another server has begun it.
    api.engine
        .requests()
        .begin_once(&OnceRequest { tenant: api.tenant, key, source: "keys".to_owned(), hash })
        .await
        .unwrap();
    asking.post_with("/keys", body, &[("idempotency-key", "same")]).await
}

/// A job whose count is wrong, as often as its key lets it be tried.
async fn wrong_count(api: &Api, times: usize) -> ApiResponse {
    let body = json!({ "action": "cancel", "filter": { "subject": "x" }, "expected_count": 9, "reason": "r" });
    for _ in 1..times {
        api.post_with("/bulk", body.clone(), &[("idempotency-key", "k")]).await;
    }
    api.post_with("/bulk", body, &[("idempotency-key", "k")]).await
}

/// The step's time is up and its worker is well: until its lease has ended, the effect may yet be sent.
async fn denied_too_early(api: &Api) -> ApiResponse {
    let mut step = pay();
    step["timeout"] = json!(1_000);
    let run = api.start(json!([step])).await;
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    unsafe_effect(api, &session, &assignment).await.ok();
    until(api, &run, "paused").await;
    let path = format!("/runs/{run}/steps/pay/resolve");
    api.post(&path, json!({ "outcome": "did_not_happen", "reason": "not at the bank" })).await
}

async fn worker_not_heard_of(api: &Api) -> CodeSource {
    let run = api.start(json!([task("a")])).await;
    let session = api.register().await;
    api.poll(&session).await;
    api.engine.clock().adjust(6 * 60_000);
    let why = api.get(&format!("/runs/{run}/why")).await.ok();
    CodeSource::InAnswer(why["because"][0]["code"].as_str().unwrap_or_else(|| panic!("{why}")).to_owned())
}

async fn evidence_too_early(api: &Api) -> ApiResponse {
    let run = api.start(json!([task("a")])).await;
    api.get(&format!("/runs/{run}/evidence")).await
}

async fn unknown_bundle(api: &Api) -> ApiResponse {
    let run = canceled(api).await;
    loop {
        let answer = api.get(&format!("/runs/{run}/evidence?number=9")).await;
        if answer.status != 503 {
            return answer;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

table! { TABLE:
    "EVIDENCE_NOT_DUE" => |api| evidence_too_early(api).await,
    "EVIDENCE_NOT_FOUND" => |api| unknown_bundle(api).await,
    "STEP_NOT_FOUND" => |api| direct(api, &broken(api, "pause").await, "restart", json!({ "from": "nowhere" })).await,
    "RUN_TERMINAL_STATE" => |api| direct(api, &canceled(api).await, "cancel", json!({ "reason": "again" })).await,
    "RUN_INVALID_TRANSITION" => |api| resumed_while_it_runs(api).await,
    "STEP_NOT_REACHED" => |api| back_to_what_was_not_reached(api).await,
    "RUN_DIRECTIVE_DUE" => |api| direct(api, &broken(api, "pause").await, "resume", json!({})).await,
    "RUN_RESUME_FAILED" => |api| without_its_checkpoint(api).await,
    "RUN_CONTINUED" => |api| continued_twice(api).await,
    "RUN_SUBJECT_BUSY" => |api| busy_subject(api).await,
    "IDEMPOTENCY_MISMATCH" => |api| under_one_key(api, a_start("a"), a_start("b")).await,
    "IDEMPOTENCY_CONFLICT" => |api| key_under_way(api).await,
    "IDEMPOTENCY_SPENT" => |api| wrong_count(api, 4).await,
    "BULK_COUNT_MISMATCH" => |api| wrong_count(api, 1).await,
}

table! { WAITING:
    "RUN_SUBJECT_QUEUE_FULL" => |api| long_queue(api).await,
    "IDEMPOTENCY_EXPIRED" => |api| key_of_last_week(api).await,
    "EFFECT_UNDER_WAY" => |api| denied_too_early(api).await,
    "RUN_ORPHANED" => |api| worker_not_heard_of(api).await,
}
