//! The calls of workers, as they look on the wire.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Api, attempt, completed, failed, task};
use crate::set_up::{intent, outcome, pay, unsafe_effect};

#[tokio::test(start_paused = true)]
async fn a_session_is_registered_renewed_and_ended() {
    let api = Api::new().await;
    let hello = json!({ "worker": "host:1", "queues": ["default"], "slots": 4, "build_id": "abc" });
    let registered = api.post("/agent/register", hello).await.ok();
    assert_eq!((&registered["lease_ms"], &registered["renew_every_ms"]), (&json!(20_000), &json!(5_000)));
    let session = registered["session"].as_str().unwrap();

    let heartbeat = json!({ "session": session, "held": [] });
    let renewed = api.post("/agent/heartbeat", heartbeat.clone()).await.ok();
    let takes = ["round_trip_ms", "poll.round_trip_ms"];
    assert_eq!(registered["takes"], json!(takes));
    assert_eq!(renewed, json!({ "lease_ms": 20_000, "stop": [], "known": true, "takes": takes }));
    assert_eq!(api.post("/agent/unregister", json!({ "session": session })).await.status, 204);

    let after = api.post("/agent/heartbeat", heartbeat).await.ok();
    assert_eq!(after["known"], false);
    let poll = api.post("/agent/poll", json!({ "session": session, "max": 1 })).await;
    assert_eq!(poll.problem(), (410, "SESSION_GONE"));
    let (tenant, run) = (format!("ten_{:032x}", 1), format!("run_{:032x}", 1));
    let held = json!([{ "tenant": tenant, "run": run, "position": 0, "attempt": 1, "lease": 5 }]);
    let unread = api.post("/agent/heartbeat", json!({ "session": session, "held": held })).await;
    assert_eq!(unread.problem(), (400, "REQUEST_INVALID"));
    assert!(unread.text("detail").contains("unknown field `held.0.lease`"), "{}", unread.body);

    let nobody = api.post("/agent/nobody/complete-step", json!({})).await;
    assert_eq!(nobody.problem(), (410, "SESSION_GONE"));
    api.end().await;
}

