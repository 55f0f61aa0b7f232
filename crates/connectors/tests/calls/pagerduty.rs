use interlock_connectors::Sent;
use interlock_core::state::EffectClass;
use serde_json::{Value, json};

use crate::harness::{ReceivedRequest, Reply, StandIn, TOKEN, caller, checked, facts, perform, undo};

fn trigger() -> Value {
    json!({ "summary": "the primary is down", "severity": "critical", "source": "db1", "details": { "run": "r1" } })
}

async fn events() -> StandIn {
    StandIn::start(|seen: &ReceivedRequest| {
        assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/v2/enqueue"));
        assert!(!seen.headers.contains_key("authorization"), "the routing key is in the body");
        assert_eq!(seen.body["routing_key"], TOKEN);
        let key = seen.body["dedup_key"].clone();
        Reply::Json(202, json!({ "status": "success", "message": "Event processed", "dedup_key": key }))
    })
    .await
}

#[tokio::test]
async fn a_trigger_carries_a_key_of_its_own_and_is_resolved_by_its_inverse() {
    let server = events().await;
    let caller = caller("pagerduty", &server.url);
    let output = perform(&caller, "pagerduty.event", trigger()).await.unwrap();
    let key = format!("interlock-{}", facts().mark());
    assert_eq!(output, json!({ "dedup_key": key, "status": "success" }));
    let sent = server.seen()[0].body.clone();
    assert_eq!(sent["event_action"], "trigger");
    assert_eq!(
        sent["payload"],
        json!({ "summary": "the primary is down", "source": "db1", "severity": "critical", "custom_details": { "run": "r1" } })
    );
    perform(&caller, "pagerduty.event", trigger()).await.unwrap();
    assert_eq!(server.seen()[1].body["dedup_key"], sent["dedup_key"], "a repeat is the same event");

    undo(&caller, "pagerduty.event", trigger(), &output).await.unwrap();
    let resolved = server.seen()[2].body.clone();
    assert_eq!((&resolved["event_action"], &resolved["dedup_key"]), (&json!("resolve"), &json!(key)));
    assert!(resolved.get("payload").is_none());
}

#[tokio::test]
async fn pagerdutys_refusals_are_understood() {
    for (status, sent, retried) in [
        (202, Sent::CertainlyNot, false),
        (400, Sent::CertainlyNot, false),
        (429, Sent::CertainlyNot, true),
        (500, Sent::Unknown, true),
    ] {
        let server =
            StandIn::start(move |_: &ReceivedRequest| Reply::Json(status, json!({ "status": "invalid event" }))).await;
        let failure = perform(&caller("pagerduty", &server.url), "pagerduty.event", trigger()).await.unwrap_err();
        assert_eq!((failure.sent, failure.class.is_retryable()), (sent, retried), "{status}");
    }
}

#[test]
fn a_repeat_is_dropped_by_its_key_and_only_a_trigger_has_an_inverse() {
    let (event, fields) = checked("pagerduty.event", json!({ "action": "resolve", "dedup_key": "a" }));
    assert_eq!(event.effect(&fields), EffectClass::Keyed);
    assert!(event.inverse(&fields, &json!({ "dedup_key": "a" })).is_err());
    let fields = interlock_connectors::Fields::check(event.declaration(), json!({ "action": "resolve" })).unwrap();
    assert!(event.check(&fields).unwrap_err().contains("dedup_key"));
}
