//! Names of signals: under one name there is one signal, and what one sender calls a signal for a run is in no other's way.

use axum::body::Body;
use axum::http::{Request, header};
use interlock_core::time::{Millis, Timestamp};
use interlock_store::Sweep;
use serde_json::{Value, json};

use crate::harness::{Api, ApiResponse, plan};
use crate::workspaces::confined;

/// A run that waits for what nobody sends.
async fn waiting(api: &Api) -> String {
    let steps = json!([{ "key": "w", "kind": "wait", "signal": { "type": "go" } }]);
    api.post("/runs", json!({ "plan": plan(steps) })).await.text("run_id")
}

async fn stored(api: &Api, signal_type: &str, key: &str) -> usize {
    api.engine.store().pending_signals(api.tenant, signal_type, key, Timestamp(0), 10).await.unwrap().len()
}

/// The body with one field changed.
fn with(body: &Value, field: &str, value: Value) -> Value {
    let mut body = body.clone();
    body[field] = value;
    body
}

fn assert_taken(refused: &ApiResponse, name: &str) {
    assert_eq!(refused.problem(), (409, "NAME_TAKEN"), "{}", refused.body);
    assert!(refused.text("detail").contains(&format!("`{name}`")), "{}", refused.body);
}

async fn a_name_stands_for_one_signal(api: Api) {
    let signal = json!({ "type": "stop", "key": "INC-7", "payload": { "n": 1 }, "source_id": "m-1" });
    let first = api.post("/signals", signal.clone()).await;
    assert_eq!((first.status.as_u16(), &first.body["duplicate"]), (201, &json!(false)));
    // Numbers that no double holds apart are different ones.
    let large =
        json!({ "type": "stop", "key": "INC-6", "payload": { "n": 9_007_199_254_740_992_u64 }, "source_id": "m-6" });
    assert_eq!(api.post("/signals", large.clone()).await.status, 201);
    assert_taken(
        &api.post("/signals", with(&large, "payload", json!({ "n": 9_007_199_254_740_993_u64 }))).await,
        "m-6",
    );
    // A repeat may be spelled otherwise, and belong to another trace.
    let spelled = with(&signal, "payload", json!({ "n": 1.0 }));
    for (number, repeat) in [signal.clone(), signal.clone(), spelled].into_iter().enumerate() {
        let trace = format!("00-4bf92f3577b34da6a3ce929d0e0e473{number}-00f067aa0ba902b7-01");
        let again = api.post_with("/signals", repeat, &[("traceparent", trace.as_str())]).await;
        assert_eq!((again.status.as_u16(), &again.body), (200, &json!({ "duplicate": true })));
    }
    for (field, value) in [
        ("type", json!("go")),
        ("key", json!("INC-8")),
        ("payload", json!({ "n": 2 })),
        ("payload", json!(null)),
        ("broadcast", json!(true)),
    ] {
        assert_taken(&api.post("/signals", with(&signal, field, value)).await, "m-1");
    }
    // Nothing is called by nothing: the next one without a name would be taken for this one.
    assert_eq!(api.post("/signals", with(&signal, "source_id", json!(""))).await.problem().1, "INPUT_INVALID");
    assert_eq!(stored(&api, "stop", "INC-7").await, 1);
    assert_eq!((stored(&api, "go", "INC-7").await, stored(&api, "stop", "INC-8").await), (0, 0));
    let again = api.post("/signals", signal).await;
    assert_eq!(again.body, json!({ "duplicate": true }), "what was refused has changed nothing");

    // For a run the same. One event may go to several runs, to each once.
    let (one, other) = (waiting(&api).await, waiting(&api).await);
    let send = async |run: &str, body: &Value| api.post(&format!("/runs/{run}/signals"), body.clone()).await;
    let body = json!({ "type": "stop", "payload": 1, "source_id": "m-1" });
    assert_eq!(send(&one, &body).await.status, 201);
    let again = send(&one, &body).await;
    assert_eq!((again.status.as_u16(), &again.body["duplicate"]), (200, &json!(true)));
    assert_taken(&send(&one, &with(&body, "type", json!("go"))).await, "m-1");
    assert_taken(&send(&one, &with(&body, "payload", json!(2))).await, "m-1");
    assert_eq!(send(&other, &body).await.status, 201);
    let again = send(&other, &body).await;
    assert_eq!((again.status.as_u16(), &again.body["duplicate"]), (200, &json!(true)));
    assert_eq!((stored(&api, "stop", &one).await, stored(&api, "stop", &other).await), (1, 1));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn under_one_name_one_signal_is_taken() {
    a_name_stands_for_one_signal(Api::new().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_one_name_one_signal_is_taken_on_postgres() {
    a_name_stands_for_one_signal(Api::on_postgres("signal_names").await).await;
}

/// A key that is limited to a workspace uses the names first that others are about to use.
async fn a_name_of_one_workspace_is_free_elsewhere(api: Api) {
    let limited = confined(&api).await;
    let source = "name: waits\nsteps:\n  - { id: go, wait: { signal: go } }\n";
    api.post("/workflows", json!({ "source": source })).await.ok();
    let own = limited.post("/runs", json!({ "workflow": "waits" })).await.text("run_id");
    let theirs = api.post("/runs", json!({ "workflow": "waits", "workspace": "theirs" })).await.text("run_id");
    for name in ["m-1", "m-2"] {
        let first = json!({ "type": "other", "payload": "mine", "source_id": name });
        assert_eq!(limited.post(&format!("/runs/{own}/signals"), first).await.status, 201);
    }
    let sent = api.post("/signals", json!({ "type": "stop", "key": "k", "source_id": "m-1" })).await;
    assert_eq!((sent.status.as_u16(), &sent.body["duplicate"]), (201, &json!(false)));
    assert_eq!(stored(&api, "stop", "k").await, 1);
    let sent =
        api.post(&format!("/runs/{theirs}/signals"), json!({ "type": "go", "payload": 7, "source_id": "m-2" })).await;
    assert_eq!((sent.status.as_u16(), &sent.body["duplicate"]), (201, &json!(false)));
    assert_eq!(api.get(&format!("/runs/{theirs}?wait_ms=20000")).await.ok()["state"], "succeeded");

    // For its own run a name is one name, with whichever key.
    let again = json!({ "type": "other", "payload": "mine", "source_id": "m-1" });
    let again = api.post(&format!("/runs/{own}/signals"), again).await;
    assert_eq!((again.status.as_u16(), &again.body["duplicate"]), (200, &json!(true)));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_name_of_a_signal_for_a_run_is_that_runs() {
    a_name_of_one_workspace_is_free_elsewhere(Api::new().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_of_a_signal_for_a_run_is_that_runs_on_postgres() {
    a_name_of_one_workspace_is_free_elsewhere(Api::on_postgres("signal_workspaces").await).await;
}

async fn a_repeat_is_known_when_its_run_has_ended(api: Api) {
    let run = waiting(&api).await;
    let send = async |body: &Value| api.post(&format!("/runs/{run}/signals"), body.clone()).await;
    let body = json!({ "type": "go", "payload": 1, "source_id": "m-1" });
    assert_eq!(send(&body).await.status, 201);
    assert_eq!(api.get(&format!("/runs/{run}?wait_ms=20000")).await.ok()["state"], "succeeded");
    let again = send(&body).await;
    assert_eq!((again.status.as_u16(), &again.body), (200, &json!({ "duplicate": true })));
    // Whatever it has not heard comes too late.
    for late in [with(&body, "payload", json!(2)), with(&body, "source_id", json!("m-2")), json!({ "type": "go" })] {
        assert_eq!(send(&late).await.problem(), (409, "RUN_TERMINAL_STATE"));
    }
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_repeat_of_a_signal_is_known_when_its_run_has_ended() {
    a_repeat_is_known_when_its_run_has_ended(Api::new().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_of_a_signal_is_known_when_its_run_has_ended_on_postgres() {
    a_repeat_is_known_when_its_run_has_ended(Api::on_postgres("signal_ended").await).await;
}

#[tokio::test(start_paused = true)]
async fn another_event_under_the_source_and_id_of_one_is_refused() {
    let api = Api::new().await;
    let event = json!({
        "specversion": "1.0", "id": "1", "source": "/monitor", "type": "disk.full", "subject": "db-1",
        "time": "2018-04-05T17:31:00Z", "data": { "percent": 95 },
    });
    let send = async |event: &Value| {
        let request = Request::post("/api/v1/signals")
            .header(header::HOST, "localhost")
            .header(header::AUTHORIZATION, format!("Bearer {}", api.key))
            .header(header::CONTENT_TYPE, "application/cloudevents+json");
        api.ask(request.body(Body::from(event.to_string())).unwrap()).await
    };
    assert_eq!(send(&event).await.status, 201);
    // What says nothing to a run may differ.
    for redelivered in [event.clone(), with(&event, "time", json!("2018-04-05T17:32:00Z"))] {
        let again = send(&redelivered).await;
        assert_eq!((again.status.as_u16(), &again.body["duplicate"]), (200, &json!(true)));
    }
    for (field, value) in [("type", json!("disk.gone")), ("subject", json!("db-2")), ("data", json!({ "percent": 96 }))]
    {
        assert_taken(&send(&with(&event, field, value)).await, "/monitor#1");
    }
    assert_eq!(send(&with(&event, "source", json!("/other"))).await.status, 201);
    assert_eq!(stored(&api, "disk.full", "db-1").await, 2);
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn another_signal_under_the_name_of_one_starts_nothing() {
    let api = Api::new().await;
    let source = "name: recover\non: { signal: { type: disk.full } }\ninputs: { percent: { type: integer } }\nsteps: [{ id: a, task: a }]\n";
    api.post("/workflows", json!({ "source": source })).await.ok();
    let signal = json!({ "type": "disk.full", "key": "db-1", "payload": { "percent": 95 }, "source_id": "m-1" });
    let first = api.post("/signals", signal.clone()).await;
    assert_eq!((first.status.as_u16(), first.body["runs"].as_array().map(Vec::len)), (201, Some(1)));
    assert_taken(&api.post("/signals", with(&signal, "payload", json!({ "percent": 96 }))).await, "m-1");
    let again = api.post("/signals", signal.clone()).await;
    assert_eq!((again.status.as_u16(), &again.body["runs"]), (200, &first.body["runs"]));
    let runs = async || api.get("/runs?workflow=recover").await.ok()["runs"].as_array().unwrap().len();
    assert_eq!(runs().await, 1);

    // A day later the name is free, and what comes under it then is another signal.
    let next_day = api.engine.now() + Millis::from_hours(25);
    api.engine.store().write(Sweep::new(next_day)).await.unwrap();
    let later = api.post("/signals", with(&signal, "payload", json!({ "percent": 97 }))).await;
    assert_eq!(later.status, 201, "{}", later.body);
    assert_ne!(later.body["runs"], first.body["runs"]);
    assert_eq!(runs().await, 2);
    api.end().await;
}
