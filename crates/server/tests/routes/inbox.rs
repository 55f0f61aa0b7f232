//! The list of approvals as an inbox: what is mine, what is due, and what else it is asked by.

use std::time::Duration;

use serde_json::{Value, json};

use crate::approvals::{Person, card, gate, yes};
use crate::harness::{Api, failed, task};

fn subjects(list: &Value) -> Vec<&str> {
    list["approvals"].as_array().unwrap().iter().map(|each| each["subject"].as_str().unwrap()).collect()
}

async fn asked(api: &Api, subject: &str, quorum: u32, approvers: Value, due_mins: u64) {
    let mut plan = gate(quorum, approvers);
    plan["steps"][0]["escalate_after"] = json!(due_mins * 60_000);
    api.post("/runs", json!({ "plan": plan, "subject": subject })).await.ok();
    // Of what is asked in one millisecond, either may be the older.
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
}

#[tokio::test(start_paused = true)]
async fn mine_come_first_and_of_these_what_is_due_first() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["approver"]), json!(["sre"])).await;
    let vera = Person::new(&api, "vera", json!(["viewer"]), json!(["sre"])).await;
    asked(&api, "theirs", 1, json!(["dba"]), 1).await;
    asked(&api, "mine-late", 1, json!(["sre"]), 60).await;
    asked(&api, "mine-soon", 1, json!(["sre", "dba"]), 5).await;
    asked(&api, "two", 2, json!([]), 30).await;
    let list =
        async |who: &Person<'_>, query: &str| who.send("GET", &format!("/approvals?{query}"), Value::Null).await.ok();

    let all = list(&ada, "order=due").await;
    // An account that is a minute old is not one of two keys, except in the tenant's first day.
    assert_eq!(subjects(&all), ["mine-soon", "two", "mine-late", "theirs"]);
    let may: Vec<_> = all["approvals"].as_array().unwrap().iter().map(|each| each["may_decide"].clone()).collect();
    assert_eq!(may, [true, true, true, false]);
    assert_eq!((&all["approvals"][1]["workflow"], &all["approvals"][1]["tier"]), (&json!("demo"), &json!("high")));
    assert_eq!(subjects(&list(&ada, "mine=true&order=due").await), ["mine-soon", "two", "mine-late"]);
    assert_eq!(subjects(&list(&ada, "mine=false").await), ["theirs"]);
    assert_eq!(subjects(&list(&vera, "mine=true").await), Vec::<&str>::new(), "who may not decide has none");
    assert_eq!(subjects(&list(&ada, "").await), ["theirs", "mine-late", "mine-soon", "two"], "oldest first");

    // Page by page, in whichever order, with nothing twice and nothing left out.
    for (order, whole) in [("due", &all), ("oldest", &list(&ada, "").await)] {
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let page = list(&ada, &format!("order={order}&limit=1{after}")).await;
            found.extend(subjects(&page).into_iter().map(str::to_owned));
            let Some(next) = page["next_after"].as_str() else { break };
            after = format!("&after={next}");
        }
        assert_eq!(found, subjects(whole), "{order}");
    }

    assert_eq!(subjects(&list(&ada, "quorum=2").await), ["two"]);
    assert_eq!(subjects(&list(&ada, "tier=high").await), ["two"]);
    assert_eq!(subjects(&list(&ada, "approvers=dba").await), ["theirs", "mine-soon"]);
    assert_eq!(subjects(&list(&ada, "subject=two&workflow=demo").await), ["two"]);
    assert_eq!(subjects(&list(&ada, "workflow=other").await), Vec::<&str>::new());
    let since = all["approvals"][0]["requested_at"].as_i64().unwrap();
    assert_eq!(subjects(&list(&ada, &format!("since={}", since + 1_000_000)).await), Vec::<&str>::new());
    assert_eq!(subjects(&list(&ada, "overdue=true").await), Vec::<&str>::new());
    tokio::time::advance(Duration::from_mins(2)).await;
    assert_eq!(subjects(&list(&ada, "overdue=true").await), ["theirs"]);
    assert_eq!(subjects(&list(&ada, "overdue=false&order=due").await), ["mine-soon", "two", "mine-late"]);

    // What is decided is no longer mine, and the run's own list takes the same filters.
    let first = &all["approvals"][0];
    let vote = json!({ "approve": true, "digest": first["digest"] });
    ada.post(&format!("/approvals/{}/vote", first["approval"].as_str().unwrap()), vote).await.ok();
    assert_eq!(subjects(&list(&ada, "mine=true&order=due").await), ["two", "mine-late"]);
    let of_run = format!("run={}", first["run_id"].as_str().unwrap());
    assert_eq!(subjects(&list(&ada, &of_run).await), ["mine-soon"]);
    assert_eq!(subjects(&list(&ada, &format!("{of_run}&quorum=2")).await), Vec::<&str>::new());
    assert_eq!(subjects(&list(&ada, &format!("{of_run}&state=requested")).await), Vec::<&str>::new());
    api.end().await;
}

