//! Changes of the policy and of access that a second admin must agree to.

use std::time::Duration;

use interlock_core::ids::{ChangeId, TenantId};
use interlock_core::json::{Hash, Json};
use interlock_core::tenant::identity::Role;
use interlock_server::identity::NewKey;
use interlock_store::{AskChange, ChangeRow, ChangeState};
use serde_json::{Value, json};

use crate::approvals::Person;
use crate::harness::{Api, ApiResponse};

const PASSWORD: &str = "correct horse battery";

/// A change that a person has asked for, whatever the tenant's settings.
pub async fn asked(api: &Api, tenant: TenantId) -> String {
    let (id, now) = (ChangeId(api.engine.fresh_id()), api.engine.now());
    let row = ChangeRow {
        tenant,
        id,
        subject: "access".into(),
        method: "POST".into(),
        path: "/api/v1/keys".into(),
        body: Json::of(&json!({ "name": "x", "roles": ["admin"] })).unwrap(),
        request_hash: Hash::of(id.to_string().as_bytes()),
        state: ChangeState::Requested,
        asked_by: "somebody".into(),
        excluded: vec!["somebody".into()],
        asked_at: now,
        expires_at: now + interlock_core::time::Millis::from_hours(24),
        decided_by: None,
        decided_at: None,
        notes: None,
        used_at: None,
    };
    api.engine.store().write(AskChange(row)).await.unwrap();
    id.to_string()
}

/// A tenant with two admins, under two keys.
async fn under_two_keys(api: &Api) -> [Person<'_>; 2] {
    let settings = json!({ "two_keys_for_policy": true, "two_keys_for_access": true });
    let path = format!("/tenants/{}", api.tenant);
    let ada = Person::new(api, "ada", json!(["admin"]), json!([])).await;
    let alone = ada.send("PATCH", &path, settings.clone()).await;
    assert_eq!(alone.problem(), (422, "INPUT_INVALID"), "there is nobody to be the second");
    let bob = Person::new(api, "bob", json!(["admin"]), json!([])).await;
    ada.send("PATCH", &path, settings).await.ok();
    [ada, bob]
}

/// The change that a refused request has become.
pub fn change_of(answer: &ApiResponse) -> String {
    assert_eq!(answer.problem(), (403, "SECOND_KEY_REQUIRED"), "{}", answer.body);
    let detail = answer.text("detail");
    let at = detail.find("chg_").unwrap();
    detail[at..].chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == '-').collect()
}

pub async fn decide(person: &Person<'_>, change: &str, word: Value) -> ApiResponse {
    person.post(&format!("/changes/{change}/decision"), word).await
}

