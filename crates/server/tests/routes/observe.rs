//! What every request leaves behind, and what is carried on.

use std::sync::{Arc, Mutex};

use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::harness::{Api, plan, task};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[tokio::test(start_paused = true)]
async fn a_request_has_a_name() {
    let api = Api::new().await;
    let ask = async |id: &str| {
        let request = Request::get("/healthz").header("x-request-id", id).body(Body::empty());
        api.raw(request.unwrap()).await.headers()["x-request-id"].to_str().unwrap().to_owned()
    };
    assert_eq!(ask("mine-7").await, "mine-7");
    assert_eq!(ask(&"x".repeat(200)).await.len(), 32, "a name that is too long is replaced");
    let unknown = api.get("/nothing").await;
    assert_eq!(unknown.headers["x-request-id"].len(), 32);
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_trace_goes_with_the_run_to_its_worker() {
    let api = Api::new().await;
    let body = json!({ "plan": plan(json!([task("a")])) });
    let trace = [("traceparent", TRACE), ("tracestate", "vendor=1, other=2")];
    let run = api.post_with("/runs", body.clone(), &trace).await.text("run_id");
    let seen = api.get(&format!("/runs/{run}")).await.ok();
    assert_eq!((&seen["traceparent"], &seen["labels"]), (&json!(TRACE), &json!({})));
    assert_eq!(seen["tracestate"], "vendor=1,other=2");
    let session = api.register().await;
    let assigned = api.poll(&session).await;
    assert_eq!((&assigned["traceparent"], &assigned["tracestate"]), (&json!(TRACE), &json!("vendor=1,other=2")));
    let event = &api.get(&format!("/executions/{run}/events")).await.ok()["events"][0];
    assert_eq!(
        (&event["meta"]["traceparent"], &event["meta"]["tracestate"]),
        (&json!(TRACE), &json!("vendor=1,other=2"))
    );
    let untraced = api.post_with("/runs", body, &[("traceparent", "nonsense")]).await.text("run_id");
    assert_eq!(api.get(&format!("/runs/{untraced}")).await.ok().get("traceparent"), None);
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_numbers_are_there() {
    let api = Api::new().await;
    let run = api.start(json!([task("a")])).await;
    api.post(&format!("/runs/{run}/cancel"), json!({ "reason": "why" })).await.ok();
    for _ in 0..2 {
        api.post_with("/runs", json!({ "plan": plan(json!([task("a")])) }), &[("idempotency-key", "k")]).await.ok();
    }
    let another = json!({ "plan": plan(json!([task("b")])) });
    let mistaken = api.post_with("/runs", another, &[("idempotency-key", "k")]).await;
    assert_eq!(mistaken.problem(), (422, "IDEMPOTENCY_MISMATCH"));
    let request = Request::get("/metrics")
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, format!("Bearer {}", api.in_charge().await.key))
        .body(Body::empty());
    let response = api.raw(request.unwrap()).await;
    assert_eq!(response.status(), 200);
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    for line in [
        "interlock_http_requests_total{method=\"POST\",route=\"/api/v1/runs\",status=\"201\"} 3",
        "interlock_run_transitions_total{from_state=\"none\",to_state=\"pending\"} 2",
        "interlock_run_transitions_total{from_state=\"pending\",to_state=\"canceled\"} 1",
        "interlock_run_duration_seconds_count{type=\"demo\",status=\"canceled\"} 1",
        "interlock_runs_active{status=\"pending\"} 1",
        "interlock_runs_orphaned 0",
        "interlock_idempotency_hits_total{source=\"api\",result=\"new\"} 1",
        "interlock_idempotency_hits_total{source=\"api\",result=\"replayed\"} 1",
        "interlock_idempotency_hits_total{source=\"api\",result=\"mismatch\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains(&run) && !text.contains("ten_"), "labels are bounded");
    api.end().await;
}

/// Notes the ids of the requests whose spans are on where lines of the level `info` are.
#[derive(Clone, Default)]
struct RequestSpans(Arc<Mutex<Vec<String>>>);

impl Visit for RequestSpans {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "id" {
            self.0.lock().unwrap().push(value.to_owned());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

impl Subscriber for RequestSpans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        if span.metadata().name() == "request" {
            span.record(&mut self.clone());
        }
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn lines_of_the_log_carry_the_request_id_at_the_level_info() {
    let spans = RequestSpans::default();
    let guard = tracing::subscriber::set_default(spans.clone());
    let api = Api::new().await;
    let request = Request::get("/healthz").header("x-request-id", "mine-7").body(Body::empty());
    api.raw(request.unwrap()).await;
    drop(guard);
    assert!(spans.0.lock().unwrap().contains(&"mine-7".to_owned()));
    api.end().await;
}
