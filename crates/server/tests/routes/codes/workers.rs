//! What a worker is refused.

use std::time::Duration;

use serde_json::{Value, json};

use super::table;
use crate::harness::{Api, ApiResponse, completed, task};
use crate::set_up::{intent, outcome, pay, unsafe_effect};

async fn of_no_session(api: &Api) -> ApiResponse {
    api.post("/agent/nobody/complete-step", json!({})).await
}

/// A report whose assignment was changed by `change`.
async fn report(api: &Api, change: fn(&mut Value)) -> ApiResponse {
    api.start(json!([task("a")])).await;
    let session = api.register().await;
    let mut assignment = api.poll(&session).await;
    change(&mut assignment);
    api.report(&session, &assignment, completed(json!(1))).await
}

async fn effect_of_a_canceled_run(api: &Api) -> ApiResponse {
    let run = api.start(json!([pay()])).await;
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    api.post(&format!("/runs/{run}/cancel"), json!({ "reason": "enough" })).await.ok();
    unsafe_effect(api, &session, &assignment).await
}

async fn one_write_too_many(api: &Api) -> ApiResponse {
    let source = "name: careful\nlimits: { writes: 1 }\nsteps: [{ id: pay, task: t, effect: keyed }]\n";
    api.post("/workflows", json!({ "source": source })).await.ok();
    api.post("/runs", json!({ "workflow": "careful" })).await.ok();
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    let path = format!("/agent/{session}/effects");
    api.post(&path, intent(&assignment, 0, "keyed")).await.ok();
    api.post(&path, intent(&assignment, 1, "keyed")).await
}

/// A worker says that its effect did not happen, after it has said that it did.
async fn opposite_outcome(api: &Api) -> ApiResponse {
    api.start(json!([pay()])).await;
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    let receipt = unsafe_effect(api, &session, &assignment).await.ok()["receipt"].clone();
    let path = format!("/agent/{session}/outcomes");
    let told = api.post(&path, outcome(&assignment, &receipt, true, json!("paid"))).await;
    assert_eq!(told.status, 204);
    api.post(&path, outcome(&assignment, &receipt, false, Value::Null)).await
}

/// Two runs that are about to have the same effect.
async fn effect_of_another_run(api: &Api) -> ApiResponse {
    let source = "name: told-once\nsteps:\n- id: say\n  uses: slack.post\n  with: { channel: C1, text: x }\n  \
                  idempotency: { dedupe: tenant, window: 1h }\n";
    api.post("/workflows", json!({ "source": source })).await.ok();
    let hello = json!({ "worker": "w", "queues": ["default"], "slots": 2, "capabilities": ["connector", "effects"] });
    let session = api.post("/agent/register", hello).await.ok()["session"].as_str().unwrap().to_owned();
    let path = format!("/agent/{session}/effects");
    for _ in 0..2 {
        api.post("/runs", json!({ "workflow": "told-once" })).await.ok();
    }
    let (first, second) = (api.poll(&session).await, api.poll(&session).await);
    api.post(&path, intent(&first, 0, "unsafe")).await.ok();
    api.post(&path, intent(&second, 0, "unsafe")).await
}

async fn channel_that_is_switched_off(api: &Api) -> ApiResponse {
    let tenant = api.get("/me").await.ok()["tenant"].as_str().unwrap().to_owned();
    api.send("PATCH", &format!("/api/v1/tenants/{tenant}"), json!({ "worker_channel.enabled": false })).await.ok();
    api.get("/agent/channel").await
}

/// A server whose broker is not there.
async fn broker_out_of_reach(api: &Api, settings: Value) -> ApiResponse {
    let api = api.with_options(|options| options.broker = Some("redis://127.0.0.1:9".parse().unwrap()));
    let tenant = api.get("/me").await.ok()["tenant"].as_str().unwrap().to_owned();
    api.send("PATCH", &format!("/api/v1/tenants/{tenant}"), settings).await.ok();
    api.post("/agent/broker", json!({})).await
}

/// A run that was offered to no worker.
async fn takes_what_was_not_offered(api: &Api) -> ApiResponse {
    let run = api.start(json!([task("a")])).await;
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    let mut answer = json!({ "number": 1, "answer": { "status": "acked" } });
    for field in ["tenant", "epoch"] {
        answer[field] = assignment[field].clone();
    }
    answer["run"] = json!(run);
    api.post(&format!("/agent/{session}/assignments"), answer).await
}

async fn session_that_fell_silent(api: &Api) -> ApiResponse {
    let session = api.register().await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    api.post("/agent/poll", json!({ "session": session, "max": 1 })).await
}

table! { TABLE:
    "SESSION_GONE" => |api| of_no_session(api).await,
    "WORKER_ALIVE" => |api| {
        let session = api.register().await;
        api.send("DELETE", &format!("/api/v1/workers/{session}"), json!({})).await
    },
    "WORKER_IDENTITY_NOT_FOUND" => |api| api.send("DELETE", "/api/v1/worker-identities/nobody", json!({})).await,
    "ENROLMENT_UNAVAILABLE" => |api| api.post("/agent/enrol", json!({ "token": "x", "request": "x" })).await,
    "CERTIFICATE_REQUIRED" => |api| api.post("/agent/renew", json!({ "request": "x" })).await,
    "WORKER_NOT_FOUND" => |api| api.get("/workers/nobody").await,
    "STEP_STALE_ATTEMPT" => |api| report(api, |assignment| assignment["attempt"] = json!(7)).await,
    "ASSIGNMENT_OVER" => |api| takes_what_was_not_offered(api).await,
    "STORE_EPOCH_STALE" => |api| report(api, |assignment| assignment["epoch"] = json!(99)).await,
    "RUN_CANCELING" => |api| effect_of_a_canceled_run(api).await,
    "RUN_WRITES_EXHAUSTED" => |api| one_write_too_many(api).await,
    "EFFECT_RECORDED" => |api| opposite_outcome(api).await,
    "EFFECT_ELSEWHERE" => |api| effect_of_another_run(api).await,
    "BROKER_NOT_CONFIGURED" => |api| api.post("/agent/broker", json!({})).await,
    "BROKER_DISABLED" => |api| broker_out_of_reach(api, json!({ "worker_broker.enabled": false })).await,
    "BROKER_UNAVAILABLE" => |api| broker_out_of_reach(api, json!({ "worker_broker.enabled": true })).await,
    "CHANNEL_DISABLED" => |api| channel_that_is_switched_off(api).await,
}

table! { WAITING:
    "SESSION_GONE" => |api| session_that_fell_silent(api).await,
}
