//! A right to decide, lent for a time: whose vote it is, and whom it counts as.

use std::time::Duration;

use serde_json::{Value, json};

use crate::approvals::{Person, gate, yes};
use crate::harness::Api;

const DAY: i64 = 86_400_000;

/// The body of a delegation that begins now and lasts some days.
fn lend(api: &Api, delegate: &str, days: i64) -> Value {
    json!({ "delegate": delegate, "until": api.engine.now().0 + days * DAY, "reason": "on leave" })
}

async fn gated(api: &Api, quorum: u32, approvers: Value) -> String {
    api.post("/runs", json!({ "plan": gate(quorum, approvers) })).await.text("run_id")
}

async fn people(api: &Api) -> (Person<'_>, Person<'_>) {
    let ann = Person::new(api, "ann", json!(["operator", "approver"]), json!(["sre"])).await;
    (ann, Person::new(api, "vic", json!(["viewer"]), json!([])).await)
}

#[tokio::test]
async fn a_delegate_decides_where_the_delegator_may() {
    let api = Api::new().await;
    let (ann, vic) = people(&api).await;
    let run = gated(&api, 1, json!(["sre"])).await;
    let (path, yes) = (format!("/runs/{run}/approve"), yes(&api, &run).await);
    assert_eq!(vic.post(&path, yes.clone()).await.problem(), (403, "PERMISSION_DENIED"), "a viewer decides nothing");

    let lent = ann.post("/delegations", lend(&api, "vic", 14)).await.ok();
    assert_eq!((&lent["delegator"], &lent["delegate"]), (&json!("ann"), &json!("vic")));
    assert_eq!((&lent["in_force"], &lent["created_by"]), (&json!(true), &json!("ann")));
    let mut stranger = yes.clone();
    stranger["on_behalf_of"] = json!("bob");
    assert_eq!(vic.post(&path, stranger).await.problem(), (409, "DELEGATION_NOT_IN_FORCE"));
    let voted = vic.post(&path, yes).await.ok();
    assert_eq!((&voted["run_state"], &voted["votes"][0]["person"]), (&json!("succeeded"), &json!("vic")));
    assert_eq!(voted["votes"][0]["on_behalf_of"], "ann");
    assert_eq!(voted["summary"], "vic on behalf of ann approved step `gate` of demo version 1: ship it?");
    let events = api.get(&format!("/runs/{run}/events")).await.ok();
    let told = events["events"].as_array().unwrap().iter().find(|event| event["type"] == "approval.voted");
    assert!(told.is_some_and(|told| told.to_string().contains(r#""on_behalf_of":"ann""#)), "{events}");
    api.end().await;
}

/// A person who may not decide does not choose who does, by lending out the rights of others.
#[tokio::test]
async fn what_the_starter_lends_for_others_does_not_count_on_their_run() {
    let api = Api::new().await;
    let (_ann, vic) = people(&api).await;
    let ada = Person::new(&api, "ada", json!(["admin", "operator"]), json!([])).await;
    let run = ada.post("/runs", json!({ "plan": gate(1, json!(["sre"])) })).await.text("run_id");
    let mut lent = lend(&api, "vic", 14);
    lent["delegator"] = json!("ann");
    ada.post("/delegations", lent).await.ok();
    let path = format!("/runs/{run}/approve");
    assert_eq!(vic.post(&path, yes(&api, &run).await).await.problem(), (403, "PERMISSION_DENIED"));
    // On what others have started it does.
    let other = gated(&api, 1, json!(["sre"])).await;
    vic.post(&format!("/runs/{other}/approve"), yes(&api, &other).await).await.ok();
    api.end().await;
}

/// Nor by a key that she has made in the name of another, or an account that she has made an admin.
#[tokio::test]
async fn nor_what_the_starter_lends_by_the_hand_of_another() {
    let api = Api::new().await;
    let (_ann, vic) = people(&api).await;
    let ada = Person::new(&api, "ada", json!(["admin", "operator"]), json!([])).await;
    Person::new(&api, "bob", json!(["admin"]), json!([])).await;
    let mut lent = lend(&api, "vic", 14);
    lent["delegator"] = json!("ann");
    let bobs = json!({ "name": "bob's", "roles": ["admin"], "owner": "bob" });
    let bobs = api.with_key(&ada.post("/keys", bobs).await.text("text"));
    let refused = bobs.post("/delegations", lent.clone()).await;
    assert_eq!(refused.problem(), (403, "PERSON_REQUIRED"));
    assert!(refused.text("detail").contains("made by ada"), "{}", refused.body);
    // Nor does it connect to Slack: whoever gives the secret with which Slack signs could press for others.
    let slack = json!({ "team": "T1", "channel": "C1", "bot_token": "xoxb-1", "signing_secret": "not a real one" });
    assert_eq!(bobs.send("PUT", "/api/v1/slack", slack).await.problem(), (403, "PERSON_REQUIRED"));

    let run = ada.post("/runs", json!({ "plan": gate(1, json!(["sre"])) })).await.text("run_id");
    Person::new(&api, "pat", json!(["viewer"]), json!([])).await;
    let users = api.get("/users").await.ok()["users"].as_array().unwrap().clone();
    let pat = users.iter().find(|user| user["name"] == "pat").unwrap()["user"].as_str().unwrap().to_owned();
    ada.send("PATCH", &format!("/users/{pat}"), json!({ "roles": ["admin"] })).await.ok();
    Person::signed_in(&api, "pat").await.post("/delegations", lent).await.ok();
    let voted = vic.post(&format!("/runs/{run}/approve"), yes(&api, &run).await).await;
    assert_eq!(voted.problem(), (409, "APPROVAL_VOTE_REFUSED"));
    assert!(voted.text("detail").contains("ada may not decide here"), "{}", voted.body);
    api.end().await;
}

/// What gives an account a right to decide is not a day old: it is not the second key.
#[tokio::test(start_paused = true)]
async fn a_right_that_an_admin_has_just_lent_out_is_not_one_of_two() {
    let api = Api::new().await;
    let (_ann, _vic) = people(&api).await;
    Person::new(&api, "bob", json!(["admin"]), json!([])).await;
    tokio::time::advance(Duration::from_hours(49)).await;
    let run = gated(&api, 2, json!(["sre"])).await;
    let mut lent = lend(&api, "vic", 14);
    lent["delegator"] = json!("ann");
    Person::signed_in(&api, "bob").await.post("/delegations", lent).await.ok();
    let vote = async || {
        let vic = Person::signed_in(&api, "vic").await;
        vic.post(&format!("/runs/{run}/approve"), yes(&api, &run).await).await
    };
    let early = vote().await;
    assert_eq!(early.problem(), (409, "APPROVAL_VOTE_REFUSED"));
    assert!(early.text("detail").contains("ann has not lent out this right"), "{}", early.body);
    // On what one person decides it counts at once.
    let one = gated(&api, 1, json!(["sre"])).await;
    let vic = Person::signed_in(&api, "vic").await;
    vic.post(&format!("/runs/{one}/approve"), yes(&api, &one).await).await.ok();

    // A day later it is one of two, but not beside the admin who has lent it out: that would be one who holds both keys.
    tokio::time::advance(Duration::from_hours(25)).await;
    let (run, other) = (gated(&api, 2, json!([])).await, gated(&api, 2, json!([])).await);
    let bob = Person::signed_in(&api, "bob").await;
    bob.post(&format!("/runs/{run}/approve"), yes(&api, &run).await).await.ok();
    let vic = Person::signed_in(&api, "vic").await;
    let second = vic.post(&format!("/runs/{run}/approve"), yes(&api, &run).await).await;
    assert_eq!(second.problem(), (403, "PERMISSION_DENIED"));
    vic.post(&format!("/runs/{other}/approve"), yes(&api, &other).await).await.ok();
    let second = bob.post(&format!("/runs/{other}/approve"), yes(&api, &other).await).await;
    assert_eq!(second.problem(), (409, "APPROVAL_VOTE_REFUSED"), "nor the other way round: {}", second.body);
    api.end().await;
}

#[tokio::test]
async fn delegator_and_delegate_are_one_person() {
    let api = Api::new().await;
    let (ann, vic) = people(&api).await;
    let bob = Person::new(&api, "bob", json!(["approver"]), json!(["sre"])).await;
    let lent = ann.post("/delegations", lend(&api, "vic", 14)).await.text("delegation");
    // One vote of the two, also when the delegation is over.
    let run = gated(&api, 2, json!([])).await;
    let (path, word) = (format!("/runs/{run}/approve"), yes(&api, &run).await);
    vic.post(&path, word.clone()).await.ok();
    let again = ann.post(&path, word.clone()).await;
    assert_eq!(again.problem(), (409, "APPROVAL_VOTE_REFUSED"));
    assert!(again.text("detail").contains("ann has approved it already"), "{}", again.body);
    ann.send("DELETE", &format!("/delegations/{lent}"), json!({})).await.ok();
    assert_eq!(ann.post(&path, word.clone()).await.problem(), (409, "APPROVAL_VOTE_REFUSED"));
    assert_eq!(bob.post(&path, word).await.ok()["run_state"], "succeeded");

    // What ann has started is decided neither by her nor by her delegate.
    let run = ann.post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id");
    ann.post("/delegations", lend(&api, "bob", 14)).await.ok();
    let path = format!("/runs/{run}/approve");
    for whose in [json!("ann"), json!("bob"), Value::Null] {
        let own = bob.post(&path, json!({ "approve": true, "on_behalf_of": whose })).await;
        assert_eq!(own.problem(), (409, "APPROVAL_VOTE_REFUSED"));
        assert!(own.text("detail").contains("bob counts as one with ann"), "{}", own.body);
    }
    api.end().await;
}

#[tokio::test]
async fn a_delegation_ends_at_once_and_with_the_right_itself() {
    let api = Api::new().await;
    let (ann, vic) = people(&api).await;
    let run = gated(&api, 1, json!([])).await;
    let (path, yes) = (format!("/runs/{run}/approve"), yes(&api, &run).await);
    let mut later = lend(&api, "vic", 14);
    later["from"] = json!(api.engine.now().0 + DAY);
    let later = ann.post("/delegations", later).await.ok();
    assert_eq!(later["in_force"], false);
    assert_eq!(vic.post(&path, yes.clone()).await.problem(), (403, "PERMISSION_DENIED"), "it has not begun");

    let lent = ann.post("/delegations", lend(&api, "vic", 1)).await.text("delegation");
    let one = format!("/delegations/{lent}");
    assert_eq!(vic.send("DELETE", &one, json!({})).await.problem(), (403, "PERMISSION_DENIED"));
    let user = api.get("/users").await.ok()["users"].as_array().unwrap().clone();
    let user = user.iter().find(|user| user["name"] == "ann").unwrap()["user"].as_str().unwrap().to_owned();
    let change = async |body: Value| api.send("PATCH", &format!("/api/v1/users/{user}"), body).await.ok();
    for (without, with) in [
        (json!({ "disabled": true }), json!({ "disabled": false })),
        (json!({ "roles": ["viewer"] }), json!({ "roles": ["operator", "approver"] })),
    ] {
        change(without).await;
        assert_eq!(
            vic.post(&path, yes.clone()).await.problem(),
            (403, "PERMISSION_DENIED"),
            "she has no right to lend"
        );
        change(with).await;
    }
    let revoked = api.send("DELETE", &format!("/api/v1{one}"), json!({})).await.ok();
    assert_eq!(revoked["in_force"], false);
    assert!(revoked["revoked_at"].is_i64() && revoked["revoked_by"].is_string(), "{revoked}");
    assert_eq!(vic.post(&path, yes).await.problem(), (403, "PERMISSION_DENIED"), "revoked is revoked");
    let listed = api.get("/delegations").await.ok();
    assert_eq!(listed["delegations"], json!([later]), "what is over is not listed");
    let all = api.get("/delegations?all=true&limit=1").await.ok();
    assert_eq!((&all["delegations"][0], &all["next_after"]), (&revoked, &revoked["delegation"]));
    assert_eq!(api.get(&one).await.ok(), revoked, "and stays to be read");
    api.end().await;
}

#[tokio::test]
async fn what_can_be_lent_and_by_whom() {
    let api = Api::new().await;
    let (ann, vic) = people(&api).await;
    let bob = Person::new(&api, "bob", json!(["approver"]), json!([])).await;
    let refused = async |person: &Person<'_>, body: Value, what: &str| {
        let answer = person.post("/delegations", body).await;
        let (status, code) = answer.problem();
        assert!(answer.text("detail").contains(what), "{what}: {}", answer.body);
        (status, code.to_owned())
    };
    let invalid = (422, "INPUT_INVALID".to_owned());
    assert_eq!(refused(&ann, lend(&api, "ann", 1), "nobody delegates to themselves").await, invalid);
    assert_eq!(refused(&ann, lend(&api, "eve", 1), "`eve` is no person of this tenant").await, invalid);
    assert_eq!(refused(&ann, lend(&api, "vic", 91), "90 days").await, invalid);
    assert_eq!(refused(&ann, lend(&api, "vic", 0), "not after `from`").await, invalid);
    let mut far = lend(&api, "vic", 430);
    far["from"] = json!(api.engine.now().0 + 400 * DAY);
    assert_eq!(refused(&ann, far, "365 days").await, invalid);
    let mut silent = lend(&api, "vic", 1);
    silent["reason"] = json!(" ");
    assert_eq!(refused(&ann, silent, "say why").await, invalid);

    // Others' only as an admin; a key has none of its own.
    let mut anns = lend(&api, "vic", 90);
    anns["delegator"] = json!("ann");
    assert_eq!(refused(&bob, anns.clone(), "ann's").await, (403, "PERMISSION_DENIED".to_owned()));
    assert_eq!(api.post("/delegations", lend(&api, "vic", 1)).await.problem(), (422, "INPUT_INVALID"));
    let owned = json!({ "name": "ci", "roles": ["approver"], "owner": "ann" });
    let key = api.post("/keys", owned).await.text("text");
    assert_eq!(api.with_key(&key).post("/delegations", anns.clone()).await.problem(), (403, "PERMISSION_DENIED"));
    api.post("/delegations", anns).await.ok();

    // No chains, in either direction, while they would overlap.
    let chain = (409, "DELEGATION_REFUSED".to_owned());
    assert_eq!(refused(&vic, lend(&api, "bob", 1), "not passed on").await, chain);
    assert_eq!(refused(&bob, lend(&api, "ann", 1), "not passed on").await, chain);
    let mut after = lend(&api, "bob", 100);
    after["from"] = json!(api.engine.now().0 + 95 * DAY);
    vic.post("/delegations", after).await.ok();
    api.end().await;
}
