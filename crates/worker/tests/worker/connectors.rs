//! Steps that call other systems: intent, call, outcome; and what becomes of an answer that is lost.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use interlock_connectors::price::{Price, Prices};
use interlock_connectors::send::Caller;
use interlock_connectors::{CallFacts, Connection, Connections as Places};
use interlock_core::json::Json;
use interlock_core::keys::{EffectScope, effect_key};
use interlock_core::plan::retry::ErrorClass;
use interlock_core::state::{EffectClass, StepKind};
use interlock_core::time::{Millis, Timestamp};
use interlock_core::work::Assignment;
use interlock_credentials::providers::fixed::FixedSecrets;
use interlock_credentials::{Clock, Credentials};
use interlock_outbound::{Call, Exchange, Exchanged, HttpResponse, Outbound, OutboundError, StatusCode};
use interlock_protocol::agent::ReportedOutcome;
use interlock_worker::{Connectors, ProbePauses, Tasks, Worker, WorkerOptions};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::fake::{Fake, Running};

/// What a system answers: a status and a body, or nothing.
type Script = dyn Fn(&str, &Value) -> Option<(u16, Value)> + Send + Sync;

/// A system that does as a test says, and remembers what it was asked: the method with the path, and the body.
#[derive(Clone)]
pub struct Target {
    script: Arc<Script>,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Target {
    pub fn new(script: impl Fn(&str, &Value) -> Option<(u16, Value)> + Send + Sync + 'static) -> Self {
        Self { script: Arc::new(script), seen: Arc::default() }
    }

    pub fn asked(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|(asked, _)| asked.clone()).collect()
    }

    fn bodies(&self) -> Vec<Value> {
        self.seen.lock().unwrap().iter().map(|(_, body)| body.clone()).collect()
    }
}

/// A status that is not answered.
const NEVER: u16 = 0;

impl Exchange for Target {
    fn send(&self, call: Call) -> Exchanged<'_> {
        Box::pin(async move {
            let url: interlock_outbound::Url = call.url.parse().unwrap();
            let asked = format!("{} {}", call.method, url.path());
            let body: Value = serde_json::from_slice(&call.body).unwrap_or(Value::Null);
            let answer = (self.script)(&asked, &body);
            self.seen.lock().unwrap().push((asked, body));
            let (status, body) = answer.ok_or_else(|| OutboundError::Failed("the connection broke".into()))?;
            if status == NEVER {
                std::future::pending::<()>().await;
            }
            let mut headers = interlock_outbound::header::HeaderMap::new();
            headers.insert("retry-after", "7".parse().unwrap());
            let status = StatusCode::from_u16(status).unwrap();
            Ok(HttpResponse { status, headers, body: body.to_string().into_bytes(), url })
        })
    }
}

fn start(fake: &Fake, target: &Target) -> Running {
    let secrets = FixedSecrets([("TOKEN".to_owned(), "tok-0123456789".to_owned())].into());
    start_with(fake, target, Credentials::of_one("fixed", Arc::new(secrets), Clock::new(|| Timestamp(0))))
}

/// A worker that calls the target, with secrets from wherever a test says.
pub fn start_with(fake: &Fake, target: &Target, credentials: Credentials) -> Running {
    let place = |name: &str| Connection::new(name, &format!("https://{name}.example")).with_secret("TOKEN");
    let mut places =
        ["slack", "servicenow", "openai"].iter().fold(Places::default(), |all, name| all.with(place(name)));
    let price = Price { input: 1.0, output: 10.0 };
    places.prices = Prices::new([("priced".to_owned(), price)].into());
    let caller = Caller::new(Outbound::over(Arc::new(target.clone())), places, credentials);
    let pauses = ProbePauses { first: Duration::from_secs(1), settled: Duration::from_secs(35) };
    let connectors = Connectors::new(caller).with_pauses(pauses);
    let shutdown = CancellationToken::new();
    let worker = Worker::new(fake.clone(), Tasks::new(), WorkerOptions::default()).with_connectors(connectors);
    let worker = tokio::spawn(worker.run(shutdown.clone()));
    Running { shutdown, worker }
}

