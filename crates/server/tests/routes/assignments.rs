//! Runs that one worker has as a whole, over HTTP.

use serde_json::{Value, json};

use crate::harness::{Api, completed};
use crate::numbers::shown_to;
use crate::set_up::until;

const SHARES: &str = "name: shares\nprofile: dev-flex\nsteps:\n\
                      - { id: write, run: [/usr/bin/true], effect: read, workdir: run, on_failure: pause }\n\
                      - { id: read, run: [/usr/bin/true], effect: read, workdir: run, on_failure: pause }\n";

pub async fn start(api: &Api) -> String {
    api.post("/workflows", json!({ "source": SHARES })).await.ok();
    api.post("/runs", json!({ "workflow": "shares" })).await.text("run_id")
}

pub async fn keeper(api: &Api, name: &str) -> String {
    let capabilities = json!(["effects", "workdir", "command:dev-flex"]);
    let hello = json!({ "worker": name, "queues": ["default"], "slots": 2, "capabilities": capabilities });
    api.post("/agent/register", hello).await.text("session")
}

pub async fn poll(api: &Api, session: &str) -> Value {
    api.post("/agent/poll", json!({ "session": session, "max": 1, "wait_ms": 3000 })).await.ok()
}

pub fn answer(offer: &Value, verdict: Value) -> Value {
    let mut answer = json!({ "answer": verdict });
    for field in ["tenant", "run", "epoch", "number"] {
        answer[field] = offer[field].clone();
    }
    answer
}

pub async fn take(api: &Api, session: &str) -> Value {
    let polled = poll(api, session).await;
    let offer = polled["offers"][0].clone();
    assert_eq!(offer["profile"], "dev-flex", "{polled}");
    let path = format!("/agent/{session}/assignments");
    assert_eq!(api.post(&path, answer(&offer, json!({ "status": "acked" }))).await.status, 204);
    offer
}

#[tokio::test(start_paused = true)]
async fn a_run_is_shown_with_its_worker_and_the_worker_with_its_run() {
    let api = Api::new().await;
    let run = start(&api).await;
    let shown = api.get(&format!("/runs/{run}")).await.ok();
    assert_eq!((&shown["state"], &shown["detail"]), (&json!("pending"), &json!("assigning_worker")));
    assert_eq!(api.get(&format!("/executions/{run}")).await.ok()["status"], "assigning_worker");
    let why = api.get(&format!("/runs/{run}/why")).await.ok();
    assert_eq!((&why["because"][0]["cause"], &why["because"][0]["workers"]), (&json!("assigning"), &json!(0)), "{why}");
    assert_eq!(why["next"][0], "start_worker");

    let session = keeper(&api, "box").await;
    let offer = take(&api, &session).await;
    assert_eq!(offer["commands"].as_array().unwrap().len(), 2, "{offer}");
    let shown = api.get(&format!("/runs/{run}")).await.ok();
    assert_eq!((&shown["assignment"]["worker"], &shown["assignment"]["state"]), (&json!("box"), &json!("acked")));
    let worker = api.get(&format!("/workers/{session}")).await.ok();
    assert_eq!((&worker["assigned"][0]["run_id"], &worker["assigned"][0]["state"]), (&json!(run), &json!("acked")));
    let keeps = json!([{ "tenant": offer["tenant"], "run": run }]);
    let beat = |keeps: &Value| json!({ "session": session, "held": [], "keeps": keeps });
    assert_eq!(api.post("/agent/heartbeat", beat(&keeps)).await.ok().get("over"), None);

    for _ in 0..2 {
        let step = poll(&api, &session).await["assignments"][0].clone();
        assert_eq!(step["command"]["workdir"], true, "{step}");
        api.report(&session, &step, completed(json!(1))).await.ok();
    }
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["state"], "succeeded");
    assert_eq!(api.post("/agent/heartbeat", beat(&keeps)).await.ok()["over"], keeps);
    let events = api.get(&format!("/runs/{run}/events")).await.ok();
    let assigned = events["events"].as_array().unwrap().iter().find(|event| event["type"] == "session.assigned");
    assert_eq!(assigned.unwrap()["payload"]["worker"], "box", "{events}");
    let (_, metrics) = shown_to(&api.in_charge().await, "text/plain").await;
    assert!(metrics.contains(r#"interlock_worker_assignments_total{worker_id="box",status="acked"} 1"#), "{metrics}");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_worker_is_lost_in_a_command_is_reassigned_by_a_person() {
    let api = Api::new().await;
    let run = start(&api).await;
    let refused = api.post(&format!("/runs/{run}/reassign"), json!({ "reason": "" })).await;
    assert_eq!(refused.problem().0, 422, "{}", refused.body);
    let session = keeper(&api, "box").await;
    take(&api, &session).await;
    let path = format!("/runs/{run}/reassign");
    let because = json!({ "reason": "the machine is gone" });
    assert_eq!(poll(&api, &session).await["assignments"][0]["run"], json!(run));
    assert_eq!(api.post(&path, because.clone()).await.problem(), (409, "RUN_INVALID_TRANSITION"), "it runs a command");
    // Its heartbeats have stopped.
    until(&api, &run, "paused").await;
    let why = api.get(&format!("/runs/{run}/why")).await.ok();
    assert_eq!(why["next"][0], "reassign", "{why}");
    assert_eq!(api.post(&path, because).await.ok()["state"], "running");
    let other = keeper(&api, "other").await;
    assert_eq!(take(&api, &other).await["number"], 2);
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_another_worker_was_offered_is_not_for_this_one() {
    let api = Api::new().await;
    start(&api).await;
    let (session, other) = (keeper(&api, "box").await, keeper(&api, "other").await);
    let offer = poll(&api, &session).await["offers"][0].clone();
    let acked = answer(&offer, json!({ "status": "acked" }));
    let refused = api.post(&format!("/agent/{other}/assignments"), acked.clone()).await;
    assert_eq!(refused.problem(), (409, "ASSIGNMENT_OVER"));
    let mut surplus = acked.clone();
    surplus["surplus"] = json!(1);
    assert_eq!(api.post(&format!("/agent/{session}/assignments"), surplus).await.problem().0, 400);
    for _ in 0..2 {
        assert_eq!(api.post(&format!("/agent/{session}/assignments"), acked.clone()).await.status, 204, "a repeat");
    }
    let unknown = answer(&offer, json!({ "status": "refused", "check": "mood", "why": "x" }));
    assert_eq!(api.post(&format!("/agent/{session}/assignments"), unknown).await.problem().0, 400);
    api.end().await;
}