/// A message that comes twice is one: it begins no second session, and hands out nothing more.
#[tokio::test(start_paused = true)]
async fn a_call_that_comes_again_under_its_name_is_discarded() {
    let api = Api::new().await;
    for _ in 0..2 {
        api.start(json!([task("a")])).await;
    }
    let hello = json!({ "worker": "host:1", "queues": ["default"], "slots": 4 });
    let register = async |key: &str, hello: &Value| {
        let registered = api.post_with("/agent/register", hello.clone(), &[("idempotency-key", key)]).await.ok();
        registered["session"].as_str().unwrap().to_owned()
    };
    let (first, again) = tokio::join!(register("r-1", &hello), register("r-1", &hello));
    assert_eq!(first, again);
    assert_ne!(first, register("r-2", &hello).await, "another call");
    let other = json!({ "worker": "host:2", "queues": ["default"], "slots": 4 });
    assert_ne!(first, register("r-1", &other).await, "another worker's call");
    let spelled_otherwise = json!({ "slots": 4, "worker": "host:1", "queues": ["default"], "labels": {} });
    assert_eq!(first, register("r-1", &spelled_otherwise).await);

    let poll = async |key: &str| {
        let body = json!({ "session": first, "max": 1, "wait_ms": 5000 });
        let polled = api.post_with("/agent/poll", body, &[("idempotency-key", key)]).await.ok();
        polled["assignments"].as_array().unwrap().len()
    };
    assert_eq!((poll("p-1").await, poll("p-1").await, poll("p-2").await), (1, 0, 1));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn another_registration_under_the_key_of_an_earlier_one_is_refused() {
    let api = Api::new().await;
    let register = async |hello: Value| api.post_with("/agent/register", hello, &[("idempotency-key", "r-1")]).await;
    let hello = json!({ "worker": "host:1", "queues": ["default"], "slots": 4 });
    let first = register(hello.clone()).await.text("session");
    for (field, value) in [
        ("queues", json!(["default", "slow"])),
        ("slots", json!(5)),
        ("tasks", json!(["a"])),
        ("capabilities", json!(["effects"])),
        ("build_id", json!("2")),
        ("environments", json!(["prod"])),
        ("labels", json!({ "rack": "a" })),
    ] {
        let mut other = hello.clone();
        other[field] = value;
        assert_eq!(register(other).await.problem(), (422, "IDEMPOTENCY_MISMATCH"), "{field}");
    }
    assert_eq!(register(hello.clone()).await.text("session"), first, "the first one still counts");
    // The key is free again once the first one is forgotten.
    tokio::time::sleep(Duration::from_secs(121)).await;
    let mut other = hello;
    other["slots"] = json!(5);
    assert_ne!(register(other).await.text("session"), first);
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_cannot_be_is_refused() {
    let api = Api::new().await;
    for hello in [
        json!({ "worker": "w", "queues": [], "slots": 1 }),
        json!({ "worker": "w", "queues": ["default"], "slots": 0 }),
        json!({ "worker": "w", "queues": ["default"], "slots": 1_000_000 }),
        json!({ "worker": "", "queues": ["default"], "slots": 1 }),
        json!({ "worker": "w", "queues": ["interlock.transform"], "slots": 1 }),
        json!({ "worker": "w", "queues": vec!["q"; 65], "slots": 1 }),
        json!({ "worker": "w", "queues": ["default"], "slots": 1, "tasks": vec!["t"; 1_001] }),
        json!({ "worker": "w", "queues": ["default"], "slots": 1, "tasks": [""] }),
        json!({ "worker": "w", "queues": ["default"], "slots": 1, "capabilities": vec!["c"; 65] }),
        json!({ "worker": "w", "queues": ["default"], "slots": 1, "capabilities": ["effects", "label:rack=a"] }),
        json!({ "worker": "w", "queues": ["default"], "slots": 1, "capabilities": ["max_latency_ms:5"] }),
        json!({ "worker": "w", "queues": ["default"], "slots": 1, "capabilities": ["segment:vpc-a"] }),
    ] {
        let refused = api.post("/agent/register", hello.clone()).await;
        assert_eq!(refused.problem(), (422, "INPUT_INVALID"), "{hello}");
    }
    let misspelt = json!({ "worker": "w", "queues": ["default"], "slots": 1, "labels": [] });
    assert_eq!(api.post("/agent/register", misspelt).await.problem(), (400, "REQUEST_INVALID"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_over_is_refused() {
    let api = Api::new().await;
    let run = api.start(json!([task("a")])).await;
    let session = api.register().await;
    let mut assignment = api.poll(&session).await;
    assert_eq!(assignment["run"], json!(run));
    assignment["attempt"] = json!(7);
    let stale = api.report(&session, &assignment, completed(json!(1))).await;
    assert_eq!(stale.problem(), (409, "STEP_STALE_ATTEMPT"));
    assignment["epoch"] = json!(99);
    let restored = api.report(&session, &assignment, completed(json!(1))).await;
    assert_eq!(restored.problem(), (409, "STORE_EPOCH_STALE"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn another_report_than_the_first_is_refused() {
    let api = Api::new().await;
    let run = api.start(json!([task("a")])).await;
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    assert_eq!(api.report(&session, &assignment, completed(json!(1))).await.ok()["recorded"], true);
    assert_eq!(api.report(&session, &assignment, completed(json!(1))).await.ok()["recorded"], false);
    for other in [completed(json!(2)), failed("NO"), json!({ "status": "released" })] {
        let refused = api.report(&session, &assignment, other.clone()).await;
        assert_eq!(refused.problem(), (409, "STEP_STALE_ATTEMPT"), "{other}");
        assert!(refused.text("detail").contains("was reported before, as completed"), "{}", refused.body);
    }
    assert_eq!(api.get(&format!("/runs/{run}?wait_ms=1000")).await.ok()["output"], 1);
    api.end().await;
}

/// As long as all payloads may be; an effect with a longer response has happened all the same.
#[tokio::test(start_paused = true)]
async fn an_effect_has_a_name_and_is_no_longer_than_a_payload() {
    let api = Api::new().await;
    api.start(json!([pay()])).await;
    let session = api.register_naming_effects().await;
    let assignment = api.poll(&session).await;
    let (effects, outcomes) = (format!("/agent/{session}/effects"), format!("/agent/{session}/outcomes"));
    let too_long = Value::String("x".repeat(1 << 20));
    let mut long = intent(&assignment, 0, "unsafe");
    long["request"] = too_long.clone();
    assert_eq!(api.post(&effects, long).await.problem(), (413, "PAYLOAD_TOO_LARGE"));
    for template in ["", " "] {
        let mut unnamed = intent(&assignment, 0, "unsafe");
        unnamed["template"] = json!(template);
        let refused = api.post(&effects, unnamed).await;
        assert_eq!(refused.problem(), (422, "INPUT_INVALID"), "{template:?}");
        assert!(refused.text("detail").contains("`template` is empty"), "{}", refused.body);
    }
    let receipt = unsafe_effect(&api, &session, &assignment).await.ok()["receipt"].clone();
    let told = api.post(&outcomes, outcome(&assignment, &receipt, true, too_long)).await;
    assert_eq!(told.problem(), (413, "PAYLOAD_TOO_LARGE"));
    let told = api.post(&outcomes, outcome(&assignment, &receipt, true, Value::Null)).await;
    assert_eq!(told.status, 204, "{}", told.body);
    api.report(&session, &assignment, completed(json!(1))).await.ok();
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_canceled_attempt_is_stopped_by_the_heartbeat() {
    let api = Api::new().await;
    let run = api.start(json!([task("a")])).await;
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    let mut held = attempt(&assignment);
    held.as_object_mut().unwrap().remove("epoch");
    api.post(&format!("/runs/{run}/cancel"), json!({ "reason": "wrong order" })).await.ok();
    let heartbeat = json!({ "session": session, "held": [held] });
    let renewed = api.post("/agent/heartbeat", heartbeat).await.ok();
    assert_eq!(renewed["stop"], json!([held]));
    api.report(&session, &assignment, json!({ "status": "released" })).await.ok();
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["state"], "canceled");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_effect_is_performed_once() {
    let api = Api::new().await;
    api.start(json!([task("pay")])).await;
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    let intent = intent(&assignment, 0, "keyed");
    let effects = format!("/agent/{session}/effects");
    let answer = api.post(&effects, intent.clone()).await.ok();
    assert_eq!(answer["answer"], "perform");
    assert!(answer["key"].as_str().unwrap().starts_with("card:charge#"), "{answer}");

    let outcome = outcome(&assignment, &answer["receipt"], true, json!({ "id": "ch_1" }));
    let outcomes = format!("/agent/{session}/outcomes");
    assert_eq!(api.post(&outcomes, outcome.clone()).await.status, 204);
    assert_eq!(api.post(&outcomes, outcome).await.status, 204, "a repeat is harmless");

    let again = api.post(&effects, intent).await.ok();
    let performed = json!({ "answer": "performed", "receipt": answer["receipt"], "response": { "id": "ch_1" } });
    assert_eq!(again, performed);
    api.end().await;
}

/// What a worker says about an unsafe effect is the best evidence there is, also when its session is over by then.
#[tokio::test(start_paused = true)]
async fn an_outcome_of_a_session_that_is_over_settles_the_doubt() {
    let api = Api::new().await;
    let run = api.start(json!([pay()])).await;
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    let answer = unsafe_effect(&api, &session, &assignment).await.ok();

    // The worker is silent until its session is over and the run is in doubt.
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["state"], "paused");
    let renewed = api.post("/agent/heartbeat", json!({ "session": session, "held": [] })).await.ok();
    assert_eq!(renewed["known"], false);

    let more = api.post(&format!("/agent/{session}/effects"), intent(&assignment, 1, "unsafe")).await;
    assert_eq!(more.problem(), (410, "SESSION_GONE"), "it may not begin anything new");
    let outcome = outcome(&assignment, &answer["receipt"], true, json!("paid"));
    let path = format!("/agent/{session}/outcomes");
    assert_eq!(api.post(&path, outcome.clone()).await.status, 204);
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["state"], "running");
    let late = api.report(&session, &assignment, completed(json!(1))).await;
    assert_eq!(late.problem(), (409, "STEP_STALE_ATTEMPT"), "an attempt that is over stays over");
    let other = api.with_key(&api.other_key).post(&path, outcome).await;
    assert_eq!(other.problem(), (410, "SESSION_GONE"), "a session of another tenant does not exist");
    api.end().await;
}
