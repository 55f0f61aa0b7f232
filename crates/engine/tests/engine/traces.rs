//! Traces at a small OTLP collector: the six spans, how they hang together, and that no run waits for them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use interlock_core::ids::{RunId, TenantId};
use interlock_core::plan::retry::{ErrorClass, StepError};
use interlock_core::plan::{RollbackCondition, RollbackSpec, StepSpec, Undo, Work};
use interlock_core::run::approval::Voter;
use interlock_core::state::RunState;
use interlock_core::time::Millis;
use interlock_core::trace::TraceContext;
use interlock_core::work::credential::CredentialUsed;
use interlock_core::work::{Report, ReportedOutcome};
use interlock_engine::commands::vote::VoteRequest;
use interlock_engine::traces::{TraceEndpoint, TraceOptions, TracesDropped};
use interlock_engine::{Engine, EngineOptions};
use interlock_outbound::{Outbound, OutboundOptions};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::{
    Database, PATIENCE, done, ends, engine_with, hello, options, plan, reaches, start, stop, tenant, work,
};
use crate::on_both;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// A collector that keeps the spans which it is sent, answers 503 while it is told to be away, and 400 while it refuses.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    spans: Vec<Value>,
    away: bool,
    refuses: bool,
    calls: usize,
}

impl Collector {
    async fn listen(&self, listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(self.clone().serve(stream));
        }
    }

    async fn start() -> (Self, SocketAddr) {
        let collector = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let listening = collector.clone();
        tokio::spawn(async move { listening.listen(listener).await });
        (collector, address)
    }

    async fn serve(self, mut stream: TcpStream) {
        let mut read = Vec::new();
        loop {
            let end = loop {
                if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
                    break end + 4;
                }
                if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
                    return;
                }
            };
            let head = String::from_utf8(read[..end].to_vec()).unwrap().to_ascii_lowercase();
            let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            assert!(head.starts_with("post /v1/traces "), "{head}");
            assert_eq!(header("content-type:"), Some("application/json"));
            assert_eq!(header("x-key:"), Some("s3cret"));
            let length: usize = header("content-length:").unwrap().parse().unwrap();
            while read.len() < end + length {
                assert!(stream.read_buf(&mut read).await.unwrap() > 0);
            }
            let body: Value = serde_json::from_slice(&read[end..end + length]).unwrap();
            let answer = self.take(&body);
            stream.write_all(answer).await.unwrap();
            read.drain(..end + length);
        }
    }

    fn take(&self, body: &Value) -> &'static [u8] {
        let mut kept = self.0.lock().unwrap();
        kept.calls += 1;
        if kept.away {
            return b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";
        }
        if kept.refuses {
            return b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
        }
        for resource in body["resourceSpans"].as_array().unwrap() {
            assert_eq!(attribute(&resource["resource"], "service.name"), "interlock");
            for scope in resource["scopeSpans"].as_array().unwrap() {
                let spans = scope["spans"].as_array().unwrap();
                spans.iter().for_each(check);
                kept.spans.extend(spans.iter().cloned());
            }
        }
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    }

    /// The spans of a name, once there are as many as that.
    async fn spans(&self, name: &str, count: usize) -> Vec<Value> {
        let looking = async {
            loop {
                let found: Vec<Value> =
                    self.0.lock().unwrap().spans.iter().filter(|span| span["name"] == name).cloned().collect();
                if found.len() >= count {
                    assert_eq!(found.len(), count, "{name}: {found:#?}");
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(25)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looking)
            .await
            .unwrap_or_else(|_| panic!("there are not {count} spans {name}: {:#?}", self.0.lock().unwrap().spans))
    }
}

/// A span as the protocol's JSON form has it: only its fields, ids of the right length, instants as texts.
fn check(span: &Value) {
    const FIELDS: [&str; 10] = [
        "traceId",
        "spanId",
        "parentSpanId",
        "name",
        "kind",
        "startTimeUnixNano",
        "endTimeUnixNano",
        "attributes",
        "status",
        "links",
    ];
    assert!(span.as_object().unwrap().keys().all(|key| FIELDS.contains(&key.as_str())), "{span}");
    let hex = |value: &Value, digits: usize| {
        let text = value.as_str().unwrap();
        assert!(text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit()), "{text}");
    };
    hex(&span["traceId"], 32);
    hex(&span["spanId"], 16);
    if let Some(parent) = span.get("parentSpanId") {
        hex(parent, 16);
    }
    for link in span.get("links").and_then(Value::as_array).into_iter().flatten() {
        hex(&link["traceId"], 32);
        hex(&link["spanId"], 16);
    }
    assert!(nanos(span, "startTimeUnixNano") <= nanos(span, "endTimeUnixNano"), "{span}");
}

