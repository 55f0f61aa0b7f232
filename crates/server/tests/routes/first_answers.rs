//! A repeat under its key gets the answer of the first time, whatever has changed since: what stands against a start stands
//! against the first use of a key only.

use interlock_core::json::{Hash, Json};
use interlock_core::run::change::Context;
use interlock_core::tenant::identity::Role;
use interlock_engine::schedules::TriggerSchedule;
use interlock_engine::{EngineError, IdempotencyKey, StartWorkflow};
use interlock_server::identity::NewKey;
use serde_json::{Value, json};

use crate::harness::{Api, ApiResponse, plan, task};
use crate::workspaces::{WORKSPACE, confined};

const QUICK: &str = "name: quick\nsteps:\n  - { id: a, task: a }\n";
const STRICT: &str =
    "name: quick\ninputs: { host: { type: string, required: true } }\nsteps:\n  - { id: a, task: a }\n";

/// A request that starts a run, and why it is refused once what it starts from is gone.
struct StartCase {
    path: String,
    body: Value,
    refusal: (u16, &'static str),
}

impl StartCase {
    fn new(path: impl Into<String>, body: Value, refusal: (u16, &'static str)) -> Self {
        Self { path: path.into(), body, refusal }
    }

    async fn send(&self, api: &Api, key: &str) -> ApiResponse {
        api.post_with(&self.path, self.body.clone(), &[("idempotency-key", key)]).await
    }
}

async fn ended(api: &Api) -> String {
    let run = api.post("/runs", json!({ "workflow": "quick" })).await.text("run_id");
    api.post(&format!("/runs/{run}/cancel"), json!({ "reason": "over" })).await.ok();
    run
}

async fn apply(api: &Api, source: &str) {
    api.post("/workflows", json!({ "source": source })).await.ok();
}

async fn nightly(api: &Api, name: &str) -> String {
    let new = json!({ "name": name, "workflow": "quick", "cron": "0 3 * * *" });
    api.post("/schedules", new).await.text("schedule_id")
}

/// Sends each of these under a key of its own, and answers with what they were answered.
async fn made(api: &Api, cases: &[StartCase]) -> Vec<(String, ApiResponse)> {
    let mut made = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let key = format!("key-{number}");
        let first = case.send(api, &key).await;
        assert_eq!(first.status, 201, "{}: {}", case.path, first.body);
        made.push((key, first));
    }
    made
}

/// Each repeat gets the answer again, and a first use is refused.
async fn check(api: &Api, cases: &[StartCase], made: &[(String, ApiResponse)]) {
    for (case, (key, first)) in cases.iter().zip(made) {
        let again = case.send(api, key).await;
        assert_eq!((again.status.as_u16(), &again.body), (201, &first.body), "{}", case.path);
        assert_eq!(again.headers["idempotency-replayed"], "true", "{}", case.path);
        assert_eq!(again.headers.get("location"), first.headers.get("location"), "{}", case.path);
        let refused = case.send(api, "never-used").await;
        assert_eq!(refused.problem(), case.refusal, "{}: {}", case.path, refused.body);
        let other = json!({ "workflow": "quick", "priority": 7 });
        let other = api.post_with("/runs", other, &[("idempotency-key", key.as_str())]).await;
        assert_eq!(other.problem(), (422, "IDEMPOTENCY_MISMATCH"), "{}: {}", case.path, other.body);
    }
}

async fn repeats_outlive_what_they_started_from(api: Api) {
    apply(&api, QUICK).await;
    nightly(&api, "nightly").await;
    let (stopped, ran) = (ended(&api).await, ended(&api).await);
    let disabled = (409, "WORKFLOW_DISABLED");
    let cases = [
        StartCase::new("/runs", json!({ "workflow": "quick", "labels": { "a": "b" } }), disabled),
        StartCase::new("/runs", json!({ "plan": plan(json!([task("a")])) }), (422, "WORKFLOW_INVALID")),
        StartCase::new("/executions", json!({ "ticket_id": "INC-1", "runbook_id": "quick" }), disabled),
        StartCase::new("/schedules/nightly/trigger", json!({}), (404, "SCHEDULE_NOT_FOUND")),
        StartCase::new(format!("/runs/{stopped}/retry"), json!({}), disabled),
        StartCase::new(format!("/runs/{ran}/restart"), json!({ "from": "a" }), disabled),
    ];
    let made = made(&api, &cases).await;
    api.post("/workflows/quick/disable", json!({})).await.ok();
    // The plan has the name of a workflow by now.
    apply(&api, &QUICK.replace("quick", "demo")).await;
    api.send("DELETE", "/api/v1/schedules/nightly", json!({})).await.ok();
    check(&api, &cases, &made).await;
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_repeat_is_answered_when_the_workflow_is_disabled_or_the_schedule_gone() {
    repeats_outlive_what_they_started_from(Api::new().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_is_answered_when_the_workflow_is_disabled_or_the_schedule_gone_on_postgres() {
    repeats_outlive_what_they_started_from(Api::on_postgres("first_answers").await).await;
}

#[tokio::test(start_paused = true)]
async fn a_repeat_is_answered_when_the_workflow_takes_other_inputs() {
    let api = Api::new().await;
    apply(&api, QUICK).await;
    nightly(&api, "nightly").await;
    let invalid = (422, "INPUT_INVALID");
    let cases = [
        StartCase::new("/runs", json!({ "workflow": "quick" }), invalid),
        StartCase::new("/executions", json!({ "ticket_id": "INC-1", "runbook_id": "quick" }), invalid),
        StartCase::new("/schedules/nightly/trigger", json!({}), invalid),
    ];
    let made = made(&api, &cases).await;
    apply(&api, STRICT).await;
    check(&api, &cases, &made).await;
    api.end().await;
}

fn triggered(api: &Api, schedule: &str, within: Option<&str>) -> TriggerSchedule {
    let idempotency = Some(IdempotencyKey { client: "c".to_owned(), key: "k".to_owned() });
    let (schedule, within) = (schedule.to_owned(), within.map(str::to_owned));
    TriggerSchedule { tenant: api.tenant, schedule, within, idempotency, by: Context::SYSTEM }
}

#[tokio::test(start_paused = true)]
async fn a_repeat_tells_nothing_to_those_who_may_not_see_the_run() {
    let api = Api::new().await;
    let limited = confined(&api).await;
    apply(&api, QUICK).await;
    nightly(&limited, "ours").await;
    let case = StartCase::new("/schedules/ours/trigger", json!({}), (404, "SCHEDULE_NOT_FOUND"));
    let first = case.send(&limited, "k").await;
    assert_eq!(first.status, 201, "{}", first.body);
    let elsewhere = NewKey {
        workspace: Some("theirs".into()),
        ..NewKey::new(api.tenant, "theirs", [Role::Operator].into_iter().collect())
    };
    let elsewhere = api.with_key(&api.new_key(elsewhere).await);
    assert_eq!(case.send(&elsewhere, "k").await.problem(), case.refusal);
    api.send("DELETE", "/api/v1/schedules/ours", json!({})).await.ok();
    let again = case.send(&limited, "k").await;
    assert_eq!((again.status.as_u16(), &again.body), (201, &first.body));
    assert_eq!(case.send(&elsewhere, "k").await.problem(), case.refusal);

    // The same client, whose key is limited to another workspace by now.
    nightly(&limited, "hourly").await;
    let schedules = api.engine.schedules();
    schedules.trigger(triggered(&api, "hourly", Some(WORKSPACE))).await.unwrap();
    let told = schedules.trigger(triggered(&api, "hourly", Some("theirs"))).await;
    assert!(matches!(told, Err(EngineError::IdempotencyMismatch)), "{told:?}");
    api.end().await;
}

/// Servers of earlier releases have kept the answer under the key of the slot.
#[tokio::test(start_paused = true)]
async fn a_trigger_of_before_an_upgrade_is_not_carried_out_again() {
    let api = Api::new().await;
    apply(&api, QUICK).await;
    let schedule = nightly(&api, "nightly").await;
    let key = format!("scheduler:{schedule}:now:{}", Hash::of(b"c:k"));
    let start = StartWorkflow {
        idempotency: Some(IdempotencyKey { client: "scheduler".to_owned(), key }),
        ..StartWorkflow::new(api.tenant, "quick", Json::trusted("{}"))
    };
    let before = api.engine.runs().start_workflow(start).await.unwrap();
    let again = api.engine.schedules().trigger(triggered(&api, "nightly", None)).await.unwrap();
    assert_eq!((again.run, again.replayed), (before.run, true));
    api.end().await;
}
