//! Starting runs and looking at them.

use std::time::Duration;

use axum::http::header;
use serde_json::{Value, json};

use crate::harness::{Api, completed, plan, task};

#[tokio::test(start_paused = true)]
async fn a_run_from_start_to_end() {
    let api = Api::new().await;
    let body = json!({
        "plan": plan(json!([
            { "key": "fetch", "kind": "task", "handler": "fetch", "with": { "order": "${{ inputs.order }}" } },
            task("store"),
        ])),
        "inputs": { "order": "o-1" },
        "subject": "order o-1",
        "labels": { "team": "sales" },
    });
    let started = api.post("/runs", body).await;
    assert_eq!(started.status, 201);
    let run = started.text("run_id");
    assert_eq!(started.headers[header::LOCATION], format!("/api/v1/runs/{run}"));

    let fresh = api.get(&format!("/runs/{run}")).await.ok();
    assert_eq!((&fresh["state"], &fresh["workflow"]), (&json!("pending"), &json!("demo")));
    assert_eq!((&fresh["subject"], &fresh["labels"]), (&json!("order o-1"), &json!({ "team": "sales" })));

    let session = api.register().await;
    let first = api.poll(&session).await;
    assert_eq!((&first["step"], &first["input"]), (&json!("fetch"), &json!({ "order": "o-1" })));
    let next = api.report(&session, &first, completed(json!(1))).await.ok();
    assert_eq!((&next["recorded"], next.get("next")), (&json!(true), None));
    let second = api.poll(&session).await;
    api.report(&session, &second, completed(json!({ "stored": 2 }))).await.ok();

    let ended = api.get(&format!("/runs/{run}?wait_ms=1000")).await.ok();
    assert_eq!((&ended["state"], &ended["output"]), (&json!("succeeded"), &json!({ "stored": 2 })));
    assert!(ended["finished_at"].is_i64() && ended["duration_ms"].is_u64(), "{ended}");

    let steps = api.get(&format!("/runs/{run}/steps")).await.ok();
    let states: Vec<_> = steps["steps"].as_array().unwrap().iter().map(|step| (&step["key"], &step["state"])).collect();
    assert_eq!(states, [(&json!("fetch"), &json!("succeeded")), (&json!("store"), &json!("succeeded"))]);
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_next_step_comes_with_the_answer_if_the_worker_asks_for_it() {
    let api = Api::new().await;
    api.start(json!([task("a"), task("b")])).await;
    let session = api.register().await;
    let first = api.poll(&session).await;
    let mut report = crate::harness::attempt(&first);
    report["outcome"] = completed(json!(1));
    report["claim_next"] = json!(true);
    let path = format!("/agent/{session}/complete-step");
    let answer = api.post(&path, report.clone()).await.ok();
    assert_eq!(answer["next"]["step"], "b");
    // The answer was lost: the same report gets the same step, claimed once.
    let again = api.post(&path, report).await.ok();
    assert_eq!((&again["next"], &again["recorded"]), (&answer["next"], &json!(false)));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn events_are_dense_and_can_be_waited_for() {
    let api = Api::new().await;
    let run = api.start(json!([task("a")])).await;
    let events = api.get(&format!("/runs/{run}/events")).await.ok();
    assert_eq!(events["events"][0]["seq"], 1);
    assert_eq!(events["events"][0]["type"], "session.created");
    let since = events["last_event_id"].as_str().unwrap().to_owned();

    let waiting = async { api.get(&format!("/runs/{run}/events?since={since}&wait_ms=60000")).await.ok() };
    let working = async {
        let session = api.register().await;
        api.poll(&session).await
    };
    let (news, _) = tokio::join!(waiting, working);
    assert_eq!(news["events"][0]["seq"], since.parse::<u64>().unwrap() + 1, "{news}");

    let until = news["last_event_id"].as_str().unwrap().to_owned();
    for ahead in [u64::MAX - 1, u64::MAX] {
        let refused = api.get(&format!("/events?last_event_id={ahead}")).await;
        assert_eq!(refused.problem(), (409, "LIVE_CURSOR_AHEAD"), "{ahead}");
    }
    let nothing = api.get(&format!("/runs/{run}/events?last_event_id={until}&wait_ms=10")).await.ok();
    assert_eq!(nothing, json!({ "events": [], "last_event_id": until }));
    let few = api.get(&format!("/runs/{run}/events?limit=1")).await.ok();
    assert_eq!((few["events"].as_array().unwrap().len(), &few["last_event_id"]), (1, &json!("1")));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_repeated_request_is_one_request() {
    let api = Api::new().await;
    let body = |subject: &str| json!({ "plan": plan(json!([task("a")])), "subject": subject });
    for name in ["idempotency-key", "x-idempotency-key", "x-request-id"] {
        let (key, subject) = (format!("key of {name}"), format!("subject of {name}"));
        let headers = [(name, key.as_str())];
        let first = api.post_with("/runs", body(&subject), &headers).await;
        let again = api.post_with("/runs", body(&subject), &headers).await;
        assert_eq!((first.status.as_u16(), again.status.as_u16()), (201, 201));
        assert_eq!(first.body, again.body);
        assert!(!first.headers.contains_key("idempotency-replayed"));
        assert_eq!(again.headers["idempotency-replayed"], "true");

        let other = api.post_with("/runs", body("another one"), &headers).await;
        assert_eq!(other.problem(), (422, "IDEMPOTENCY_MISMATCH"));
    }
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn one_active_run_per_subject() {
    let api = Api::new().await;
    let body = json!({ "plan": plan(json!([task("a")])), "subject": "INC-7" });
    let run = api.post("/runs", body.clone()).await.text("run_id");
    let busy = api.post("/runs", body).await;
    assert_eq!(busy.problem(), (409, "RUN_SUBJECT_BUSY"));
    assert_eq!(busy.text("run_id"), run, "the refusal names the run that is active");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn lists_are_filtered_and_paged() {
    let api = Api::new().await;
    let mut runs = Vec::new();
    for number in 0..5 {
        let parity = if number % 2 == 0 { "even" } else { "odd" };
        let body = json!({ "plan": plan(json!([task("a")])), "labels": { "parity": parity } });
        runs.push(api.post("/runs", body).await.ok()["run_id"].clone());
        // Ids sort by their millisecond.
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    runs.reverse();
    let ids = |list: &Value| -> Vec<Value> {
        list["runs"].as_array().unwrap().iter().map(|run| run["run_id"].clone()).collect()
    };
    let first = api.get("/runs?limit=3").await.ok();
    assert_eq!(ids(&first), runs[..3]);
    let after = first["next_after"].as_str().unwrap();
    let second = api.get(&format!("/runs?limit=3&after={after}")).await.ok();
    assert_eq!((ids(&second), second.get("next_after")), (runs[3..].to_vec(), None));

    let even = api.get("/runs?label=parity:even").await.ok();
    assert_eq!(ids(&even).len(), 3);
    let running = api.get("/runs?state=running").await.ok();
    assert_eq!(ids(&running).len(), 0);
    let elsewhere = api.with_key(&api.other_key).get("/runs").await.ok();
    assert_eq!(ids(&elsewhere).len(), 0);
    api.end().await;
}

#[tokio::test]
async fn a_tenant_may_say_that_a_request_id_is_no_idempotency_key() {
    let api = Api::new().await;
    let start = async |name: &str| {
        let body = json!({ "plan": plan(json!([task("a")])) });
        api.post_with("/runs", body, &[(name, "proxy-1")]).await.text("run_id")
    };
    assert_eq!(start("x-request-id").await, start("x-request-id").await);
    let tenant = format!("/api/v1/tenants/{}", api.tenant);
    api.send("PATCH", &tenant, json!({ "request_id_is_key": false })).await.ok();
    assert_ne!(start("x-request-id").await, start("x-request-id").await, "a proxy's name is no key any more");
    assert_eq!(start("idempotency-key").await, start("idempotency-key").await);
    api.end().await;
}

/// A plan that came with a request has none of a workflow's rules, and is not called like one.
#[tokio::test(start_paused = true)]
async fn a_plan_does_not_pass_for_a_workflow() {
    let api = Api::new().await;
    let given = plan(json!([task("a")]));
    let name = given["workflow"].as_str().unwrap().to_owned();
    api.post("/workflows", json!({ "source": format!("name: {name}\nsteps:\n  - {{ id: a, task: a }}\n") })).await.ok();
    let refused = api.post("/runs", json!({ "plan": given })).await;
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert!(refused.text("detail").contains("start it by its name"), "{}", refused.body);
    api.end().await;
}
