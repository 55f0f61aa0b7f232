//! From a press to a vote: whose it is, what it is about, and what is refused.

use std::time::Duration;

use interlock_core::ids::SlackId;
use interlock_core::tenant::identity::Role;
use interlock_core::time::Millis;
use interlock_server::identity::{NewKey, create_key};
use interlock_store::PutSlack;
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::{APPROVE, REJECT, SECRET, Slacked, connection, link};
use crate::approvals::Person;

/// How long Slack waits for the answer to a press.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(3);

async fn a_press_approves(at: Slacked) {
    let _ada = at.person("ada", "U0ADA").await;
    let run = at.gated(1).await;
    let card = at.card().await;
    at.pressed("U0ADA", APPROVE, &card).await;
    let locked = at.slack.card_showing("Approved by ada").await;
    assert_eq!(locked.button(APPROVE), None);
    assert_eq!(at.run_state(&run).await, "succeeded");
    // Once more, on the card as it was: nothing happens, and the user gets no message.
    at.pressed("U0ADA", APPROVE, &card).await;
    let shown = at.api.get(&format!("/approvals?run={run}")).await.ok();
    assert_eq!(shown["approvals"][0]["votes"].as_array().unwrap().len(), 1);
    // A user who presses too late is told so.
    let _bob = at.person("bob", "U0BOB").await;
    at.pressed("U0BOB", APPROVE, &card).await;
    assert!(at.slack.whisper(0).await.contains("approved already"));
    assert_eq!(at.slack.held().whispered.len(), 1);
    let events = at.api.get(&format!("/runs/{run}/events")).await.ok();
    assert!(events.to_string().contains("\"via\":\"slack\""), "{events}");
    at.end().await;
}

#[tokio::test]
async fn a_press_is_a_vote() {
    a_press_approves(Slacked::new().await).await;
}

#[tokio::test]
async fn a_press_is_a_vote_on_postgres() {
    a_press_approves(Slacked::on_postgres("slack_press").await).await;
}

