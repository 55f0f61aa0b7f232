//! The runbook surface: tickets, steps by number, its own words for states.

use serde_json::{Value, json};

use crate::approvals::Person;
use crate::harness::{Api, completed, task};

const RUNBOOK: &str = r#"
name: restart-db
on:
  ticket: { filter: "event.ticket_id.startsWith('INC') && (!has(event.service) || event.service == 'db')", inputs: { incident: "${{ event.ticket_id }}" } }
inputs: { incident: { type: string, required: true } }
profile: staging-standard
approval: { mode: critical_only }
steps:
  - { id: check, task: check, effect: read }
  - { id: sure, approval: "Restart for ${{ inputs.incident }}?" }
  - { id: restart, task: restart, rollback: { task: undo } }
  - { id: note, task: note, rollback: { task: undo } }
"#;

async fn apply(api: &Api, source: &str) {
    api.post("/workflows", json!({ "source": source })).await.ok();
}

async fn create(api: &Api, body: Value) -> String {
    api.post("/executions", body).await.text("session_id")
}

async fn look(api: &Api, session: &str) -> Value {
    api.get(&format!("/executions/{session}")).await.ok()
}

#[tokio::test(start_paused = true)]
async fn a_ticket_is_worked_on_from_end_to_end() {
    let api = Api::new().await;
    apply(&api, RUNBOOK).await;
    let ada = Person::new(&api, "ada", json!(["approver"]), json!(["sre"])).await;
    let asked = json!({
        "ticket_id": "INC-9081", "runbook_id": "restart-db", "validation_mode": "per_phase",
        "environment_profile": "prod-standard",
    });
    let made = api.post("/executions", asked.clone()).await;
    assert_eq!(made.status.as_u16(), 201);
    let session = made.text("session_id");
    assert_eq!(made.headers["location"], format!("/api/v1/executions/{session}"));
    let seen = look(&api, &session).await;
    assert_eq!(seen["status"], "queued", "nothing of it has begun");
    assert_eq!(
        (&seen["environment_profile"], &seen["sandbox_profile"]),
        (&json!("prod-standard"), &json!("prod-standard"))
    );
    assert_eq!((&seen["validation_mode"], &seen["ticket_id"]), (&json!("per_phase"), &json!("INC-9081")));
    assert_eq!((&seen["current_step"], &seen["steps"][0]["status"]), (&json!(1), &json!("approved")));
    assert_eq!(
        api.get(&format!("/runs/{session}")).await.ok()["trigger"],
        json!({ "type": "ticket", "ref": "INC-9081" })
    );

    let busy = api.post("/executions", asked).await;
    assert_eq!((busy.problem(), busy.text("run_id")), ((409, "RUN_SUBJECT_BUSY"), session.clone()));

    let worker = api.register().await;
    let assigned = api.poll(&worker).await;
    assert_eq!(assigned["input"], json!({ "incident": "INC-9081" }), "as `on.ticket` says");
    api.report(&worker, &assigned, completed(json!("all is well"))).await.ok();
    let seen = look(&api, &session).await;
    assert_eq!((&seen["status"], &seen["current_step"]), (&json!("waiting_for_approval"), &json!(2)));
    assert_eq!(seen["outputs"], json!([{ "step_number": 1, "data": "all is well", "bytes": 11, "truncated": false }]));
    let asked = &seen["approvals"][0];
    assert_eq!((&asked["step_number"], &asked["status"]), (&json!(2), &json!("pending")));
    assert_eq!(asked["message"], "Restart for INC-9081?");

    let path = format!("/executions/{session}/approve");
    let yes = json!({ "step_number": 2, "approved": true, "notes": "go", "approver_role": "sre" });
    let voted = ada.post(&path, yes).await.ok();
    assert_eq!((&voted["status"], &voted["approval"]["status"]), (&json!("executing"), &json!("approved")));
    assert_eq!((&voted["step"], &voted["tier"]), (&json!("sure"), &json!("medium")));
    assert_eq!(voted["approval"]["digest"], asked["digest"]);
    assert_eq!(voted["summary"], "ada approved step `sure` of restart-db version 1: Restart for INC-9081?");
    let assigned = api.poll(&worker).await;
    api.report(&worker, &assigned, completed(json!(1))).await.ok();
    // The workflow has no gate before the last step; in production the policy asks.
    let seen = look(&api, &session).await;
    assert_eq!((&seen["status"], &seen["current_step"]), (&json!("waiting_for_approval"), &json!(4)));
    let digest =
        seen["approvals"].as_array().unwrap().iter().find(|open| open["step_number"] == 4).unwrap()["digest"].clone();
    ada.post(&path, json!({ "step_number": 4, "approved": true, "digest": digest })).await.ok();
    let assigned = api.poll(&worker).await;
    api.report(&worker, &assigned, completed(json!(1))).await.ok();
    assert_eq!(look(&api, &session).await["status"], "completed");

    let first = api.get(&format!("/executions/{session}/events?limit=3")).await.ok();
    let names: Vec<_> =
        first["events"].as_array().unwrap().iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names[0], "session.created");
    assert_eq!((first["events"].as_array().unwrap().len(), &first["next_since"]), (3, &json!("3")));
    assert_eq!(first["events"][1]["session_id"], json!(session));
    let all = api.get(&format!("/executions/{session}/events?limit=100")).await.ok();
    let profile = look(&api, &session).await["environment_profile"].clone();
    let first_word = json!(profile.as_str().unwrap().split('-').next());
    for event in all["events"].as_array().unwrap() {
        let (environment, sandbox) = (&event["meta"]["environment"], &event["meta"]["sandbox_profile"]);
        assert_eq!((environment, sandbox), (&first_word, &profile), "{event}");
    }
    let of_worker = |name: &str| {
        let all = all["events"].as_array().unwrap().iter();
        all.filter(|event| event["event"] == name && event["meta"]["worker_id"] == "test").count()
    };
    let started = of_worker("execution.step.started");
    assert!(started > 0);
    assert_eq!(of_worker("execution.step.completed"), started, "who began a step is who completed it");
    let rest = api.get(&format!("/executions/{session}/events?since=3")).await.ok();
    assert_eq!(rest["events"][0]["id"], "4");
    assert_eq!(rest["events"].as_array().unwrap().last().unwrap()["event"], "session.completed");
    let wrong = api.get(&format!("/executions/{session}/events?since=x")).await;
    assert_eq!(wrong.problem(), (400, "REQUEST_INVALID"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn who_names_no_runbook_gets_the_one_that_takes_the_ticket() {
    let api = Api::new().await;
    let none = api.post("/executions", json!({ "ticket_id": "INC-1" })).await;
    assert_eq!((none.problem(), none.body.get("candidates")), ((422, "RUNBOOK_UNCLEAR"), None));
    apply(&api, RUNBOOK).await;
    let session = create(&api, json!({ "ticket_id": "INC-1" })).await;
    assert_eq!(look(&api, &session).await["runbook_id"], "restart-db");
    let other = json!({ "ticket_id": "INC-2", "ticket": { "service": "web" } });
    for body in [json!({ "ticket_id": "CHG-1" }), other] {
        let nobody = api.post("/executions", body).await;
        assert_eq!((nobody.problem(), &nobody.body["candidates"]), ((422, "RUNBOOK_UNCLEAR"), &json!(["restart-db"])));
    }

    apply(&api, "name: any-ticket\non: { ticket: {} }\nsteps: [{ id: a, task: a }]\n").await;
    apply(&api, "name: unrelated\non: { signal: { type: x } }\nsteps: [{ id: a, task: a }]\n").await;
    let two = api.post("/executions", json!({ "ticket_id": "INC-3" })).await;
    assert_eq!(two.problem(), (422, "RUNBOOK_UNCLEAR"));
    assert_eq!(two.body["candidates"], json!(["any-ticket", "restart-db"]));
    // A request that names a runbook gets it, whether or not its filter would have taken the ticket.
    let session = create(&api, json!({ "ticket_id": "CHG-3", "runbook_id": "restart-db" })).await;
    let worker = api.register().await;
    let mut inputs = Vec::new();
    for _ in 0..2 {
        let assigned = api.poll(&worker).await;
        inputs.push((assigned["run"].as_str().unwrap().to_owned(), assigned["input"].clone()));
    }
    assert!(inputs.contains(&(session, json!({ "incident": "CHG-3" }))), "{inputs:?}");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_may_only_be_stricter_and_must_be_right() {
    let api = Api::new().await;
    apply(&api, RUNBOOK).await;
    let with = |more: Value| {
        let mut body = json!({ "ticket_id": "INC-1", "runbook_id": "restart-db" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    for (more, code) in [
        (json!({ "validation_mode": "sometimes" }), (400, "REQUEST_INVALID")),
        (json!({ "validation_mode": "final_only" }), (422, "INPUT_INVALID")),
        (json!({ "environment_profile": "moon" }), (422, "INPUT_INVALID")),
        (json!({ "environment_profile": "dev-flex" }), (422, "INPUT_INVALID")),
        (json!({ "runbook_id": "unknown" }), (404, "WORKFLOW_NOT_FOUND")),
        (json!({ "ticket_id": "" }), (422, "INPUT_INVALID")),
        (json!({ "inputs": { "incident": 7 } }), (422, "INPUT_INVALID")),
        (json!({ "surprise": 1 }), (400, "REQUEST_INVALID")),
    ] {
        let refused = api.post("/executions", with(more.clone())).await;
        assert_eq!(refused.problem(), code, "{more}: {}", refused.body);
    }
    let mode = api.post("/executions", with(json!({ "validation_mode": "sometimes" }))).await;
    assert!(mode.text("detail").contains("per_step"), "{}", mode.body);
    assert_eq!(api.get("/runs").await.ok()["runs"], json!([]), "and nothing has started");
    api.end().await;
}

/// A mode that is asked for is kept: before every step that it covers, approvers are asked.
#[tokio::test(start_paused = true)]
async fn a_mode_that_a_request_asks_for_is_kept() {
    let api = Api::new().await;
    let critical = "name: wipe\nsteps: [{ id: wipe, task: wipe, effect: unsafe, critical: true, destructive: true }]\n";
    apply(&api, critical).await;
    let asked = json!({ "ticket_id": "INC-1", "runbook_id": "wipe", "validation_mode": "per_step" });
    let session = create(&api, asked).await;
    let seen = look(&api, &session).await;
    assert_eq!(seen["status"], "waiting_for_approval", "{seen}");
    assert_eq!(seen["approvals"][0]["status"], "pending", "{seen}");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_same_request_is_one_execution_whatever_takes_tickets_by_then() {
    let api = Api::new().await;
    apply(&api, RUNBOOK).await;
    let key = [("idempotency-key", "k1")];
    let body = json!({ "ticket_id": "INC-1", "validation_mode": "per_phase" });
    let first = api.post_with("/executions", body.clone(), &key).await;
    apply(&api, "name: any-ticket\non: { ticket: {} }\nsteps: [{ id: a, task: a }]\n").await;
    let again = api.post_with("/executions", body, &key).await;
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!((again.status.as_u16(), again.text("session_id")), (201, first.text("session_id")));
    let other = json!({ "ticket_id": "INC-1", "validation_mode": "critical_only" });
    assert_eq!(api.post_with("/executions", other, &key).await.problem(), (422, "IDEMPOTENCY_MISMATCH"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn only_a_step_that_waits_is_approved_and_only_by_who_may() {
    let api = Api::new().await;
    apply(&api, RUNBOOK).await;
    let ada = Person::new(&api, "ada", json!(["approver"]), json!(["sre"])).await;
    let session = create(&api, json!({ "ticket_id": "INC-1" })).await;
    let path = format!("/executions/{session}/approve");
    let step = |number: u32| json!({ "step_number": number, "approved": true });
    assert_eq!(ada.post(&path, step(1)).await.problem(), (409, "APPROVAL_NOT_OPEN"));
    assert_eq!(ada.post(&path, step(2)).await.problem(), (409, "APPROVAL_NOT_OPEN"), "it is not there yet");
    for number in [0, 5] {
        assert_eq!(ada.post(&path, step(number)).await.problem(), (404, "STEP_NOT_FOUND"));
    }
    let worker = api.register().await;
    let assigned = api.poll(&worker).await;
    api.report(&worker, &assigned, completed(json!(1))).await.ok();
    assert_eq!(ada.post(&path, step(1)).await.problem(), (409, "APPROVAL_NOT_OPEN"));
    assert_eq!(api.post(&path, step(2)).await.problem(), (403, "PERSON_REQUIRED"));
    let claimed = json!({ "step_number": 2, "approved": true, "approver_role": "cab" });
    assert_eq!(ada.post(&path, claimed).await.problem(), (403, "PERMISSION_DENIED"));
    let no = json!({ "step_number": 2, "approved": false, "notes": "not now", "approver_role": "approver" });
    let voted = ada.post(&path, no).await.ok();
    assert_eq!((&voted["status"], &voted["approval"]["status"]), (&json!("failed"), &json!("rejected")));
    assert_eq!(voted["approval"]["votes"][0]["notes"], "not now");
    assert_eq!(ada.post(&path, step(2)).await.problem(), (409, "RUN_TERMINAL_STATE"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_step_on_which_much_hangs_is_approved_by_its_digest() {
    let api = Api::new().await;
    let source =
        "name: wipe\nsteps:\n  - { id: sure, approval: \"Wipe?\" }\n  - { id: wipe, task: wipe, destructive: true }\n";
    apply(&api, source).await;
    let ada = Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    let session = create(&api, json!({ "ticket_id": "INC-1", "runbook_id": "wipe" })).await;
    let path = format!("/executions/{session}/approve");
    let digest = look(&api, &session).await["approvals"][0]["digest"].clone();
    let blind = ada.post(&path, json!({ "step_number": 1, "approved": true })).await;
    assert_eq!(blind.problem(), (409, "APPROVAL_DIGEST_REQUIRED"));
    assert_eq!(blind.body["approvals"][0]["digest"], digest);
    let stale = ada.post(&path, json!({ "step_number": 1, "approved": true, "digest": "00" })).await;
    assert_eq!((stale.problem(), &stale.body["approval"]["digest"]), ((409, "APPROVAL_CHANGED"), &digest));
    let voted = ada.post(&path, json!({ "step_number": 1, "approved": true, "digest": digest })).await.ok();
    assert_eq!((&voted["tier"], &voted["status"]), (&json!("high"), &json!("waiting_for_approval")));
    let asked = look(&api, &session).await;
    assert_eq!(asked["current_step"], 2, "one key at the gate, and the policy demands two: {asked}");
    api.end().await;
}

/// Walks an execution to its last step and stops there.
async fn at_the_last_step(api: &Api, ticket: &str) -> (String, String) {
    let ada = Person::new(api, ticket, json!(["approver"]), json!(["sre"])).await;
    let session = create(api, json!({ "ticket_id": ticket, "runbook_id": "restart-db" })).await;
    let worker = api.register().await;
    let assigned = api.poll(&worker).await;
    api.report(&worker, &assigned, completed(json!(1))).await.ok();
    ada.post(&format!("/executions/{session}/approve"), json!({ "step_number": 2, "approved": true })).await.ok();
    let assigned = api.poll(&worker).await;
    api.report(&worker, &assigned, completed(json!(1))).await.ok();
    (session, worker)
}

#[tokio::test(start_paused = true)]
async fn a_rollback_goes_back_to_a_step_or_to_the_beginning() {
    let api = Api::new().await;
    apply(&api, RUNBOOK).await;
    let (session, worker) = at_the_last_step(&api, "INC-1").await;
    let path = format!("/executions/{session}/rollback");
    assert_eq!(api.post(&path, json!({ "reason": " " })).await.problem(), (422, "INPUT_INVALID"));
    let nothing = json!({ "reason": "x", "step_number": 4 });
    assert_eq!(api.post(&path, nothing).await.problem(), (409, "RUN_INVALID_TRANSITION"), "it has not run");
    assert_eq!(api.post(&path, json!({ "reason": "x", "step_number": 9 })).await.problem(), (404, "STEP_NOT_FOUND"));
    let began = api.post(&path, json!({ "reason": "wrong box", "step_number": 3 })).await.ok();
    assert_eq!(began["status"], "rollback");
    assert_eq!(look(&api, &session).await["current_step"], 5, "the step that undoes the third");
    let assigned = api.poll(&worker).await;
    assert_eq!(assigned["handler"], "undo");
    api.report(&worker, &assigned, completed(json!(1))).await.ok();
    let seen = look(&api, &session).await;
    assert_eq!((&seen["status"], &seen["reason"]), (&json!("failed"), &json!("rolled_back")));
    assert_eq!(seen["steps"][2]["status"], "rolled_back");

    let (session, _) = at_the_last_step(&api, "INC-2").await;
    let began = api.post(&format!("/executions/{session}/rollback"), json!({ "reason": "all of it" })).await.ok();
    assert_eq!(began["status"], "rollback");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn states_that_002_has_no_word_for_keep_ours_beside_the_nearest() {
    let api = Api::new().await;
    let waiting = "name: w\nsteps: [{ id: a, wait: { signal: go } }, { id: b, task: b }]\n";
    apply(&api, waiting).await;
    let session = create(&api, json!({ "ticket_id": "T", "runbook_id": "w" })).await;
    let seen = look(&api, &session).await;
    assert_eq!((&seen["status"], &seen["steps"][0]["status"]), (&json!("executing"), &json!("running")));
    assert_eq!(seen["steps"][0]["detail"], "waiting_signal");
    api.post(&format!("/runs/{session}/cancel"), json!({ "reason": "enough" })).await.ok();
    let seen = look(&api, &session).await;
    assert_eq!(seen["status"], format!("cancel{}", "led"));
    assert_eq!((&seen["steps"][1]["status"], &seen["steps"][1]["detail"]), (&json!("failed"), &json!("canceled")));
    api.end().await;
}

/// An output that stands beside its row is shown like any other: its end.
#[tokio::test(start_paused = true)]
async fn the_end_of_an_output_beside_its_row_is_shown() {
    let api = Api::new().await;
    let run = api.start(json!([task("a")])).await;
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    let long = format!("{}the end", "x".repeat(200_000));
    api.report(&session, &assignment, completed(json!(long))).await.ok();
    let shown = api.get(&format!("/executions/{run}")).await.ok();
    let output = &shown["outputs"][0];
    assert_eq!((&output["bytes"], &output["truncated"]), (&json!(long.len()), &json!(true)), "{output}");
    let data = output["data"].as_str().unwrap();
    assert!(data.ends_with("the end") && data.len() == 64 << 10, "{} bytes", data.len());
    api.end().await;
}