pub fn step(fake: &Fake, operation: &str, input: &Value) -> Assignment {
    let step = fake.step(operation, &input.to_string());
    Assignment { kind: StepKind::Connector, effect: EffectClass::Unsafe, ..step }
}

pub fn message() -> Value {
    json!({ "channel": "C1", "connection": "slack", "text": "Restarted" })
}

pub fn posted() -> (u16, Value) {
    (200, json!({ "ok": true, "channel": "C1", "ts": "1.0" }))
}

fn completed(output: Value) -> ReportedOutcome {
    ReportedOutcome::Completed { output: Json::of(&output).unwrap() }
}

#[tokio::test(start_paused = true)]
async fn an_intent_for_the_bound_bytes_comes_before_the_call_and_its_outcome_after() {
    let fake = Fake::new();
    let target = Target::new(|_, _| Some(posted()));
    let running = start(&fake, &target);
    let step = step(&fake, "slack.post", &message());
    let bound = step.input.clone();
    assert_eq!(fake.run_one(step).await, completed(json!({ "channel": "C1", "ts": "1.0" })));
    running.stop().await;
    let state = fake.state();
    let intent = &state.intents[0];
    assert!(intent.template.starts_with("slack:post:C1::"), "{}", intent.template);
    assert_eq!((&intent.request, intent.effect), (&bound, EffectClass::Unsafe));
    assert!(state.outcomes[0].happened);
    assert_eq!(target.asked(), ["POST /api/chat.postMessage"]);
    let hello = &state.hellos[0];
    assert!(hello.tasks.as_ref().unwrap().iter().any(|name| name == "slack.post"), "rollbacks ask by name");
    let capabilities = hello.capabilities.as_ref().unwrap();
    assert!(["effects", "connector", "model"].iter().all(|name| capabilities.iter().any(|own| own == name)));
}

/// A channel that loses the answers to posts.
fn losing(keeps: bool, history: impl Fn(&[Value]) -> Value + Send + Sync + 'static) -> Target {
    let kept: Mutex<Vec<Value>> = Mutex::default();
    Target::new(move |asked, body| match asked {
        "POST /api/chat.postMessage" => {
            if keeps {
                kept.lock().unwrap().push(json!({ "ts": "1.0", "metadata": body["metadata"] }));
            }
            None
        }
        "GET /api/conversations.history" => Some((200, history(&kept.lock().unwrap()))),
        other => panic!("{other}"),
    })
}

