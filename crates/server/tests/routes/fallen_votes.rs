//! A vote whose person loses the right to decide before enough others have agreed.

use serde_json::{Value, json};

use crate::approvals::{Person, card, gate, yes};
use crate::harness::Api;

async fn user(api: &Api, name: &str) -> String {
    let users = api.get("/users").await.ok()["users"].as_array().unwrap().clone();
    let found = users.iter().find(|user| user["name"] == name);
    found.and_then(|user| user["user"].as_str()).unwrap_or_else(|| panic!("no {name}")).to_owned()
}

async fn of_sre<'a>(api: &'a Api, name: &str) -> Person<'a> {
    Person::new(api, name, json!(["approver"]), json!(["sre"])).await
}

/// Where the run waits, and who counts: the people who said yes, and what the card, `why` and the vote say of the others.
async fn told(api: &Api, run: &str) -> (Vec<Value>, Value) {
    let card = card(api, run).await;
    let why = api.get(&format!("/runs/{run}/why")).await.ok()["because"][0].clone();
    assert_eq!(why["fallen"], card["fallen"], "{why} {card}");
    let votes = card["votes"].as_array().unwrap().iter().map(|vote| vote["person"].clone()).collect();
    (votes, card["fallen"].clone())
}

async fn a_vote_falls_with_the_right(api: Api) {
    let (bob, cyd) = (of_sre(&api, "bob").await, of_sre(&api, "cyd").await);
    let cases = [
        ("ann", json!({ "disabled": true }), "the account ann is disabled"),
        ("amy", json!({ "roles": ["viewer"] }), "amy has no role any more that may approve"),
        ("abe", json!({ "groups": ["sales"] }), "abe is in none of the groups sre any more"),
    ];
    for (name, change, why) in cases {
        let first = of_sre(&api, name).await;
        let run = api.post("/runs", json!({ "plan": gate(2, json!(["sre"])) })).await.text("run_id");
        let (path, word) = (format!("/runs/{run}/approve"), yes(&api, &run).await);
        first.post(&path, word.clone()).await.ok();
        assert_eq!(told(&api, &run).await, (vec![json!(name)], Value::Null));

        let account = format!("/api/v1/users/{}", user(&api, name).await);
        api.send("PATCH", &account, change).await.ok();
        let fallen = json!([{ "person": name, "why": why }]);
        assert_eq!(told(&api, &run).await, (vec![], fallen.clone()), "at once, and for all to see");

        let second = bob.post(&path, word.clone()).await.ok();
        assert_eq!((&second["state"], &second["run_state"]), (&json!("requested"), &json!("waiting_approval")));
        assert_eq!(second["fallen"], fallen);
        assert_eq!(told(&api, &run).await, (vec![json!("bob")], fallen));
        let events = api.get(&format!("/runs/{run}/events")).await.ok().to_string();
        assert!(events.contains(&format!(r#""person":"{name}","why":"{why}""#)), "{events}");

        let third = cyd.post(&path, word).await.ok();
        assert_eq!((&third["state"], &third["run_state"]), (&json!("approved"), &json!("succeeded")));
        let people: Vec<&Value> = third["votes"].as_array().unwrap().iter().map(|vote| &vote["person"]).collect();
        assert_eq!(people, ["bob", "cyd"], "the votes that count");
    }
    api.end().await;
}

#[tokio::test]
async fn a_first_voter_who_loses_the_right_is_no_key() {
    a_vote_falls_with_the_right(Api::new().await).await;
}

#[tokio::test]
async fn a_first_voter_who_loses_the_right_is_no_key_on_postgresql() {
    a_vote_falls_with_the_right(Api::on_postgres("fallen_votes").await).await;
}

async fn a_fallen_vote_is_cast_anew(api: Api) {
    let admin = Person::new(&api, "adam", json!(["admin"]), json!([])).await;
    let (ann, bob, cyd) = (of_sre(&api, "ann").await, of_sre(&api, "bob").await, of_sre(&api, "cyd").await);
    let account = format!("/users/{}", user(&api, "ann").await);
    let moved_to = async |group: &str| admin.send("PATCH", &account, json!({ "groups": [group] })).await.ok();
    let asked = async || {
        let run = api.post("/runs", json!({ "plan": gate(2, json!(["sre"])) })).await.text("run_id");
        let word = yes(&api, &run).await;
        (format!("/runs/{run}/approve"), run, word)
    };
    // The votes that the history tells of, and how many of them have taken others away.
    let history = async |run: &str| {
        let events = api.get(&format!("/runs/{run}/events")).await.ok()["events"].as_array().unwrap().clone();
        let voted: Vec<_> = events.iter().filter(|event| event["type"] == "approval.voted").collect();
        (voted.len(), voted.iter().filter(|event| event["payload"]["fell"][0]["person"] == "ann").count())
    };
    let people = |voted: &Value| {
        let votes = voted["votes"].as_array().unwrap().iter();
        let mut people: Vec<_> = votes.map(|vote| vote["person"].as_str().unwrap().to_owned()).collect();
        people.sort();
        people.join(" ")
    };

    // In a right that another person has lent her since.
    let (path, run, word) = asked().await;
    ann.post(&path, word.clone()).await.ok();
    moved_to("sales").await;
    let until = api.engine.now().0 + 86_400_000;
    cyd.post("/delegations", json!({ "delegate": "ann", "until": until, "reason": "on leave" })).await.ok();
    let blind = format!("/approvals/{}/decision", card(&api, &run).await["approval"].as_str().unwrap());
    let blind = ann.post(&blind, json!({ "decision": "approve" })).await;
    assert_eq!(blind.problem(), (409, "APPROVAL_DIGEST_REQUIRED"), "it is no repetition of a vote that counts");
    let anew = ann.post(&path, word.clone()).await.ok();
    assert_eq!((&anew["state"], people(&anew).as_str()), (&json!("requested"), "ann"), "{anew}");
    assert_eq!(anew["votes"][0]["on_behalf_of"], "cyd");
    assert_eq!(told(&api, &run).await, (vec![json!("ann")], Value::Null));
    let repeated = ann.post(&path, word.clone()).await.ok();
    assert_eq!((&repeated["votes"], history(&run).await), (&anew["votes"], (2, 1)), "once, and the history has both");
    let second = bob.post(&path, word).await.ok();
    assert_eq!((&second["state"], people(&second).as_str()), (&json!("approved"), "ann bob"));

    // In her own right, which has come back.
    moved_to("sre").await;
    let (path, run, word) = asked().await;
    ann.post(&path, word.clone()).await.ok();
    moved_to("sales").await;
    bob.post(&path, word.clone()).await.ok();
    moved_to("sre").await;
    let anew = ann.post(&path, word).await.ok();
    assert_eq!((&anew["state"], people(&anew).as_str()), (&json!("approved"), "ann bob"), "{anew}");
    assert_eq!(history(&run).await, (3, 1));
    api.end().await;
}

#[tokio::test]
async fn a_vote_that_fell_counts_when_its_person_votes_anew() {
    a_fallen_vote_is_cast_anew(Api::new().await).await;
}

#[tokio::test]
async fn a_vote_that_fell_counts_when_its_person_votes_anew_on_postgresql() {
    a_fallen_vote_is_cast_anew(Api::on_postgres("cast_anew").await).await;
}

/// A vote in a lent right needs both accounts: that of the person who lent it, and that of the person who used it.
#[tokio::test]
async fn a_vote_in_a_lent_right_falls_with_either_account() {
    for gone in ["ann", "vic"] {
        let api = Api::new().await;
        let (ann, bob) = (of_sre(&api, "ann").await, of_sre(&api, "bob").await);
        let vic = Person::new(&api, "vic", json!(["viewer"]), json!([])).await;
        let until = api.engine.now().0 + 86_400_000;
        ann.post("/delegations", json!({ "delegate": "vic", "until": until, "reason": "on leave" })).await.ok();
        let run = api.post("/runs", json!({ "plan": gate(2, json!(["sre"])) })).await.text("run_id");
        let (path, word) = (format!("/runs/{run}/approve"), yes(&api, &run).await);
        vic.post(&path, word.clone()).await.ok();
        api.send("PATCH", &format!("/api/v1/users/{}", user(&api, gone).await), json!({ "disabled": true })).await.ok();
        let second = bob.post(&path, word).await.ok();
        assert_eq!((&second["state"], &second["fallen"][0]["person"]), (&json!("requested"), &json!("vic")));
        assert_eq!(second["fallen"][0]["why"], format!("the account {gone} is disabled"));
        api.end().await;
    }
}
