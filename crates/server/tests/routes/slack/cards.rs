//! What a card shows, when it changes, and what it does where something goes wrong.

use serde_json::json;

use super::stand_in::Fault;
use super::{APPROVE, REJECT, Slacked};
use crate::approvals::Person;
use crate::harness::plan;

#[tokio::test]
async fn a_card_shows_what_is_asked_and_is_locked_after_a_vote_elsewhere() {
    let at = Slacked::new().await;
    let ada = at.person("ada", "U0ADA").await;
    let run = at.gated(1).await;
    let card = at.slack.card().await;
    let shown = card.shown();
    for text in ["Approval needed", "Workflow: demo (version 1)", "Step: gate", "ship it?", "Approvals needed: 1", &run]
    {
        assert!(shown.contains(text), "{text} is not in {shown}");
    }
    assert!(shown.contains("https://interlock.example.org/approvals/apr_"), "{shown}");
    assert!(card.button(APPROVE).is_some() && card.button(REJECT).is_some());

    let yes = crate::approvals::yes(&at.api, &run).await;
    ada.post(&format!("/runs/{run}/approve"), yes).await.ok();
    let locked = at.slack.card_showing("Approved by ada").await;
    assert_eq!((locked.ts.as_str(), locked.button(APPROVE), locked.button(REJECT)), (card.ts.as_str(), None, None));
    assert_eq!(at.slack.held().messages.len(), 1);
    at.end().await;
}

#[tokio::test]
async fn a_card_is_locked_when_its_run_is_canceled() {
    let at = Slacked::new().await;
    let run = at.gated(1).await;
    at.slack.card().await;
    at.api.post(&format!("/runs/{run}/cancel"), json!({ "reason": "over" })).await.ok();
    let locked = at.slack.card_showing("No longer needed").await;
    assert_eq!(locked.button(APPROVE), None);
    at.end().await;
}

#[tokio::test]
async fn what_does_not_fit_gets_no_buttons() {
    let at = Slacked::new().await;
    let gate = json!([{ "key": "gate", "kind": "approval", "message": "x".repeat(2_000) }]);
    at.api.post("/runs", json!({ "plan": plan(gate) })).await.ok();
    let card = at.slack.card().await;
    assert!(card.button(APPROVE).is_some(), "this fits");
    at.end().await;

    let at = Slacked::new().await;
    let long: Vec<String> = (0..64).map(|number| format!("group-{number}-{}", "y".repeat(118))).collect();
    let gate = json!([{ "key": "gate", "kind": "approval", "message": "x".repeat(4_000), "approvers": long }]);
    let started = at.api.post("/runs", json!({ "plan": plan(gate) })).await;
    assert!(started.status.is_success(), "{}", started.body);
    let card = at.slack.card().await;
    assert_eq!((card.button(APPROVE), card.button(REJECT)), (None, None));
    assert!(card.shown().contains("does not fit into Slack") && card.shown().contains("interlock approval show apr_"));
    at.end().await;
}

#[tokio::test]
async fn text_of_others_is_shown_and_never_obeyed() {
    let at = Slacked::new().await;
    let message = "<!channel> & <https://evil.example|ok>\u{202e}\nBlast radius: low\n:tada: *bold*";
    let gate = json!([{ "key": "gate", "kind": "approval", "message": message }]);
    at.api.post("/runs", json!({ "plan": plan(gate) })).await.ok();
    let card = at.slack.card().await;
    let holds =
        |block: &&serde_json::Value| block["text"]["text"].as_str().is_some_and(|text| text.contains("<!channel>"));
    let block = card.blocks.iter().find(holds).unwrap();
    assert_eq!((&block["text"]["type"], &block["text"]["emoji"]), (&json!("plain_text"), &json!(false)));
    let text = block["text"]["text"].as_str().unwrap();
    assert!(text.contains("\\u{202e}\\nBlast radius") && !text.contains('\u{202e}'), "{text}");
    at.end().await;
}