fn nanos(span: &Value, field: &str) -> u64 {
    span[field].as_str().unwrap().parse().unwrap()
}

fn attribute<'a>(of: &'a Value, key: &str) -> &'a str {
    let found = of["attributes"].as_array().unwrap().iter().find(|attribute| attribute["key"] == key);
    let value = &found.unwrap_or_else(|| panic!("no {key}: {of}"))["value"];
    value["stringValue"].as_str().or_else(|| value["intValue"].as_str()).unwrap()
}

fn traced(address: SocketAddr) -> EngineOptions {
    let open = vec!["127.0.0.0/8".parse().unwrap()];
    let client = Outbound::new(OutboundOptions { open, ..OutboundOptions::default() }).unwrap();
    let endpoint = TraceEndpoint::new(&format!("http://{address}"), &["X-Key=s3cret".into()]).unwrap();
    EngineOptions { traces: Some(TraceOptions { endpoint, client, send_every: Millis(20) }), ..options() }
}

fn gate() -> StepSpec {
    StepSpec::new("gate", Work::Approval(serde_json::from_str(r#"{"approvers":["sre"]}"#).unwrap()))
}

async fn approve(engine: &Engine, tenant: TenantId, run: RunId) {
    reaches(engine, tenant, run, RunState::WaitingApproval).await;
    let approval = engine.store().approvals_of(tenant, run).await.unwrap().remove(0);
    let voter = Voter::new("ann", vec!["sre".into()]);
    let vote = VoteRequest { approval: approval.id, voter, approve: true, notes: None };
    engine.runs().vote(tenant, run, vote).await.unwrap();
}

on_both! {
    async fn a_run_is_told_of_in_the_callers_trace_by_six_kinds_of_spans(database: &Database) {
        let (collector, address) = Collector::start().await;
        let engine = engine_with(database, traced(address)).await;
        let tenant = tenant(&engine, |_| {}).await;
        let session = engine.workers().register(hello(1)).await.unwrap().session;
        let mut pay = StepSpec::task("pay", "pay");
        let conditions = RollbackCondition::ALL.to_vec();
        pay.rollback = Some(RollbackSpec { conditions, ..RollbackSpec::by(Undo::Handler("refund".into())) });
        let steps = plan(vec![pay, gate(), StepSpec::task("ship", "ship")]);
        let parent = Some(format!("00-{TRACE}-{CALLER}-01"));
        let context = TraceContext { parent, state: Some("vendor=1".into()) };
        let mut asked = start(tenant, &steps, "null");
        asked.trace = context;
        let run = engine.runs().start(asked).await.unwrap().run;

        let used = CredentialUsed {
            credential_id: "corp/DB".into(), vault_request_id: Some("req-1".into()), lease_id: None,
            fetched_at: engine.now(), revoked_at: None, fetch_ms: None,
        };
        let mut handed = Vec::new();
        for (step, outcome) in [
            ("pay", ReportedOutcome::Retry { error: StepError::new(ErrorClass::Unavailable, "BUSY", "secret text"), backoff: Some(Millis(1)) }),
            ("pay", done("1")),
            ("ship", ReportedOutcome::Dead { error: StepError::new(ErrorClass::Invalid, "NO", "no") }),
            ("rollback:pay", done("2")),
        ] {
            if step == "ship" {
                // What was done before the wait is told while it lasts.
                collector.spans("step.execute", 2).await;
                assert!(collector.0.lock().unwrap().spans.iter().all(|span| span["name"] != "approval.wait"));
                approve(&engine, tenant, run).await;
            }
            let assignment = engine.workers().poll(session, 1, PATIENCE).await.unwrap().remove(0);
            assert_eq!(assignment.step, step);
            assert_eq!(assignment.tracestate.as_deref(), Some("vendor=1"));
            handed.push(assignment.traceparent.clone().unwrap());
            let report = Report {
                at: assignment.at, epoch: assignment.epoch, outcome, claim_next: false, cost: None,
                credentials: vec![used.clone()],
            };
            engine.workers().complete(session, report).await.unwrap();
        }
        assert_eq!(ends(&engine, tenant, run).await, RunState::Failed);

        let created = collector.spans("session.create", 1).await.remove(0);
        assert_eq!((&created["traceId"], &created["parentSpanId"]), (&TRACE.into(), &CALLER.into()));
        assert_eq!(attribute(&created, "interlock.run_id"), run.to_string());
        let executed = collector.spans("step.execute", 3).await;
        let undone = collector.spans("rollback.execute", 1).await;
        let fetched = collector.spans("vault.fetch", 4).await;
        assert_eq!(collector.spans("worker.assign", 4).await.len(), 4);
        let attempts: Vec<&Value> = executed.iter().chain(&undone).collect();
        for (number, (span, handed)) in attempts.iter().zip(&handed).enumerate() {
            assert_eq!(span["parentSpanId"], created["spanId"]);
            let within = format!("00-{TRACE}-{}-01", span["spanId"].as_str().unwrap());
            assert_eq!(*handed, within, "the worker goes on in the span of its attempt");
            assert_eq!(attribute(span, "interlock.worker_id"), "test");
            assert!(fetched.iter().any(|fetch| fetch["parentSpanId"] == span["spanId"]), "{number}");
        }
        assert_eq!((&attempts[0]["status"]["code"], &attempts[0]["status"]["message"]), (&2.into(), &"BUSY".into()));
        assert_eq!(attempts[1]["links"][0]["spanId"], attempts[0]["spanId"], "the attempt before");
        assert_eq!((&attempts[1]["status"]["code"], &attempts[2]["status"]["code"]), (&1.into(), &2.into()));
        assert_eq!(attribute(attempts[3], "interlock.step"), "rollback:pay");
        assert_eq!(attribute(&fetched[0], "interlock.credential_id"), "corp/DB");

        // A wait may last for days: a trace of its own, linked to the run's.
        let wait = collector.spans("approval.wait", 1).await.remove(0);
        assert_ne!(wait["traceId"], TRACE);
        assert_eq!(wait.get("parentSpanId"), None);
        assert_eq!((&wait["links"][0]["traceId"], &wait["links"][0]["spanId"]), (&TRACE.into(), &created["spanId"]));
        assert_eq!(attribute(&wait, "interlock.approval_status"), "approved");
        let told = serde_json::to_string(&collector.0.lock().unwrap().spans).unwrap();
        assert!(!told.contains("secret text"), "messages of errors stay where they are");
        stop(engine).await;
    }

    async fn a_run_without_a_caller_has_its_own_id_as_trace_and_an_unwanted_one_none(database: &Database) {
        let (collector, address) = Collector::start().await;
        let engine = engine_with(database, traced(address)).await;
        let tenant = tenant(&engine, |_| {}).await;
        work(&engine, 2, |_| async { done("1") });
        let steps = plan(vec![StepSpec::task("a", "a"), StepSpec::task("b", "b")]);
        let unwanted = TraceContext { parent: Some(format!("00-{TRACE}-{CALLER}-00")), state: None };
        let mut asked = start(tenant, &steps, "null");
        asked.trace = unwanted;
        let quiet = engine.runs().start(asked).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, quiet).await, RunState::Succeeded);
        let run = engine.runs().start(start(tenant, &steps, "null")).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        let created = collector.spans("session.create", 1).await.remove(0);
        assert_eq!(created["traceId"], run.0.simple().to_string());
        assert_eq!(created.get("parentSpanId"), None);
        collector.spans("step.execute", 2).await;
        stop(engine).await;
    }

    async fn runs_go_on_while_the_collector_is_away_and_it_hears_of_them_later(database: &Database) {
        let (collector, address) = Collector::start().await;
        collector.0.lock().unwrap().away = true;
        let engine = engine_with(database, traced(address)).await;
        let tenant = tenant(&engine, |_| {}).await;
        work(&engine, 4, |_| async { done("1") });
        let steps = plan(vec![StepSpec::task("a", "a")]);
        let mut runs = Vec::new();
        for _ in 0..20 {
            runs.push(engine.runs().start(start(tenant, &steps, "null")).await.unwrap().run);
        }
        for run in runs {
            assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        }
        while collector.0.lock().unwrap().calls == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        collector.0.lock().unwrap().away = false;
        assert_eq!(collector.spans("session.create", 20).await.len(), 20, "each once");
        assert_eq!(collector.spans("step.execute", 20).await.len(), 20);
        stop(engine).await;
    }

    async fn spans_that_the_collector_refuses_are_dropped_and_counted(database: &Database) {
        let (collector, address) = Collector::start().await;
        collector.0.lock().unwrap().refuses = true;
        let engine = engine_with(database, traced(address)).await;
        let tenant = tenant(&engine, |_| {}).await;
        work(&engine, 1, |_| async { done("1") });
        let steps = plan(vec![StepSpec::task("a", "a")]);
        let run = engine.runs().start(start(tenant, &steps, "null")).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        // Its creation, its assignment and its one attempt.
        let all = TracesDropped { runs: 0, spans: 3 };
        let counted = async {
            while engine.health().traces_dropped() != all {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let is_counted = tokio::time::timeout(PATIENCE, counted).await.is_ok();
        assert!(is_counted, "{:?}", engine.health().traces_dropped());
        assert!(collector.0.lock().unwrap().spans.is_empty());
        stop(engine).await;
    }
}