#[tokio::test(start_paused = true)]
async fn a_change_is_carried_out_once_by_who_asked_and_only_as_agreed() {
    let api = Api::new().await;
    let [ada, bob] = under_two_keys(&api).await;
    let new = json!({ "name": "carl", "roles": ["approver"] });
    let change = change_of(&ada.post("/users", new.clone()).await);
    assert_eq!(change_of(&ada.post("/users", new.clone()).await), change, "asked twice is asked once");
    let shown = api.get(&format!("/changes/{change}")).await.ok();
    assert_eq!((&shown["state"], &shown["body"], &shown["asked_by"]), (&json!("requested"), &new, &json!("ada")));

    // Not before, not by herself, not by a key.
    let carried = async |person: &Person<'_>, body: Value| person.carrying(&change).post("/users", body).await;
    assert_eq!(carried(&ada, new.clone()).await.problem(), (409, "CHANGE_NOT_USABLE"));
    let yes = json!({ "approve": true });
    assert_eq!(decide(&ada, &change, yes.clone()).await.problem(), (409, "APPROVAL_VOTE_REFUSED"));
    let by_key = api.post(&format!("/changes/{change}/decision"), yes.clone()).await;
    assert_eq!(by_key.problem(), (403, "PERSON_REQUIRED"));
    decide(&bob, &change, yes.clone()).await.ok();
    assert_eq!(decide(&bob, &change, yes.clone()).await.problem(), (409, "APPROVAL_NOT_OPEN"));

    // Only the requester carries it out, only that request, and once.
    assert_eq!(carried(&bob, new.clone()).await.problem(), (409, "CHANGE_NOT_USABLE"));
    let more = json!({ "name": "carl", "roles": ["approver", "admin"] });
    assert_eq!(carried(&ada, more).await.problem(), (409, "CHANGE_NOT_USABLE"));
    let elsewhere = ada.carrying(&change).post("/keys", new.clone()).await;
    assert_eq!(elsewhere.problem(), (409, "CHANGE_NOT_USABLE"));
    assert_eq!(carried(&ada, new.clone()).await.text("name"), "carl");
    assert_eq!(carried(&ada, new).await.problem(), (409, "CHANGE_NOT_USABLE"));
    assert_eq!(api.get("/changes").await.ok()["changes"], json!([]));
    assert_eq!(api.get("/changes?all=true").await.ok()["changes"][0]["state"], "used");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn everything_that_gives_access_or_changes_the_rules_needs_the_second_key() {
    let api = Api::new().await;
    let [ada, bob] = under_two_keys(&api).await;
    let users = api.get("/users").await.ok()["users"].as_array().unwrap().clone();
    let id = |name: &str| users.iter().find(|user| user["name"] == name).unwrap()["user"].as_str().unwrap().to_owned();
    let key = api.get("/keys").await.ok()["keys"][0]["key"].as_str().unwrap().to_owned();
    let admin = [Role::Admin].into_iter().collect();
    let owned = NewKey { owner: Some("bob".into()), ..NewKey::new(api.tenant, "bob's", admin) };
    let by_key = api.with_key(&api.new_key(owned).await);
    let until = api.engine.now().0 + 86_400_000;
    let requests = [
        ("PATCH", "/policy".to_owned(), json!({ "active": 0 })),
        ("PATCH", format!("/users/{}", id("ada")), json!({ "roles": ["admin", "approver"] })),
        ("PATCH", format!("/users/{}", id("bob")), json!({ "disabled": true, "groups": [] })),
        ("POST", format!("/users/{}/invite", id("bob")), json!({})),
        ("POST", "/keys".to_owned(), json!({ "name": "k", "roles": ["admin"] })),
        ("POST", format!("/keys/{key}/rotate"), json!({})),
        ("PATCH", format!("/tenants/{}", api.tenant), json!({ "two_keys_for_access": false })),
        ("PATCH", format!("/tenants/{}", api.tenant), json!({ "self_approval": true })),
        (
            "POST",
            "/delegations".to_owned(),
            json!({ "delegator": "bob", "delegate": "ada", "until": until, "reason": "x" }),
        ),
    ];
    for (method, path, body) in requests {
        // By keys as by people.
        change_of(&ada.send(method, &path, body.clone()).await);
        change_of(&by_key.send(method, &format!("/api/v1{path}"), body).await);
    }
    // No admin sets another person's password.
    let set = ada.post(&format!("/users/{}/password", id("bob")), json!({ "password": PASSWORD })).await;
    assert_eq!(set.problem(), (422, "INPUT_INVALID"), "{}", set.body);
    let sly = json!({ "password": PASSWORD, "old_password": PASSWORD });
    assert_eq!(ada.post(&format!("/users/{}/password", id("bob")), sly).await.problem(), (422, "INPUT_INVALID"));
    let with = json!({ "name": "new", "roles": ["viewer"], "password": PASSWORD });
    assert_eq!(ada.post("/users", with).await.problem(), (422, "INPUT_INVALID"));
    // What people change of their own, and what takes access away, needs no second admin.
    let own = json!({ "delegate": "ada", "until": until, "reason": "away" });
    assert_eq!(bob.post("/delegations", own).await.status, 201);
    ada.send("PATCH", &format!("/users/{}", id("bob")), json!({ "disabled": true })).await.ok();
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_second_word_is_not_that_of_a_puppet_nor_of_an_old_sign_in_and_does_not_last() {
    let api = Api::new().await;
    let [ada, bob] = under_two_keys(&api).await;
    let body = json!({ "name": "k", "roles": ["viewer"] });
    let change = change_of(&ada.post("/keys", body.clone()).await);
    assert_eq!(decide(&bob, &change, json!({ "approve": false })).await.problem(), (422, "INPUT_INVALID"));
    tokio::time::advance(Duration::from_mins(16)).await;
    let yes = json!({ "approve": true });
    assert_eq!(decide(&bob, &change, yes.clone()).await.problem(), (403, "SIGN_IN_AGAIN"));
    let bob = Person::signed_in(&api, "bob").await;
    decide(&bob, &change, yes.clone()).await.ok();
    tokio::time::advance(Duration::from_mins(61)).await;
    let ada = Person::signed_in(&api, "ada").await;
    assert_eq!(ada.carrying(&change).post("/keys", body.clone()).await.problem(), (409, "CHANGE_NOT_USABLE"));
    // Asked anew, and rejected.
    let again = change_of(&ada.post("/keys", body.clone()).await);
    assert_ne!(again, change);
    let bob = Person::signed_in(&api, "bob").await;
    decide(&bob, &again, json!({ "approve": false, "notes": "what for?" })).await.ok();
    assert_eq!(ada.carrying(&again).post("/keys", body.clone()).await.problem(), (409, "CHANGE_NOT_USABLE"));
    // Not decided within a day, it is over.
    let late = change_of(&ada.post("/keys", body).await);
    tokio::time::advance(Duration::from_hours(25)).await;
    let bob = Person::signed_in(&api, "bob").await;
    assert_eq!(decide(&bob, &late, yes).await.problem(), (409, "APPROVAL_NOT_OPEN"));
    assert_eq!(api.get("/changes").await.ok()["changes"], json!([]));
    api.end().await;
}

/// The holder of a key without an owner could be the second admin.
#[tokio::test(start_paused = true)]
async fn a_key_that_no_person_stands_behind_asks_for_no_change() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["admin"]), json!([])).await;
    let bob = Person::new(&api, "bob", json!(["admin"]), json!([])).await;
    // Made by the first key, one of them in her name; and made by herself, without an owner.
    let lent = api.post("/keys", json!({ "name": "lent", "roles": ["admin"], "owner": "ada" })).await.text("text");
    let spare = api.post("/keys", json!({ "name": "spare", "roles": ["admin"] })).await.text("text");
    let own = ada.post("/keys", json!({ "name": "own", "roles": ["admin"] })).await.text("text");
    let settings = json!({ "two_keys_for_policy": true, "two_keys_for_access": true });
    ada.send("PATCH", &format!("/tenants/{}", api.tenant), settings).await.ok();

    let new = json!({ "name": "carl", "roles": ["approver"] });
    for key in [&api.key, &lent, &spare] {
        let by_key = api.with_key(key);
        let asked = by_key.post("/users", new.clone()).await;
        assert_eq!(asked.problem(), (403, "PERSON_REQUIRED"), "{}", asked.body);
        assert!(asked.text("detail").contains("sign in"), "{}", asked.body);
        let policy = by_key.send("PATCH", "/api/v1/policy", json!({ "active": 0 })).await;
        assert_eq!(policy.problem(), (403, "PERSON_REQUIRED"), "{}", policy.body);
    }
    assert_eq!(api.get("/changes").await.ok()["changes"], json!([]), "nothing is kept");
    // Behind hers is she, who is not the second.
    let change = change_of(&api.with_key(&own).post("/users", new.clone()).await);
    let yes = json!({ "approve": true });
    assert_eq!(decide(&ada, &change, yes.clone()).await.problem(), (409, "APPROVAL_VOTE_REFUSED"));
    decide(&bob, &change, yes).await.ok();
    // An account is disabled at once, by any key.
    let users = api.get("/users").await.ok()["users"].as_array().unwrap().clone();
    let bob = users.iter().find(|user| user["name"] == "bob").unwrap()["user"].as_str().unwrap().to_owned();
    api.send("PATCH", &format!("/api/v1/users/{bob}"), json!({ "disabled": true })).await.ok();
    api.end().await;
}