fn whole_history(messages: &[Value]) -> Value {
    json!({ "ok": true, "messages": messages, "has_more": false })
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_asked_for_and_nothing_is_sent_twice() {
    let fake = Fake::new();
    let target = losing(true, whole_history);
    let running = start(&fake, &target);
    let outcome = fake.run_one(step(&fake, "slack.post", &message())).await;
    assert_eq!(outcome, completed(json!({ "channel": "C1", "ts": "1.0" })));
    running.stop().await;
    assert_eq!(target.asked(), ["POST /api/chat.postMessage", "GET /api/conversations.history"]);
    assert!(fake.state().outcomes[0].happened);
}

#[tokio::test(start_paused = true)]
async fn no_trace_is_believed_only_once_nothing_can_be_under_way() {
    let fake = Fake::new();
    let target = losing(false, whole_history);
    let running = start(&fake, &target);
    let began = Instant::now();
    let outcome = fake.run_one(step(&fake, "slack.post", &message())).await;
    assert!(matches!(&outcome, ReportedOutcome::Retry { error, .. } if error.code == "CALL_FAILED"), "{outcome:?}");
    assert!(began.elapsed() >= Duration::from_secs(35), "{:?}", began.elapsed());
    running.stop().await;
    assert_eq!(target.asked().len(), 3, "one call and two questions");
    assert_eq!(fake.state().outcomes.iter().map(|outcome| outcome.happened).collect::<Vec<_>>(), [false]);
}

#[tokio::test(start_paused = true)]
async fn a_target_that_cannot_tell_leaves_the_effect_in_doubt() {
    let fake = Fake::new();
    let target = losing(true, |_| json!({ "ok": false, "error": "missing_scope" }));
    let running = start(&fake, &target);
    let outcome = fake.run_one(step(&fake, "slack.post", &message())).await;
    let ReportedOutcome::Retry { error, .. } = outcome else { panic!("{outcome:?}") };
    assert!(error.message.contains("cannot tell") && error.message.contains("missing_scope"), "{error}");
    running.stop().await;
    assert!(fake.state().outcomes.is_empty(), "no outcome was reported");
}

#[tokio::test(start_paused = true)]
async fn the_state_before_is_read_once_however_often_the_step_is_tried() {
    let fake = Fake::new();
    let group = Mutex::new(json!("old"));
    let calls = Mutex::new(0);
    let target = Target::new(move |asked, body| {
        let record = |group: &Value| json!({ "result": { "assignment_group": group, "number": "INC1" } });
        match asked {
            "GET /api/now/table/incident/abc" => Some((200, record(&group.lock().unwrap()))),
            "PATCH /api/now/table/incident/abc" => {
                *group.lock().unwrap() = body["assignment_group"].clone();
                *calls.lock().unwrap() += 1;
                (*calls.lock().unwrap() > 1).then(|| (200, record(&group.lock().unwrap())))
            }
            other => panic!("{other}"),
        }
    });
    let running = start(&fake, &target);
    let fields = json!({ "sys_id": "abc", "fields": { "assignment_group": "new" }, "connection": "servicenow" });
    let first = Assignment { effect: EffectClass::Idempotent, ..step(&fake, "servicenow.incident.update", &fields) };
    let mut again = first.clone();
    again.at.attempt += 1;
    let outcome = fake.run_one(first).await;
    assert!(matches!(outcome, ReportedOutcome::Retry { .. }), "{outcome:?}");
    let ReportedOutcome::Completed { output } = fake.run_one(again).await else { panic!("it succeeds") };
    assert_eq!(output.to_value().unwrap()["before"]["assignment_group"], "old", "not what the first try has set");
    running.stop().await;
    assert_eq!(target.asked().iter().filter(|asked| asked.starts_with("GET")).count(), 1);
}

fn undoing(fake: &Fake, output: &Value, with: &Value) -> Assignment {
    let input = json!({ "input": message(), "output": output, "with": with });
    let step = step(fake, "slack.post", &input);
    Assignment { kind: StepKind::Rollback, step: "rollback:tell".into(), ..step }
}

#[tokio::test(start_paused = true)]
async fn a_rollback_performs_the_exact_inverse_as_an_effect_of_its_own() {
    let fake = Fake::new();
    let target = Target::new(|_, _| Some((200, json!({ "ok": true }))));
    let running = start(&fake, &target);
    let outcome = fake.run_one(undoing(&fake, &json!({ "channel": "C1", "ts": "1.0" }), &Value::Null)).await;
    let output = json!({ "undone": true, "by": "slack.delete", "output": { "deleted": true }, "verified": true });
    assert_eq!(outcome, completed(output));
    running.stop().await;
    assert_eq!(target.asked(), ["POST /api/chat.delete", "GET /api/conversations.history"], "and it is gone");
    assert_eq!(target.bodies()[0], json!({ "channel": "C1", "ts": "1.0" }));
    assert_eq!(fake.state().intents[0].template, "slack:delete:C1:1.0");
}

/// A rollback of an update of an incident, whose target shows these states one after the other, and the last one for good.
async fn undone_to(states: &'static [&'static str]) -> (ReportedOutcome, Target) {
    let fake = Fake::new();
    let reads = Mutex::new(0);
    let target = Target::new(move |asked, _| {
        if asked.starts_with("PATCH ") {
            return Some((200, json!({ "result": { "sys_id": "abc", "number": "INC1", "sys_mod_count": "8" } })));
        }
        let mut read = reads.lock().unwrap();
        let state = states[(*read).min(states.len() - 1)];
        *read += 1;
        (!state.is_empty())
            .then(|| (200, json!({ "result": { "state": state, "number": "INC1", "sys_mod_count": "7" } })))
    });
    let running = start(&fake, &target);
    let fields = json!({ "sys_id": "abc", "fields": { "state": "6" }, "connection": "servicenow" });
    let before = json!({ "sys_id": "abc", "before": { "state": "1" } });
    let input = json!({ "input": fields, "output": before, "with": null });
    let undoing = step(&fake, "servicenow.incident.update", &input);
    let undoing = Assignment { kind: StepKind::Rollback, step: "rollback:close".into(), ..undoing };
    let outcome = fake.run_one(undoing).await;
    running.stop().await;
    (outcome, target)
}

