//! When no approver decides: a reminder, a second channel, a page. Each once, on whichever server, and none of them
//! decides.

use std::sync::Arc;
use std::time::Duration;

use interlock_core::ids::{SlackId, TenantId};
use interlock_core::time::Millis;
use interlock_outbound::header::HeaderMap;
use interlock_outbound::{Call, Exchange, Exchanged, HttpResponse, Outbound, StatusCode};
use interlock_store::{NoFaults, PutSlack, SlackRow, Tenant};
use serde_json::json;

use super::stand_in::{CHANNELS, Fault, StandIn};
use super::{APPROVE, NoticeOptions, connection};
use crate::approvals::{Person, yes};
use crate::harness::{self, Api};

/// The stand-in in place of the network, so that time can be skipped.
struct InProcess(StandIn);

impl Exchange for InProcess {
    fn send(&self, call: Call) -> Exchanged<'_> {
        let (status, body) = self.0.answer(&call.method, &call.url.parse().unwrap(), &call.headers, &call.body);
        let status = StatusCode::from_u16(status).unwrap();
        let url = call.url.parse().unwrap();
        let answer = HttpResponse { status, headers: HeaderMap::new(), body: body.to_string().into_bytes(), url };
        Box::pin(std::future::ready(Ok(answer)))
    }
}

/// Two servers on one store, in time that is skipped.
async fn servers(database: &str) -> (Api, harness::Api, StandIn) {
    let slack = StandIn::default();
    let equip = |options: &mut interlock_engine::EngineOptions| {
        options.outbound = Some(Outbound::over(Arc::new(InProcess(slack.clone()))));
        options.notices =
            NoticeOptions { public_url: Some("https://interlock.example.org".into()), ..NoticeOptions::default() };
    };
    let first = harness::engine_of(database, Arc::new(NoFaults), equip).await;
    let tenants = [1, 2].map(|number| TenantId(uuid::Uuid::from_u128(number)));
    for (tenant, name) in tenants.into_iter().zip(["one", "two"]) {
        first.tenants().put(Tenant::new(tenant, name, first.now())).await.unwrap();
    }
    let row = connection(tenants[0], SlackId(first.fresh_id()), first.now());
    let row = SlackRow { rung_other: Millis::from_mins(1), ..row };
    first.store().write(PutSlack(row)).await.unwrap();
    let second = harness::engine_of(database, Arc::new(NoFaults), equip).await;
    let api = Api::of(first, tenants, database.to_owned()).await;
    let beside = api.on(second);
    (api, beside, slack)
}

fn count(slack: &StandIn) -> (usize, usize, usize, usize) {
    let held = slack.held();
    let of = |channel: &str, thread: bool| {
        held.messages.iter().filter(|message| message.channel == channel && message.thread.is_some() == thread).count()
    };
    (of(CHANNELS[0], false), of(CHANNELS[0], true), of(CHANNELS[1], false), held.pages.len())
}

/// A gate whose time to decide is over after a minute. The rungs are a minute apart.
fn gate() -> serde_json::Value {
    crate::harness::plan(
        json!([{ "key": "gate", "kind": "approval", "message": "ship it?", "escalate_after": 60_000 }]),
    )
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn each_rung_is_reached_once_and_none_decides() {
    let (api, beside, slack) = servers("ladder-rungs").await;
    let ada = Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    let run = api.post("/runs", json!({ "plan": gate() })).await.text("run_id");
    seconds(50).await;
    assert_eq!(count(&slack), (1, 0, 0, 0));
    seconds(20).await;
    assert_eq!(count(&slack), (1, 1, 0, 0), "a reminder in the card's thread");
    let card = slack.held().messages[0].clone();
    assert!(card.shown().contains("Approval overdue") && card.button(APPROVE).is_some(), "{}", card.shown());
    let events = api.get(&format!("/runs/{run}/events")).await.ok();
    let overdue = events["events"].as_array().unwrap().iter().filter(|event| event["type"] == "approval.expired");
    assert_eq!(overdue.count(), 1);
    seconds(60).await;
    assert_eq!(count(&slack), (1, 1, 1, 0), "the second channel");
    seconds(60).await;
    assert_eq!(count(&slack), (1, 1, 1, 1), "whoever is on call");
    assert_eq!(slack.held().pages[0]["event_action"], "trigger");
    seconds(300).await;
    assert_eq!(count(&slack), (1, 1, 1, 1), "and nobody else");
    assert_eq!(api.get(&format!("/runs/{run}")).await.text("state"), "waiting_approval");

    let word = yes(&api, &run).await;
    let ada = {
        drop(ada);
        Person::signed_in(&api, "ada").await
    };
    ada.post(&format!("/runs/{run}/approve"), word).await.ok();
    seconds(20).await;
    let pages = slack.held().pages.clone();
    assert_eq!((pages.len(), &pages[1]["event_action"]), (2, &json!("resolve")));
    assert_eq!(pages[0]["dedup_key"], pages[1]["dedup_key"]);
    slack.check();
    beside.engine.stop().await;
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_decision_ends_the_ladder() {
    let (api, beside, slack) = servers("ladder-ends").await;
    let ada = Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    let run = api.post("/runs", json!({ "plan": gate() })).await.text("run_id");
    seconds(70).await;
    assert_eq!(count(&slack), (1, 1, 0, 0));
    ada.post(&format!("/runs/{run}/approve"), yes(&api, &run).await).await.ok();
    seconds(300).await;
    assert_eq!(count(&slack), (1, 1, 0, 0));
    slack.check();
    beside.engine.stop().await;
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_rung_is_not_posted_twice_where_its_answer_was_lost() {
    let (api, beside, slack) = servers("ladder-lost").await;
    api.post("/runs", json!({ "plan": gate() })).await.ok();
    seconds(50).await;
    slack.fail("chat.postMessage", Fault::Lost);
    seconds(90).await;
    assert_eq!(count(&slack), (1, 1, 1, 0), "it was found again by its mark");
    slack.check();
    beside.engine.stop().await;
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_due_while_no_server_ran_is_done_once() {
    let (api, beside, slack) = servers("ladder-crash").await;
    api.post("/runs", json!({ "plan": gate() })).await.ok();
    seconds(70).await;
    assert_eq!(count(&slack), (1, 1, 0, 0));
    beside.engine.stop().await;
    api.engine.stop().await;
    seconds(90).await;
    assert_eq!(count(&slack), (1, 1, 0, 0));
    let equip = |options: &mut interlock_engine::EngineOptions| {
        options.outbound = Some(Outbound::over(Arc::new(InProcess(slack.clone()))));
        options.clock = api.engine.clock().clone();
    };
    let third = harness::engine_of("ladder-crash", Arc::new(NoFaults), equip).await;
    seconds(10).await;
    assert_eq!(count(&slack), (1, 1, 1, 0));
    seconds(70).await;
    assert_eq!(count(&slack), (1, 1, 1, 1));
    slack.check();
    third.stop().await;
    third.store().clone().close().await;
    interlock_store::forget_memory("ladder-crash");
}