#[tokio::test]
async fn an_action_is_shown_whole() {
    let at = Slacked::new().await;
    let input = json!({ "sql": "DROP TABLE <users>", "amount": 7, "note": "a\u{200b}b" });
    let mut step = crate::harness::task("wipe");
    (step["rules"], step["effect"], step["with"]) = (json!({ "destructive": true }), json!("unsafe"), input);
    step["rollback"] = json!({ "handler": "restore" });
    let mut plan = plan(json!([step]));
    plan["rules"] = json!({ "profile": "prod-critical" });
    let started = at.api.post("/runs", json!({ "plan": plan })).await;
    assert!(started.status.is_success(), "{}", started.body);
    let shown = at.slack.card().await.shown();
    for text in [
        "Action: wipe (task)",
        "Destructive: yes",
        "\"sql\": \"DROP TABLE <users>\"",
        "\"amount\": 7",
        "a\\u{200b}b",
        "Profile: prod-critical",
        "two_keys: it is destructive",
        "Tier: high",
        "Undone by: restore",
        "If rejected: the run ",
        "If nobody decides: the run ",
        "Answer due: ",
    ] {
        assert!(shown.contains(text), "{text} is not in {shown}");
    }
    at.end().await;
}

/// As a press would be answered: the setting of the tenant and the author of the workflow count on the card, too.
#[tokio::test]
async fn a_card_says_who_may_not_decide_and_who_may_after_all() {
    let at = Slacked::new().await;
    let ada = Person::new(&at.api, "ada", json!(["admin", "operator", "approver"]), json!([])).await;
    let own = json!({ "plan": crate::approvals::gate(1, json!([])) });
    ada.post("/runs", own.clone()).await.ok();
    let shown = at.slack.card_showing("May not decide: ada").await.shown();
    assert!(!shown.contains("May decide too"), "{shown}");

    let tenant = format!("/api/v1/tenants/{}", at.api.tenant);
    at.api.send("PATCH", &tenant, json!({ "self_approval": true })).await.ok();
    let run = ada.post("/runs", own).await.text("run_id");
    let shown = at.slack.card_showing("May decide too: ada (started or directed it").await.shown();
    assert!(shown.contains(&run) && !shown.contains("May not decide"), "{shown}");

    // Two people: neither who started it nor who wrote it.
    let source = "name: w\nsteps:\n  - { id: gate, approval: { quorum: 2 } }\n  - { id: one, task: a }\n";
    let applied = ada.post("/workflows", json!({ "source": source })).await;
    assert!(applied.status.is_success(), "{}", applied.body);
    let run = at.api.post("/runs", json!({ "workflow": "w" })).await.text("run_id");
    let shown = at.slack.card_showing("Workflow: w (version 1)").await.shown();
    let barred = shown.split("May not decide: ").nth(1).and_then(|rest| rest.lines().next()).unwrap_or_default();
    assert!(shown.contains(&run) && barred.contains("ada"), "{shown}");
    at.end().await;
}

#[tokio::test]
async fn a_card_whose_answer_was_lost_is_found_and_not_posted_again() {
    let at = Slacked::new().await;
    at.slack.fail("chat.postMessage", Fault::Lost);
    let ada = at.person("ada", "U0ADA").await;
    let run = at.gated(1).await;
    let card = at.slack.card().await;
    // The next try asks first, and brings the card up to date.
    at.slack.wait_until("the card's update", |held| held.messages[0].updates > 0).await;
    assert_eq!(at.slack.held().messages.len(), 1);
    drop(ada);
    at.pressed("U0ADA", APPROVE, &card).await;
    at.slack.card_showing("Approved by ada").await;
    assert_eq!(at.run_state(&run).await, "succeeded");
    at.end().await;
}

#[tokio::test]
async fn a_card_comes_when_slack_is_back() {
    let at = Slacked::new().await;
    at.slack.fail("chat.postMessage", Fault::Status(503));
    at.slack.fail("chat.postMessage", Fault::Status(429));
    at.gated(1).await;
    at.slack.card().await;
    assert_eq!(at.slack.held().messages.len(), 1);
    at.end().await;
}