#[tokio::test(start_paused = true)]
async fn what_a_rollback_has_done_is_read_back() {
    // The first read is of the state before the rollback.
    let (outcome, target) = undone_to(&["6", "6", "1"]).await;
    let ReportedOutcome::Completed { output } = outcome else { panic!("{outcome:?}") };
    assert_eq!(output.to_value().unwrap()["verified"], true, "a moment later it shows");
    assert_eq!(target.asked().iter().filter(|asked| asked.starts_with("GET ")).count(), 3);
    for (states, says) in [(&["6"] as &[_], "`state`"), (&["6", ""], "cannot be read")] {
        let (outcome, _) = undone_to(states).await;
        let ReportedOutcome::Dead { error } = outcome else { panic!("{outcome:?}") };
        assert!(error.code == "ROLLBACK_UNVERIFIED" && error.message.contains(says), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_still_there_was_not_undone() {
    let fake = Fake::new();
    let mark = Arc::new(Mutex::new(String::new()));
    let shown = Arc::clone(&mark);
    let target = Target::new(move |asked, _| match asked {
        "POST /api/chat.postMessage" => Some(posted()),
        "GET /api/conversations.history" => {
            let payload = json!({ "mark": *shown.lock().unwrap() });
            let metadata = json!({ "event_type": "interlock_effect", "event_payload": payload });
            Some((200, json!({ "ok": true, "messages": [{ "ts": "1.0", "metadata": metadata }], "has_more": false })))
        }
        _ => Some((200, json!({ "ok": true }))),
    });
    let running = start(&fake, &target);
    let done = Assignment { step: "tell".into(), ..step(&fake, "slack.post", &message()) };
    let (root, iteration) = (done.root_run, done.iteration);
    assert!(matches!(fake.run_one(done).await, ReportedOutcome::Completed { .. }));
    // As the server would have called the effect.
    let template = fake.state().intents[0].template.clone();
    let key = effect_key(&template, EffectScope { root, step_path: "tell", iteration, number: 0 }).unwrap();
    *mark.lock().unwrap() = CallFacts { key, ..CallFacts::default() }.mark();
    let undoing = undoing(&fake, &json!({ "channel": "C1", "ts": "1.0" }), &Value::Null);
    let outcome = fake.run_one(Assignment { root_run: root, ..undoing }).await;
    let ReportedOutcome::Dead { error } = outcome else { panic!("{outcome:?}") };
    assert_eq!(error.code, "ROLLBACK_UNVERIFIED", "{error}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_target_that_cannot_tell_holds_no_rollback_up() {
    let fake = Fake::new();
    let target = Target::new(|asked, _| match asked {
        "GET /api/conversations.history" => Some((200, json!({ "ok": false, "error": "missing_scope" }))),
        _ => Some((200, json!({ "ok": true }))),
    });
    let running = start(&fake, &target);
    let outcome = fake.run_one(undoing(&fake, &json!({ "channel": "C1", "ts": "1.0" }), &Value::Null)).await;
    let ReportedOutcome::Completed { output } = outcome else { panic!("{outcome:?}") };
    let output = output.to_value().unwrap();
    assert_eq!((&output["undone"], &output["verified"]), (&json!(true), &json!(false)));
    assert!(output["unverified"].as_str().unwrap().contains("missing_scope"), "{output}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_rollback_with_fields_of_its_own_does_that_instead() {
    let fake = Fake::new();
    let target = Target::new(|_, _| Some(posted()));
    let running = start(&fake, &target);
    let with = json!({ "channel": "C2", "text": "Never mind" });
    let outcome = fake.run_one(undoing(&fake, &json!({ "ts": "1.0" }), &with)).await;
    assert!(matches!(outcome, ReportedOutcome::Completed { .. }), "{outcome:?}");
    running.stop().await;
    assert_eq!(target.bodies()[0]["channel"], "C2");
}

#[tokio::test(start_paused = true)]
async fn what_never_told_its_output_is_looked_for_before_it_is_undone() {
    for (history, says) in [
        (whole_history(&[]), json!({ "undone": false, "why": "the target has no trace of it" })),
        (json!({ "ok": false, "error": "missing_scope" }), Value::Null),
    ] {
        let fake = Fake::new();
        let target = Target::new(move |_, _| Some((200, history.clone())));
        let running = start(&fake, &target);
        let outcome = fake.run_one(undoing(&fake, &Value::Null, &Value::Null)).await;
        match outcome {
            ReportedOutcome::Dead { error } => assert!(says.is_null() && error.code == "NOT_REVERSIBLE", "{error}"),
            outcome => assert_eq!(outcome, completed(says)),
        }
        running.stop().await;
        assert_eq!(target.asked(), ["GET /api/conversations.history"], "nothing is deleted on suspicion");
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_step_is_a_call_like_another() {
    let fake = Fake::new();
    let target = Target::new(|_, _| {
        let usage = json!({ "prompt_tokens": 1, "completion_tokens": 2 });
        Some((200, json!({ "model": "m", "choices": [{ "message": { "content": "Yes." } }], "usage": usage })))
    });
    let running = start(&fake, &target);
    let asking = step(&fake, "model", &json!({ "model": "m", "prompt": "Is it up?" }));
    let outcome = fake.run_one(Assignment { kind: StepKind::Model, ..asking }).await;
    let ReportedOutcome::Completed { output } = outcome else { panic!("{outcome:?}") };
    assert_eq!(output.to_value().unwrap()["text"], "Yes.");
    running.stop().await;
    assert_eq!(fake.state().intents[0].effect, EffectClass::Idempotent);
    assert_eq!(target.asked(), ["POST /chat/completions"]);
}

/// A run has a cap on what it spends: a try that failed counts as what it may have cost, and as nothing where the model certainly did
/// not answer.
#[tokio::test(start_paused = true)]
async fn a_model_call_that_failed_costs_what_it_may_have_cost() {
    for (model, status, cost) in [
        ("priced", Some(429), (0, false)),
        ("priced", Some(400), (0, false)),
        ("priced", Some(503), (0, false)),
        ("m", Some(429), (0, false)),
        // 9 bytes and what stands around two messages, and 100 tokens.
        ("priced", None, (9 + 64 + 1_000, false)),
        ("priced", Some(504), (9 + 64 + 1_000, false)),
        ("priced", Some(200), (9 + 64 + 1_000, false)),
        ("m", None, (0, true)),
    ] {
        let fake = Fake::new();
        let target = Target::new(move |_, _| status.map(|status| (status, json!({ "choices": [] }))));
        let running = start(&fake, &target);
        let input = json!({ "model": model, "prompt": "Is it up?", "max_tokens": 100, "connection": "openai" });
        let asking = step(&fake, "model", &input);
        let outcome = fake.run_one(Assignment { kind: StepKind::Model, ..asking }).await;
        assert!(!matches!(outcome, ReportedOutcome::Completed { .. }), "{outcome:?}");
        running.stop().await;
        let spent = fake.state().reports[0].cost.clone().unwrap();
        assert_eq!((spent.micros, spent.unpriced), cost, "{model} {status:?}");
        assert_eq!((spent.provider.as_deref(), spent.model.as_deref()), (Some("openai"), Some(model)));
    }
}

/// A call that goes on when the attempt ends has cost something too: its time was up, or its worker stops.
#[tokio::test(start_paused = true)]
async fn a_model_call_that_was_dropped_costs_what_it_may_have_cost() {
    for (model, timeout, cost) in [
        ("priced", Some(Millis::from_secs(5)), (9 + 64 + 1_000, false)),
        ("m", Some(Millis::from_secs(5)), (0, true)),
        ("priced", None, (9 + 64 + 1_000, false)),
    ] {
        let fake = Fake::new();
        let target = Target::new(|_, _| Some((NEVER, Value::Null)));
        let running = start(&fake, &target);
        let input = json!({ "model": model, "prompt": "Is it up?", "max_tokens": 100, "connection": "openai" });
        let asking = Assignment { kind: StepKind::Model, timeout, ..step(&fake, "model", &input) };
        fake.enqueue(vec![asking]);
        if timeout.is_none() {
            while target.asked().is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        } else {
            fake.until("a report", |state| !state.reports.is_empty()).await;
        }
        running.stop().await;
        let report = fake.state().reports[0].clone();
        match report.outcome {
            ReportedOutcome::Retry { error, .. } => {
                assert_eq!((timeout.is_some(), &*error.code), (true, "STEP_TIMEOUT"));
            }
            outcome => assert_eq!((timeout, outcome), (None, ReportedOutcome::Released)),
        }
        let spent = report.cost.unwrap();
        assert_eq!((spent.micros, spent.unpriced), cost, "{model} {timeout:?}");
    }
}

/// What a server says of itself does not keep the step from being reported.
#[tokio::test(start_paused = true)]
async fn a_model_that_boasts_has_no_price() {
    let fake = Fake::new();
    let target = Target::new(|_, _| {
        let usage = json!({ "prompt_tokens": u64::MAX, "completion_tokens": 2 });
        let choices = json!([{ "message": { "content": "Yes." } }]);
        Some((200, json!({ "model": format!("priced-1{}", "é".repeat(100)), "choices": choices, "usage": usage })))
    });
    let running = start(&fake, &target);
    let asking = step(&fake, "model", &json!({ "model": "priced", "prompt": "Is it up?" }));
    fake.run_one(Assignment { kind: StepKind::Model, ..asking }).await;
    running.stop().await;
    let spent = fake.state().reports[0].cost.clone().unwrap();
    assert!(spent.unpriced && spent.check().is_ok(), "{spent:?}");
}

#[tokio::test(start_paused = true)]
async fn what_the_connector_does_not_take_is_never_sent() {
    let fake = Fake::new();
    let target = Target::new(|_, _| Some(posted()));
    let running = start(&fake, &target);
    let outcome = fake.run_one(step(&fake, "slack.post", &json!({ "channel": "C1", "txet": "x" }))).await;
    let ReportedOutcome::Dead { error } = outcome else { panic!("{outcome:?}") };
    assert_eq!((error.code.as_str(), error.class), ("CONNECTOR_INPUT_INVALID", ErrorClass::Invalid));
    assert!(error.message.contains("`txet`") && error.message.contains("`text` is missing"), "{error}");
    let outcome = fake.run_one(step(&fake, "jira.issue", &json!({}))).await;
    assert_eq!(outcome, ReportedOutcome::UnknownTask, "another worker may know it");
    running.stop().await;
    assert!(target.asked().is_empty() && fake.state().intents.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_recorded_as_not_happened_and_says_when_to_come_back() {
    let fake = Fake::new();
    let target = Target::new(|_, _| Some((429, json!({ "error": "slow down" }))));
    let running = start(&fake, &target);
    let outcome = fake.run_one(step(&fake, "slack.post", &message())).await;
    let ReportedOutcome::Retry { error, backoff } = outcome else { panic!("{outcome:?}") };
    assert_eq!((error.class, backoff), (ErrorClass::RateLimited, Some(Millis::from_secs(7))));
    running.stop().await;
    assert!(!fake.state().outcomes[0].happened);
}
