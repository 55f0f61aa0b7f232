//! What a worker is refused.

use std::time::Duration;

use serde_json::{Value, json};

use super::table;
use crate::api::{Answer, Api, completed, task};
use crate::set_up::{in_doubt, intent, pay, unsafe_effect, until};

async fn of_no_session(api: &Api) -> Answer {
    api.post("/agent/nobody/complete-step", json!({})).await
}

/// A report whose assignment was changed by `change`.
async fn report(api: &Api, change: fn(&mut Value)) -> Answer {
    api.start(json!([task("a")])).await;
    let session = api.register().await;
    let mut assignment = api.poll(&session).await;
    change(&mut assignment);
    api.report(&session, &assignment, completed(json!(1))).await
}

async fn effect_of_a_canceled_run(api: &Api) -> Answer {
    let run = api.start(json!([pay()])).await;
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    api.post(&format!("/runs/{run}/cancel"), json!({ "reason": "enough" })).await.ok();
    unsafe_effect(api, &session, &assignment).await
}

async fn one_write_too_many(api: &Api) -> Answer {
    let source = "name: careful\nlimits: { writes: 1 }\nsteps: [{ id: pay, task: t, effect: keyed }]\n";
    api.post("/workflows", json!({ "source": source })).await.ok();
    api.post("/runs", json!({ "workflow": "careful" })).await.ok();
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    let path = format!("/agent/{session}/effects");
    api.post(&path, intent(&assignment, 0, "keyed")).await.ok();
    api.post(&path, intent(&assignment, 1, "keyed")).await
}

/// A run that goes on where another left off shares its keys, and its doubts.
async fn effect_in_doubt(api: &Api) -> Answer {
    let run = in_doubt(api).await;
    until(api, &run, "paused").await;
    api.post(&format!("/runs/{run}/cancel"), json!({ "reason": "enough" })).await.ok();
    api.post(&format!("/runs/{run}/restart"), json!({ "from": "pay" })).await.ok();
    let session = api.register_naming_effects().await;
    let assignment = api.poll(&session).await;
    unsafe_effect(api, &session, &assignment).await
}

async fn session_that_fell_silent(api: &Api) -> Answer {
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
    "STORE_EPOCH_STALE" => |api| report(api, |assignment| assignment["epoch"] = json!(99)).await,
    "RUN_CANCELING" => |api| effect_of_a_canceled_run(api).await,
    "RUN_WRITES_EXHAUSTED" => |api| one_write_too_many(api).await,
    "EFFECT_RECORDED" => |api| effect_in_doubt(api).await,
}

table! { WAITING:
    "SESSION_GONE" => |api| session_that_fell_silent(api).await,
}