/// Slack gives up on a press after three seconds. Its own methods, which open dialogs, say who a stranger is and take the card, may
/// need longer than that: the answer to the press does not wait for them, and neither does the vote.
#[tokio::test]
async fn a_press_is_acknowledged_in_time_while_slack_itself_stalls() {
    let at = Slacked::new().await;
    let _ada = at.person("ada", "U0ADA").await;
    let (approved, rejected) = (at.gated(1).await, at.gated(1).await);
    let mut presses = Vec::new();
    for (run, user, action) in
        [(&approved, "U0ADA", APPROVE), (&rejected, "U0ADA", REJECT), (&rejected, "U0NEW", APPROVE)]
    {
        let card = at.noted(at.slack.card_showing(run).await).await;
        presses.push(at.press(user, action, &card));
    }
    at.slack.stall(true);
    for press in &presses {
        let answer = timeout(ACKNOWLEDGED_WITHIN, at.send(press)).await.expect("it is acknowledged in time");
        assert_eq!(answer.status, 200);
    }
    at.slack.wait_until("calls to Slack that get no answer", |held| held.waiting >= 2).await;
    let counted = async {
        while at.run_state(&approved).await != "succeeded" {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_mins(1), counted).await.expect("the vote counts without Slack");
    assert_eq!(at.run_state(&rejected).await, "waiting_approval");
    at.slack.stall(false);
    at.slack.card_showing("Approved by ada").await;
    assert!(at.slack.whisper(0).await.contains("does not know who you are"));
    at.slack.wait_until("the dialog", |held| held.views.len() == 1).await;
    // The dialog is sent off while Slack stalls again.
    let metadata = at.slack.held().views[0]["private_metadata"].clone();
    at.slack.stall(true);
    let sent = Slacked::dialog("U0ADA", &metadata, json!("not today"));
    let answer = timeout(ACKNOWLEDGED_WITHIN, at.send(&sent)).await.expect("it is acknowledged in time");
    assert_eq!(answer.status, 200);
    at.slack.stall(false);
    at.slack.card_showing("Rejected by ada").await;
    at.end().await;
}

#[tokio::test]
async fn a_double_press_is_one_vote() {
    let at = Slacked::new().await;
    let _ada = at.person("ada", "U0ADA").await;
    let run = at.gated(2).await;
    let card = at.card().await;
    let press = at.press("U0ADA", APPROVE, &card);
    let presses = futures::future::join_all((0..5).map(|_| at.send(&press))).await;
    assert!(presses.iter().all(|answer| answer.status == 200));
    let shown = at.slack.card_showing("Approved by ada").await;
    assert!(shown.button(APPROVE).is_some(), "another person is needed");
    let votes = at.api.get(&format!("/approvals?run={run}")).await.ok();
    assert_eq!(votes["approvals"][0]["votes"].as_array().unwrap().len(), 1, "{votes}");
    assert_eq!(at.slack.held().whispered, []);
    at.end().await;
}

#[tokio::test]
async fn two_people_decide_one_of_them_in_slack() {
    let at = Slacked::new().await;
    let _ada = at.person("ada", "U0ADA").await;
    let bob = at.person("bob", "U0BOB").await;
    let run = at.gated(2).await;
    let card = at.card().await;
    at.pressed("U0ADA", APPROVE, &card).await;
    at.slack.card_showing("Approved by ada").await;
    assert_eq!(at.run_state(&run).await, "waiting_approval");
    bob.post(&format!("/runs/{run}/approve"), crate::approvals::yes(&at.api, &run).await).await.ok();
    let locked = at.slack.card_showing("Approved by bob").await;
    assert_eq!(locked.button(APPROVE), None);
    assert_eq!(at.run_state(&run).await, "succeeded");
    at.end().await;
}

#[tokio::test]
async fn whoever_is_excluded_is_excluded_in_slack_too() {
    let at = Slacked::new().await;
    let ada = Person::new(&at.api, "ada", json!(["operator", "approver"]), json!([])).await;
    link(&at.api, at.api.tenant, "ada", "U0ADA", at.api.engine.now() - super::DAYS_AGO).await;
    let run = ada.post("/runs", json!({ "plan": crate::approvals::gate(1, json!([])) })).await.text("run_id");
    let card = at.card().await;
    at.pressed("U0ADA", APPROVE, &card).await;
    assert!(at.slack.whisper(0).await.contains("started or directed this run"));
    let _vera = Person::new(&at.api, "vera", json!(["viewer"]), json!([])).await;
    link(&at.api, at.api.tenant, "vera", "U0VERA", at.api.engine.now() - super::DAYS_AGO).await;
    at.pressed("U0VERA", APPROVE, &card).await;
    assert!(at.slack.whisper(1).await.contains("role `approver`"));
    assert_eq!(at.run_state(&run).await, "waiting_approval");
    at.end().await;
}

#[tokio::test]
async fn two_keys_need_a_sign_in_of_late() {
    let at = Slacked::new().await;
    let ada = at.person("ada", "U0ADA").await;
    let run = at.gated(2).await;
    let card = at.card().await;
    ada.post("/auth/logout", json!({})).await;
    at.pressed("U0ADA", APPROVE, &card).await;
    let told = at.slack.whisper(0).await;
    assert!(told.contains("sign in again") && told.contains("/login|Sign in>"), "{told}");
    assert_eq!(at.run_state(&run).await, "waiting_approval");
    at.end().await;
}

#[tokio::test]
async fn a_new_link_is_no_second_key() {
    let at = Slacked::new().await;
    let _ada = Person::new(&at.api, "ada", json!(["approver"]), json!([])).await;
    link(&at.api, at.api.tenant, "ada", "U0ADA", at.api.engine.now() - Millis::from_hours(23)).await;
    let run = at.gated(2).await;
    let card = at.card().await;
    at.pressed("U0ADA", APPROVE, &card).await;
    assert!(at.slack.whisper(0).await.contains("your Slack account was linked within the last day"));
    assert_eq!(at.run_state(&run).await, "waiting_approval");
    at.end().await;
}

/// A person who has the signing secret could sign presses of any user.
#[tokio::test]
async fn whoever_gave_the_signing_secret_gets_no_second_key_out_of_slack() {
    let at = Slacked::new().await;
    let root = Person::new(&at.api, "root", json!(["operator"]), json!([])).await;
    let _ada = at.person("ada", "U0ADA").await;
    let row = connection(at.api.tenant, at.id, at.api.engine.now() - super::DAYS_AGO);
    let row = interlock_store::SlackRow { secret_by: Some("root".into()), ..row };
    at.api.engine.store().write(PutSlack(row)).await.unwrap();
    let run = root.post("/runs", json!({ "plan": crate::approvals::gate(2, json!([])) })).await.text("run_id");
    let card = at.card().await;
    at.pressed("U0ADA", APPROVE, &card).await;
    assert!(at.slack.whisper(0).await.contains("root may not decide here"));
    assert_eq!(at.run_state(&run).await, "waiting_approval");
    at.end().await;
}

/// Nor a person who gave it with a key of their making, however long ago.
#[tokio::test]
async fn nor_whoever_made_the_key_that_gave_it() {
    let at = Slacked::new().await;
    let root = Person::new(&at.api, "root", json!(["admin", "operator"]), json!([])).await;
    let _ada = at.person("ada", "U0ADA").await;
    let admin = [Role::Admin].into_iter().collect();
    let new = NewKey { created_by: Some("root".into()), ..NewKey::new(at.api.tenant, "spare", admin) };
    let (key, _) = create_key(&at.api.engine, at.api.identity().secret(), new).await.unwrap();
    let key = key.id.to_string();
    let row = connection(at.api.tenant, at.id, at.api.engine.now() - super::DAYS_AGO);
    let row = interlock_store::SlackRow { secret_by: Some(key.clone()), ..row };
    at.api.engine.store().write(PutSlack(row)).await.unwrap();
    let run = root.post("/runs", json!({ "plan": crate::approvals::gate(2, json!([])) })).await.text("run_id");
    let card = at.card().await;
    at.pressed("U0ADA", APPROVE, &card).await;
    let told = at.slack.whisper(0).await;
    assert!(told.contains(&format!("{key} may not decide here")), "{told}");
    assert_eq!(at.run_state(&run).await, "waiting_approval");
    at.end().await;
}

#[tokio::test]
async fn what_is_not_signed_by_slack_now_is_turned_away() {
    let at = Slacked::new().await;
    let _ada = at.person("ada", "U0ADA").await;
    let run = at.gated(1).await;
    let card = at.card().await;
    let (press, now) = (at.press("U0ADA", APPROVE, &card), at.api.engine.now());
    let refused = (401, "WEBHOOK_SIGNATURE_INVALID");
    assert_eq!(at.send_signed(&press, "another secret of somebody", now).await.problem(), refused);
    let (old, ahead) = (now - Millis::from_secs(310), now + Millis::from_mins(10));
    assert_eq!(at.send_signed(&press, SECRET, old).await.problem(), refused);
    assert_eq!(at.send_signed(&press, SECRET, ahead).await.problem(), refused);
    assert_eq!(at.send_to(SlackId(at.api.engine.fresh_id()), &press, SECRET, now).await.problem(), refused);
    // Genuine, and nonsense.
    assert_eq!(at.send(&json!({ "type": "block_actions" })).await.status, 200);
    assert_eq!(at.send(&json!({ "no": "type" })).await.problem(), (400, "WEBHOOK_INVALID"));
    assert_eq!(at.run_state(&run).await, "waiting_approval");
    // The same signed bytes once more within the five minutes: it is the same vote.
    assert_eq!(at.send_signed(&press, SECRET, now).await.status, 200);
    at.slack.card_showing("Approved by ada").await;
    assert_eq!(at.send_signed(&press, SECRET, now).await.status, 200);
    assert_eq!(at.slack.held().whispered, []);
    at.end().await;
}

#[tokio::test]
async fn other_workspaces_and_guests_are_refused() {
    let at = Slacked::new().await;
    let _ada = at.person("ada", "U0ADA").await;
    let run = at.gated(1).await;
    let card = at.card().await;
    let mut foreign = at.press("U0ADA", APPROVE, &card);
    foreign["user"]["team_id"] = json!("T0OTHER");
    assert_eq!(at.send(&foreign).await.status, 200);
    assert!(at.slack.whisper(0).await.contains("another Slack workspace"));
    let mut enterprise = at.press("U0ADA", APPROVE, &card);
    enterprise["enterprise"] = json!({ "id": "E0OTHER" });
    at.send(&enterprise).await;
    assert!(at.slack.whisper(1).await.contains("another Slack workspace"));
    at.slack.make_guest("U0GUEST");
    at.pressed("U0GUEST", APPROVE, &card).await;
    let told = at.slack.whisper(2).await;
    assert!(told.contains("Guests") && !told.contains("token="), "{told}");
    assert_eq!(at.run_state(&run).await, "waiting_approval");
    at.end().await;
}

#[tokio::test]
async fn a_card_that_is_not_the_current_one_decides_nothing() {
    let at = Slacked::new().await;
    let _ada = at.person("ada", "U0ADA").await;
    let run = at.gated(1).await;
    let card = at.card().await;
    // A copy of the buttons, in a message that says something else.
    let mut copy = at.press("U0ADA", APPROVE, &card);
    copy["container"]["message_ts"] = json!("1720000000.999999");
    at.send(&copy).await;
    assert!(at.slack.whisper(0).await.contains("not the one that Interlock keeps up to date"));
    // Buttons of another state of the same approval.
    let mut stale = at.press("U0ADA", APPROVE, &card);
    let value = card.button(APPROVE).unwrap();
    stale["actions"][0]["value"] = json!(format!("{}.{}", value.split_once('.').unwrap().0, "0".repeat(64)));
    at.send(&stale).await;
    assert!(at.slack.whisper(1).await.contains("This card is outdated"));
    // No button of Interlock at all.
    let mut garbled = at.press("U0ADA", APPROVE, &card);
    garbled["actions"][0]["value"] = json!("x".repeat(500));
    at.send(&garbled).await;
    at.slack.whisper(2).await;
    assert_eq!(at.run_state(&run).await, "waiting_approval");
    at.end().await;
}

#[tokio::test]
async fn a_rejection_asks_for_a_comment() {
    let at = Slacked::new().await;
    let _ada = at.person("ada", "U0ADA").await;
    let _bob = at.person("bob", "U0BOB").await;
    let run = at.gated(1).await;
    let card = at.card().await;
    at.pressed("U0ADA", REJECT, &card).await;
    at.slack.wait_until("the dialog", |held| held.views.len() == 1).await;
    let metadata = at.slack.held().views[0]["private_metadata"].clone();
    assert_eq!(at.run_state(&run).await, "waiting_approval");
    for blank in [json!(null), json!(""), json!(" \n ")] {
        let answer = at.send(&Slacked::dialog("U0ADA", &metadata, blank)).await;
        assert_eq!(answer.body["response_action"], "errors", "{}", answer.body);
    }
    // The dialog is ada's, and about this card.
    at.send(&Slacked::dialog("U0BOB", &metadata, json!("mine now"))).await;
    let forged = json!(metadata.as_str().unwrap().replace("C0OPS", "C0OTHER"));
    at.send(&Slacked::dialog("U0ADA", &forged, json!("elsewhere"))).await;
    let done = at.send(&Slacked::dialog("U0ADA", &metadata, json!("not <today>"))).await;
    assert_eq!((done.status.as_u16(), &done.body), (200, &json!(null)));
    let locked = at.slack.card_showing("Rejected by ada").await;
    assert!(locked.shown().contains("not <today>") && locked.button(APPROVE).is_none());
    let shown = at.api.get(&format!("/approvals?run={run}")).await.ok();
    assert_eq!(shown["approvals"][0]["state"], "rejected");
    assert_eq!(shown["approvals"][0]["votes"][0]["person"], "ada");
    assert_eq!(shown["approvals"][0]["votes"][0]["notes"], "not <today>");
    at.end().await;
}

#[tokio::test]
async fn a_trigger_that_is_over_is_told() {
    let at = Slacked::new().await;
    let _ada = at.person("ada", "U0ADA").await;
    at.gated(1).await;
    let card = at.card().await;
    let mut press = at.press("U0ADA", REJECT, &card);
    press["trigger_id"] = json!("1.over");
    at.send(&press).await;
    assert!(at.slack.whisper(0).await.contains("could not be opened"));
    at.slack.held().breaches.clear();
    at.end().await;
}

#[tokio::test]
async fn tenants_do_not_see_each_others_cards_or_people() {
    let at = Slacked::new().await;
    let _ada = at.person("ada", "U0ADA").await;
    let run = at.gated(1).await;
    let card = at.card().await;
    // The other tenant is connected to the same workspace, with a secret of its own.
    let id = SlackId(at.api.engine.fresh_id());
    let row = connection(at.api.other_tenant, id, at.api.engine.now() - super::DAYS_AGO);
    at.api.engine.store().write(PutSlack(row)).await.unwrap();
    let press = at.press("U0ADA", APPROVE, &card);
    assert_eq!(at.send_to(id, &press, SECRET, at.api.engine.now()).await.status, 200);
    // No Slack user is linked to ada there.
    assert!(at.slack.whisper(0).await.contains("does not know who you are"));
    let theirs = at.api.with_key(&at.api.other_key);
    theirs.post("/users", json!({ "name": "eve", "roles": ["approver"] })).await.ok();
    link(&at.api, at.api.other_tenant, "eve", "U0EVE", at.api.engine.now() - super::DAYS_AGO).await;
    let press = at.press("U0EVE", APPROVE, &card);
    at.send_to(id, &press, SECRET, at.api.engine.now()).await;
    assert!(at.slack.whisper(1).await.contains("not the one that Interlock keeps up to date"));
    assert_eq!(at.run_state(&run).await, "waiting_approval");
    at.end().await;
}
