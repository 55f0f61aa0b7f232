//! A later change of an account's access does not hide who changed it before.

use std::time::Duration;

use serde_json::json;

use crate::approvals::{Person, gate};
use crate::harness::Api;

/// The ids of people, by their names.
async fn id_of(api: &Api, name: &str) -> String {
    let users = api.get("/users").await.ok()["users"].as_array().unwrap().clone();
    users.iter().find(|user| user["name"] == name).unwrap()["user"].as_str().unwrap().to_owned()
}

async fn vote_of(api: &Api, name: &str, run: &str) -> (u16, String) {
    let voted = Person::signed_in(api, name).await;
    let voted = voted.post(&format!("/runs/{run}/approve"), json!({ "approve": true })).await;
    (voted.status.as_u16(), voted.body["detail"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_later_change_does_not_wash_away_the_starters() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["admin", "operator"]), json!([])).await;
    let bob = Person::new(&api, "bob", json!(["admin"]), json!([])).await;
    Person::new(&api, "pat", json!(["viewer"]), json!([])).await;
    let run = ada.post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id");
    let pat = format!("/users/{}", id_of(&api, "pat").await);
    let refused = async |when: &str| {
        let (status, detail) = vote_of(&api, "pat", &run).await;
        assert_eq!(status, 409, "{when}");
        assert!(detail.contains("ada may not decide here"), "{when}: {detail}");
    };
    ada.send("PATCH", &pat, json!({ "roles": ["admin", "approver"] })).await.ok();
    refused("as she left it").await;
    let own = Person::signed_in(&api, "pat").await;
    own.send("PATCH", &pat, json!({ "groups": ["sre"] })).await.ok();
    refused("after a change of her own").await;
    bob.send("PATCH", &pat, json!({ "groups": ["sre", "web"] })).await.ok();
    refused("after a harmless change").await;
    bob.post(&format!("{pat}/invite"), json!({})).await.ok();
    refused("after a harmless invite").await;

    // A day after her change it counts no more, although others have changed the account since.
    tokio::time::advance(Duration::from_hours(20)).await;
    Person::signed_in(&api, "bob").await.send("PATCH", &pat, json!({ "groups": [] })).await.ok();
    tokio::time::advance(Duration::from_hours(5)).await;
    let ada = Person::signed_in(&api, "ada").await;
    let later = ada.post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id");
    assert_eq!(vote_of(&api, "pat", &later).await, (200, String::new()));
    api.end().await;
}

/// Nor does a harmless change that came first hide hers.
#[tokio::test(start_paused = true)]
async fn an_earlier_change_does_not_hide_the_starters() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["admin", "operator"]), json!([])).await;
    let bob = Person::new(&api, "bob", json!(["admin"]), json!([])).await;
    Person::new(&api, "pat", json!(["viewer"]), json!([])).await;
    let run = ada.post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id");
    let pat = format!("/users/{}", id_of(&api, "pat").await);
    bob.send("PATCH", &pat, json!({ "groups": ["sre"] })).await.ok();
    ada.send("PATCH", &pat, json!({ "roles": ["approver"] })).await.ok();
    let (status, detail) = vote_of(&api, "pat", &run).await;
    assert_eq!(status, 409, "{detail}");
    assert!(detail.contains("ada may not decide here"), "{detail}");
    api.end().await;
}

/// What a key set up before a run began is not taken for a change after it, even if another person changes the account
/// then.
#[tokio::test(start_paused = true)]
async fn each_change_keeps_its_own_time() {
    let api = Api::new().await;
    let bob = Person::new(&api, "bob", json!(["admin"]), json!([])).await;
    Person::new(&api, "pat", json!(["approver"]), json!([])).await;
    tokio::time::advance(Duration::from_secs(1)).await;
    let run = api.post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id");
    tokio::time::advance(Duration::from_secs(1)).await;
    let pat = format!("/users/{}", id_of(&api, "pat").await);
    bob.send("PATCH", &pat, json!({ "groups": ["sre"] })).await.ok();
    assert_eq!(vote_of(&api, "pat", &run).await, (200, String::new()));
    api.end().await;
}
