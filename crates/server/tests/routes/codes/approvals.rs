//! Votes that are not taken.

use serde_json::{Value, json};

use super::table;
use crate::approvals::{Person, card, gate};
use crate::harness::{Api, ApiResponse, plan, task};

async fn waiting(api: &Api) -> String {
    api.post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id")
}

async fn approver<'a>(api: &'a Api, name: &str) -> Person<'a> {
    Person::new(api, name, json!(["approver"]), json!([])).await
}

async fn vote(person: &Person<'_>, run: &str, vote: Value) -> ApiResponse {
    person.post(&format!("/runs/{run}/approve"), vote).await
}

async fn by_a_key(api: &Api) -> ApiResponse {
    let run = waiting(api).await;
    api.post(&format!("/runs/{run}/approve"), json!({ "approve": true })).await
}

async fn on_what_is_not_asked(api: &Api) -> ApiResponse {
    let ada = approver(api, "ada").await;
    let run = api.start(json!([task("a")])).await;
    vote(&ada, &run, json!({ "approve": true })).await
}

async fn without_a_digest(api: &Api) -> ApiResponse {
    let mut far = task("ship");
    far["blast_radius"] = json!("high");
    let ada = approver(api, "ada").await;
    let run = api.start(json!([{ "key": "sure", "kind": "approval" }, far])).await;
    vote(&ada, &run, json!({ "approve": true })).await
}

async fn on_another_digest(api: &Api) -> ApiResponse {
    let ada = approver(api, "ada").await;
    let run = waiting(api).await;
    vote(&ada, &run, json!({ "approve": true, "digest": "0".repeat(64) })).await
}

async fn of_the_starter(api: &Api) -> ApiResponse {
    let ada = Person::new(api, "ada", json!(["operator", "approver"]), json!([])).await;
    let run = ada.post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id");
    vote(&ada, &run, json!({ "approve": true })).await
}

async fn for_nobody(api: &Api) -> ApiResponse {
    let ada = approver(api, "ada").await;
    approver(api, "bob").await;
    let run = waiting(api).await;
    vote(&ada, &run, json!({ "approve": true, "on_behalf_of": "bob" })).await
}

async fn lent_on(api: &Api) -> ApiResponse {
    let until = api.engine.now().0 + 86_400_000;
    let (ann, vic) = (approver(api, "ann").await, Person::new(api, "vic", json!(["viewer"]), json!([])).await);
    approver(api, "bob").await;
    ann.post("/delegations", json!({ "delegate": "vic", "until": until, "reason": "away" })).await.ok();
    vic.post("/delegations", json!({ "delegate": "bob", "until": until, "reason": "away too" })).await
}

async fn past_a_gate(api: &Api) -> ApiResponse {
    let step = json!({ "key": "ok", "kind": "approval", "on_reject": "pause" });
    let ada = approver(api, "ada").await;
    let run = api.post("/runs", json!({ "plan": plan(json!([step])) })).await.text("run_id");
    let digest = card(api, &run).await["digest"].clone();
    vote(&ada, &run, json!({ "approve": false, "digest": digest, "notes": "no" })).await.ok();
    api.post(&format!("/runs/{run}/skip"), json!({ "reason": "in a hurry" })).await
}

async fn alone(api: &Api) -> ApiResponse {
    for name in ["ada", "bob"] {
        Person::new(api, name, json!(["admin"]), json!([])).await;
    }
    let settings = json!({ "two_keys_for_policy": true, "two_keys_for_access": true });
    api.send("PATCH", &format!("/api/v1/tenants/{}", api.tenant), settings).await.ok();
    Person::signed_in(api, "ada").await.post("/keys", json!({ "name": "k", "roles": ["admin"] })).await
}

async fn before_anybody_agreed(api: &Api) -> ApiResponse {
    let refused = alone(api).await.text("detail");
    let change: String = refused[refused.find("chg_").unwrap()..].chars().take_while(|c| *c != '`').collect();
    let ada = Person::signed_in(api, "ada").await.carrying(&change);
    ada.post("/keys", json!({ "name": "k", "roles": ["admin"] })).await
}

async fn after_a_long_time(api: &Api) -> ApiResponse {
    let ada = approver(api, "ada").await;
    let run = api.post("/runs", json!({ "plan": gate(2, json!([])) })).await.text("run_id");
    let digest = card(api, &run).await["digest"].clone();
    tokio::time::advance(std::time::Duration::from_mins(16)).await;
    vote(&ada, &run, json!({ "approve": true, "digest": digest })).await
}

table! { TABLE:
    "PERSON_REQUIRED" => |api| by_a_key(api).await,
    "APPROVAL_NOT_OPEN" => |api| on_what_is_not_asked(api).await,
    "APPROVAL_DIGEST_REQUIRED" => |api| without_a_digest(api).await,
    "APPROVAL_CHANGED" => |api| on_another_digest(api).await,
    "APPROVAL_VOTE_REFUSED" => |api| of_the_starter(api).await,
    "DELEGATION_NOT_IN_FORCE" => |api| for_nobody(api).await,
    "DELEGATION_REFUSED" => |api| lent_on(api).await,
    "SECOND_KEY_REQUIRED" => |api| alone(api).await,
    "CHANGE_NOT_USABLE" => |api| before_anybody_agreed(api).await,
    "CHANGE_NOT_FOUND" => |api| api.get("/changes/chg_0190a0b0c0d07000800000000000000a").await,
    "DIRECTIVE_NOT_PERMITTED" => |api| past_a_gate(api).await,
}

// Waits, and so needs a clock of its own.
table! { WAITING:
    "SIGN_IN_AGAIN" => |api| after_a_long_time(api).await,
}
