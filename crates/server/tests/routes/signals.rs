//! Messages from outside.

use interlock_core::time::Timestamp;
use serde_json::json;

use crate::harness::{Api, plan};

fn waiting() -> serde_json::Value {
    plan(json!([{ "key": "w", "kind": "wait", "signal": { "type": "go" } }]))
}

#[tokio::test(start_paused = true)]
async fn a_signal_wakes_the_run_it_is_for() {
    let api = Api::new().await;
    let run = api.post("/runs", json!({ "plan": waiting() })).await.text("run_id");
    let sent = api.post(&format!("/runs/{run}/signals"), json!({ "type": "go", "payload": { "by": "me" } })).await;
    assert_eq!(sent.status, 201);
    assert_eq!(sent.body["duplicate"], false);
    let ended = api.get(&format!("/runs/{run}?wait_ms=5000")).await.ok();
    assert_eq!((&ended["state"], &ended["output"]), (&json!("succeeded"), &json!({ "by": "me" })));

    let late = api.post(&format!("/runs/{run}/signals"), json!({ "type": "go" })).await;
    assert_eq!(late.problem(), (409, "RUN_TERMINAL_STATE"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_signal_finds_its_wait_by_key_and_counts_once() {
    let api = Api::new().await;
    let body = json!({ "plan": waiting(), "subject": "INC-7" });
    let run = api.post("/runs", body).await.text("run_id");
    let signal = json!({ "type": "go", "key": "INC-7", "payload": 1, "source_id": "m-1" });
    assert_eq!(api.post("/signals", signal.clone()).await.status, 201);
    let ended = api.get(&format!("/runs/{run}?wait_ms=5000")).await.ok();
    assert_eq!(ended["state"], "succeeded");

    let again = api.post("/signals", signal).await;
    assert_eq!((again.status.as_u16(), &again.body), (200, &json!({ "duplicate": true })));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn signals_that_cannot_be_are_refused() {
    let api = Api::new().await;
    let nameless = api.post("/signals", json!({ "type": "", "key": "k" })).await;
    assert_eq!(nameless.problem(), (422, "INPUT_INVALID"));
    let elsewhere = api.post("/signals", json!({ "tenant": api.other_tenant, "type": "go", "key": "k" })).await;
    assert_eq!(elsewhere.problem(), (400, "REQUEST_INVALID"), "the key names the tenant");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_cloud_event_is_a_signal_in_either_mode() {
    let api = Api::new().await;
    let first = api.post("/runs", json!({ "plan": waiting(), "subject": "INC-1" })).await.text("run_id");
    let second = api.post("/runs", json!({ "plan": waiting(), "subject": "INC-2" })).await.text("run_id");
    let waits = api.get("/waits?type=go").await.ok();
    let keys: Vec<_> = waits["waits"].as_array().unwrap().iter().map(|wait| wait["key"].clone()).collect();
    assert_eq!(keys, [json!("INC-1"), json!("INC-2")]);

    let event = json!({
        "specversion": "1.0", "id": "1", "source": "/monitor", "type": "go", "subject": "INC-1", "data": { "by": "me" },
    });
    let ask = async |kind: &str, headers: &[(&str, &str)], body: String| {
        let mut request = axum::http::Request::post("/api/v1/signals").header("host", "localhost");
        request = request.header("authorization", format!("Bearer {}", api.key)).header("content-type", kind);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        api.ask(request.body(axum::body::Body::from(body)).unwrap()).await
    };
    assert_eq!(ask("application/cloudevents+json", &[], event.to_string()).await.status, 201);
    let ended = api.get(&format!("/runs/{first}?wait_ms=5000")).await.ok();
    assert_eq!((&ended["state"], &ended["output"]), (&json!("succeeded"), &json!({ "by": "me" })));
    let again = ask("application/cloudevents+json", &[], event.to_string()).await;
    assert_eq!((again.status.as_u16(), &again.body["duplicate"]), (200, &json!(true)));

    let headers = [
        ("ce-specversion", "1.0"),
        ("ce-id", "2"),
        ("ce-source", "/monitor"),
        ("ce-type", "go"),
        ("ce-subject", "INC-2"),
    ];
    assert_eq!(ask("application/json", &headers, "7".into()).await.status, 201);
    let ended = api.get(&format!("/runs/{second}?wait_ms=5000")).await.ok();
    assert_eq!(ended["output"], json!(7));

    let batch = json!([event]).to_string();
    let refused = ask("application/CloudEvents-batch+json", &[], batch).await;
    assert_eq!(refused.problem(), (400, "REQUEST_INVALID"));
    assert!(refused.text("detail").contains("application/cloudevents-batch+json"), "{}", refused.body);

    let keyless = json!({ "specversion": "1.0", "id": "3", "source": "/monitor", "type": "go" });
    assert_eq!(ask("application/cloudevents+json", &[], keyless.to_string()).await.problem(), (422, "INPUT_INVALID"));
    let old = json!({ "specversion": "0.3", "id": "3", "source": "/monitor", "type": "go" });
    assert_eq!(ask("application/cloudevents+json", &[], old.to_string()).await.problem(), (400, "REQUEST_INVALID"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_signal_starts_the_workflows_that_name_its_type() {
    let api = Api::new().await;
    let source = "name: recover\non:\n  signal: { type: disk.full, filter: event.percent > 90, inputs: { host: \"${{ trigger.key }}\" } }\ninputs: { host: { type: string, required: true } }\nsteps:\n  - id: a\n    transform: ${{ inputs.host }}\n";
    crate::schedules::apply(&api.engine, api.tenant, source).await;
    let signal = |percent: u32, id: &str| json!({ "type": "disk.full", "key": "db-1", "payload": { "percent": percent }, "source_id": id });
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let started = api.post_with("/signals", signal(95, "m-1"), &[("traceparent", trace), ("tracestate", "v=1")]).await;
    let run = api.get(&format!("/runs/{}", started.body["runs"][0]["run_id"].as_str().unwrap())).await.ok();
    assert_eq!((&run["traceparent"], &run["tracestate"]), (&json!(trace), &json!("v=1")), "the run follows its signal");
    assert_eq!((started.status.as_u16(), &started.body["runs"][0]["workflow"]), (201, &json!("recover")));
    let again = api.post("/signals", signal(95, "m-1")).await;
    assert_eq!((again.status.as_u16(), &again.body["runs"]), (200, &started.body["runs"]));
    assert_eq!(api.post("/signals", signal(50, "m-2")).await.body.get("runs"), None);
    assert_eq!(started.body.get("skipped"), None);
    let strict = "name: strict\non: { signal: { type: disk.gone } }\ninputs: { host: { type: string, required: true } }\nsteps: [{ id: a, task: a }]\n";
    crate::schedules::apply(&api.engine, api.tenant, strict).await;
    let unmade = "name: unmade\non: { signal: { type: disk.gone, inputs: { host: \"${{ event.host.name }}\" } } }\ninputs: { host: { type: string } }\nsteps: [{ id: a, task: a }]\n";
    crate::schedules::apply(&api.engine, api.tenant, unmade).await;
    let refused = api.post("/signals", json!({ "type": "disk.gone", "key": "db-1", "payload": {} })).await;
    assert_eq!((refused.status.as_u16(), refused.body.get("runs")), (201, None));
    let skipped = &refused.body["skipped"];
    assert_eq!(
        (&skipped[0]["workflow"], &skipped[0]["code"]),
        (&json!("strict"), &json!("INPUT_INVALID")),
        "{skipped}"
    );
    assert!(skipped[0]["reason"].as_str().unwrap().contains("inputs.host"), "{skipped}");
    assert_eq!(
        (&skipped[1]["workflow"], &skipped[1]["code"]),
        (&json!("unmade"), &json!("TRIGGER_INVALID")),
        "{skipped}"
    );
    assert_eq!(api.get("/runs?workflow=recover").await.ok()["runs"].as_array().unwrap().len(), 1);
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_signal_under_a_key_is_one_signal() {
    let api = Api::new().await;
    let run = api.post("/runs", json!({ "plan": waiting(), "subject": "INC-7" })).await.text("run_id");
    let paths = ["/signals".to_owned(), format!("/runs/{run}/signals")];
    let bodies = [json!({ "type": "other", "key": "INC-7" }), json!({ "type": "other" })];
    for (number, (path, body)) in paths.iter().zip(bodies).enumerate() {
        let key = format!("k{number}");
        let headers = [("idempotency-key", key.as_str())];
        let first = api.post_with(path, body.clone(), &headers).await;
        let again = api.post_with(path, body.clone(), &headers).await;
        assert_eq!((first.status.as_u16(), again.status.as_u16()), (201, 201));
        assert_eq!((&again.headers["idempotency-replayed"], &again.body), (&"true".parse().unwrap(), &first.body));
        let mut changed = body;
        changed["payload"] = json!(1);
        assert_eq!(api.post_with(path, changed, &headers).await.problem(), (422, "IDEMPOTENCY_MISMATCH"));
    }
    let stored = api.engine.store().pending_signals(api.tenant, "other", "INC-7", Timestamp(0), 10).await.unwrap();
    assert_eq!(stored.len(), 2, "one by each way");
    // A request of another kind under the same key is another request.
    for (path, body) in [("/runs", json!({ "plan": waiting() })), ("/executions", json!({ "ticket_id": "T" }))] {
        let other = api.post_with(path, body, &[("idempotency-key", "k0")]).await;
        if path == "/runs" {
            assert_eq!(other.problem(), (422, "IDEMPOTENCY_MISMATCH"));
        }
        assert_ne!(other.status.as_u16(), 503, "{path}");
    }
    // Without a key each is its own.
    for _ in 0..2 {
        assert_eq!(api.post("/signals", json!({ "type": "free", "key": "k" })).await.status, 201);
    }
    assert_eq!(api.engine.store().pending_signals(api.tenant, "free", "k", Timestamp(0), 10).await.unwrap().len(), 2);
    api.end().await;
}
