//! The list of approvals as an inbox: what is mine, what is due, and what else it is asked by.

use std::time::Duration;

use serde_json::{Value, json};

use crate::approvals::{Person, gate};
use crate::harness::Api;

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