/// The word of an account that is locked out counts no more, and what it has agreed to can be asked for anew.
#[tokio::test(start_paused = true)]
async fn what_an_admin_agreed_to_who_is_none_any_more_is_not_carried_out() {
    let api = Api::new().await;
    let [ada, bob] = under_two_keys(&api).await;
    let users = api.get("/users").await.ok()["users"].as_array().unwrap().clone();
    let id = users.iter().find(|user| user["name"] == "bob").unwrap()["user"].as_str().unwrap().to_owned();
    let body = json!({ "name": "k", "roles": ["admin"] });
    let change = change_of(&ada.post("/keys", body.clone()).await);
    decide(&bob, &change, json!({ "approve": true })).await.ok();
    ada.send("PATCH", &format!("/users/{id}"), json!({ "disabled": true })).await.ok();
    let carried = ada.carrying(&change).post("/keys", body.clone()).await;
    assert_eq!(carried.problem(), (409, "CHANGE_NOT_USABLE"));
    assert!(carried.text("detail").contains("no admin's any more"), "{}", carried.body);
    assert_ne!(change_of(&ada.post("/keys", body).await), change, "it is asked for anew");
    api.end().await;
}

/// Two keys for the policy alone are none: one admin could make the second one.
#[tokio::test(start_paused = true)]
async fn two_keys_for_access_are_not_given_up_while_the_policy_needs_two() {
    let api = Api::new().await;
    let [ada, bob] = under_two_keys(&api).await;
    let path = format!("/tenants/{}", api.tenant);
    let carried = async |settings: Value| {
        let change = change_of(&ada.send("PATCH", &path, settings.clone()).await);
        decide(&bob, &change, json!({ "approve": true })).await.ok();
        ada.carrying(&change).send("PATCH", &path, settings).await
    };
    let half = carried(json!({ "two_keys_for_access": false })).await;
    assert_eq!(half.problem(), (422, "INPUT_INVALID"), "{}", half.body);
    carried(json!({ "two_keys_for_access": false, "two_keys_for_policy": false })).await.ok();
    api.end().await;
}

/// Two admins at once: one of them is the second key, and of two requests that carry it out one does.
#[tokio::test(start_paused = true)]
async fn of_several_at_once_one_counts() {
    let api = Api::new().await;
    let [ada, bob] = under_two_keys(&api).await;
    let body = json!({ "name": "k", "roles": ["viewer"] });
    let change = change_of(&ada.post("/keys", body.clone()).await);
    let yes = || decide(&bob, &change, json!({ "approve": true }));
    let no = || decide(&bob, &change, json!({ "approve": false, "notes": "no" }));
    let (one, two, three) = tokio::join!(yes(), no(), yes());
    let done = [&one, &two, &three].iter().filter(|answer| answer.status.is_success()).count();
    assert_eq!(done, 1, "{} {} {}", one.body, two.body, three.body);
    if two.status.is_success() {
        return api.end().await;
    }
    let ada = ada.carrying(&change);
    let (one, two) = tokio::join!(ada.post("/keys", body.clone()), ada.post("/keys", body));
    assert_eq!([&one, &two].iter().filter(|answer| answer.status.is_success()).count(), 1, "{} {}", one.body, two.body);
    api.end().await;
}
