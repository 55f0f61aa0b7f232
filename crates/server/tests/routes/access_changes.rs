//! A later change of an account's access does not hide who changed it before.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::{Value, json};

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

/// A request reads the account before its body has come: what others change meanwhile stays. Otherwise whoever sends slowly
/// would undo that an account was disabled, and hide who had a hand in it.
#[tokio::test(start_paused = true)]
async fn a_body_that_comes_late_undoes_nothing() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["admin"]), json!([])).await;
    Person::new(&api, "pat", json!(["approver"]), json!([])).await;
    let pat = id_of(&api, "pat").await;
    let (send, body) = tokio::sync::oneshot::channel::<&str>();
    let request = Request::patch(format!("/api/v1/users/{pat}"))
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::AUTHORIZATION, format!("Bearer {}", api.key))
        .body(Body::from_stream(futures::stream::once(body)))
        .unwrap();
    let meanwhile = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        ada.send("PATCH", &format!("/users/{pat}"), json!({ "disabled": true })).await.ok();
        send.send(r#"{"email":"pat@example.org"}"#).unwrap();
    };
    let (late, ()) = tokio::join!(api.raw(request), meanwhile);
    assert_eq!(late.status(), 200);
    let now = api.get(&format!("/users/{pat}")).await.ok();
    assert!(now["email"] == "pat@example.org" && !now["disabled_at"].is_null(), "{now}");
    api.end().await;
}

/// The maker of a link does not keep it until their change is forgotten, and get in then.
#[tokio::test(start_paused = true)]
async fn a_link_counts_from_its_use_and_not_from_its_making() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["admin", "operator"]), json!([])).await;
    Person::new(&api, "pat", json!(["approver"]), json!([])).await;
    let invite = ada.post(&format!("/users/{}/invite", id_of(&api, "pat").await), json!({})).await.text("link");
    tokio::time::advance(Duration::from_mins(50)).await;
    let token = invite.split("token=").nth(1).unwrap();
    api.identity().accept_invite(token, None, "correct horse battery".to_owned()).await.unwrap();
    tokio::time::advance(Duration::from_mins(23 * 60 + 20)).await;
    let ada = Person::signed_in(&api, "ada").await;
    let run = ada.post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id");
    let (status, detail) = vote_of(&api, "pat", &run).await;
    assert_eq!(status, 409, "a day and ten minutes from the making");
    assert!(detail.contains("ada may not decide here"), "{detail}");
    tokio::time::advance(Duration::from_hours(1)).await;
    assert_eq!(vote_of(&api, "pat", &run).await, (200, String::new()));
    api.end().await;
}

/// Whose name stands on a key does not hide who has made it.
#[tokio::test(start_paused = true)]
async fn a_change_by_a_key_is_also_that_of_the_person_who_made_it() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["admin", "operator"]), json!([])).await;
    Person::new(&api, "bob", json!(["admin"]), json!([])).await;
    Person::new(&api, "pat", json!(["viewer"]), json!([])).await;
    let bobs = json!({ "name": "bob's", "roles": ["admin"], "owner": "bob" });
    let bobs = api.with_key(&ada.post("/keys", bobs).await.text("text"));
    let pat = format!("/api/v1/users/{}", id_of(&api, "pat").await);
    bobs.send("PATCH", &pat, json!({ "roles": ["approver"] })).await.ok();
    let eve = json!({ "name": "eve", "roles": ["approver"], "password": "correct horse battery" });
    bobs.post("/users", eve).await.ok();
    let run = ada.post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id");
    for puppet in ["pat", "eve"] {
        let (status, detail) = vote_of(&api, puppet, &run).await;
        assert_eq!(status, 409, "{puppet}");
        assert!(detail.contains("ada may not decide here"), "{puppet}: {detail}");
    }
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

/// What is there after changes that were sent at once.
async fn changed(api: &Api, path: &str, changes: &[Value]) -> Value {
    let full = format!("/api/v1{path}");
    let answers = changes.iter().map(|change| api.send("PATCH", &full, change.clone()));
    for answer in futures::future::join_all(answers).await {
        answer.ok();
    }
    api.get(path).await.ok()
}

/// An account, a tenant and a webhook's address are written whole: of changes that come at once, none undoes another.
async fn changes_at_once(api: Api) {
    let pat = api.post("/users", json!({ "name": "pat", "roles": ["viewer"] })).await.text("user");
    let hook = api.post("/webhooks", json!({ "name": "github", "source": "github" })).await;
    assert!(hook.status.is_success(), "{}", hook.body);
    let changes = [json!({ "disabled": true }), json!({ "display_name": "Pat" }), json!({ "groups": ["sre"] })];
    let user = changed(&api, &format!("/users/{pat}"), &changes).await;
    assert_eq!((&user["display_name"], &user["groups"]), (&json!("Pat"), &json!(["sre"])), "{user}");
    assert!(user["disabled_at"].is_number(), "{user}");

    let changes =
        ["self_approval", "evidence_always", "ui.task_workspace.enabled"].map(|setting| json!({ setting: true }));
    let tenant = changed(&api, &format!("/tenants/{}", api.tenant), &changes).await;
    let settings = &tenant["settings"];
    assert_eq!((&settings["self_approval"], &settings["evidence_always"]), (&json!(true), &json!(true)), "{tenant}");
    assert_eq!(settings["ui.task_workspace.enabled"], true, "{tenant}");

    let changes = [json!({ "paused": true }), json!({ "secondary": false })];
    let address = changed(&api, "/webhooks/github", &changes).await;
    assert_eq!((&address["paused"], &address["secondary"]), (&json!(true), &json!(false)), "{address}");
    api.end().await;
}

#[tokio::test]
async fn none_of_several_changes_at_once_is_undone() {
    changes_at_once(Api::new().await).await;
}

#[tokio::test]
async fn none_of_several_changes_at_once_is_undone_on_postgresql() {
    changes_at_once(Api::on_postgres("changes_at_once").await).await;
}