#[tokio::test]
async fn what_makes_no_sense_together_is_refused() {
    let api = Api::new().await;
    assert_eq!(api.get("/approvals?mine=true").await.problem(), (403, "PERSON_REQUIRED"));
    for odd in ["state=approved&order=due", "state=rejected&tier=low", "state=expired&overdue=true"] {
        assert_eq!(api.get(&format!("/approvals?{odd}")).await.problem(), (422, "INPUT_INVALID"), "{odd}");
    }
    for odd in ["after=7", "order=due&after=mine.x", "order=odd", "tier=huge", "order=due&after=mine.1.run_1"] {
        assert_eq!(api.get(&format!("/approvals?{odd}")).await.problem(), (400, "REQUEST_INVALID"), "{odd}");
    }
    api.end().await;
}

/// Has a person of `dba` asked for one task.
const ASKS_DBA: &str = r#"package interlock

default decision := {"verdict": "allow", "tier": "low", "reasons": [{"rule": "fine", "text": "fine"}], "obligations": null}

decision := {"verdict": "needs_approval", "tier": "low", "reasons": [{"rule": "dba", "text": "ask the dba"}], "obligations": {
	"quorum": 1,
	"approvers": ["dba"],
	"exclude": ["starter"],
	"self_approval": false,
	"escalate_after_s": 600,
	"expires_after_s": 86400,
	"scope": "step",
}} if {
	input.action.operation == "ask-first"
}
"#;

async fn a_decided_approval_is_found_by_each_of_its_lists(api: Api) {
    let version = api.post("/policy/versions", json!({ "files": { "own.rego": ASKS_DBA } })).await.ok();
    api.send("PATCH", "/api/v1/policy", json!({ "active": version["version"] })).await.ok();
    let ada = Person::new(&api, "ada", json!(["approver"]), json!(["sre"])).await;
    let dan = Person::new(&api, "dan", json!(["approver"]), json!(["dba"])).await;
    let mut act = task("act");
    act["handler"] = json!("ask-first");
    act["on_failure"] = json!("pause");
    let gate = json!({ "key": "gate", "kind": "approval", "quorum": 1, "approvers": ["sre"] });
    let run = api.start(json!([gate, act])).await;
    let path = format!("/runs/{run}/approve");
    for person in [&ada, &dan] {
        person.post(&path, yes(&api, &run).await).await.ok();
    }
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    api.report(&session, &assignment, failed("BROKEN")).await.ok();

    // The gate and the policy both ask before it is tried again.
    api.post(&format!("/runs/{run}/retry"), json!({})).await.ok();
    let open = card(&api, &run).await;
    let others = json!([{ "quorum": 1, "approvers": ["sre"] }]);
    assert_eq!((&open["approvers"], &open["and_from"]), (&json!(["dba"]), &others), "{open}");
    for person in [&ada, &dan] {
        person.post(&path, yes(&api, &run).await).await.ok();
    }
    let decided = api.get(&format!("/approvals/{}", open["approval"].as_str().unwrap())).await.ok();
    assert_eq!((&decided["state"], &decided["and_from"]), (&json!("approved"), &others), "{decided}");
    for (group, is_asked) in [("sre", true), ("dba", true), ("sales", false)] {
        for of in ["state=approved".to_owned(), format!("run={run}")] {
            let found = api.get(&format!("/approvals?{of}&approvers={group}")).await.ok();
            let is_it = |each: &Value| each["approval"] == open["approval"];
            assert_eq!(found["approvals"].as_array().unwrap().iter().any(is_it), is_asked, "{of} {group}: {found}");
        }
    }
    api.end().await;
}

#[tokio::test]
async fn the_second_list_of_a_decided_approval_is_searched() {
    a_decided_approval_is_found_by_each_of_its_lists(Api::new().await).await;
}

#[tokio::test]
async fn the_second_list_of_a_decided_approval_is_searched_on_postgresql() {
    a_decided_approval_is_found_by_each_of_its_lists(Api::on_postgres("inbox_lists").await).await;
}
