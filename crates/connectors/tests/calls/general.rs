//! What holds for every connector.

use std::sync::atomic::{AtomicBool, Ordering};

use interlock_connectors::schema::FaultKind;
use interlock_connectors::send::{Caller, Operation};
use interlock_connectors::{Connection, Connections, Fields, Sent, all, find};
use interlock_core::time::Timestamp;
use interlock_credentials::{Clock, Credentials};
use serde_json::json;

use crate::harness::{
    ReceivedRequest, Reply, StandIn, TOKEN, caller, checked, facts, ok, outbound, perform, secrets, with_connections,
};

#[tokio::test]
async fn a_target_that_repeats_our_secret_does_not_get_it_into_outputs_or_errors() {
    for status in [200, 400] {
        let server = StandIn::start(move |seen: &ReceivedRequest| {
            let echo = json!({ "message": seen.headers, "again": seen.headers["authorization"] });
            Reply::With(status, vec![("x-request-id", seen.headers["authorization"].clone())], echo)
        })
        .await;
        let caller = caller("shop", &server.url);
        let fields = json!({ "url": "/echo", "connection": "shop", "headers": { "x": { "$secret": "TOKEN" } } });
        let told = match perform(&caller, "http.request", fields).await {
            Ok(output) => output.to_string(),
            Err(failure) => format!("{failure} {failure:?}"),
        };
        assert!(!told.contains(TOKEN), "{told}");
        assert!(server.seen()[0].headers["authorization"].contains(TOKEN), "but it was sent");
    }
}

#[tokio::test]
async fn the_encoded_form_of_a_password_is_hidden_too() {
    let server = StandIn::start(|seen: &ReceivedRequest| Reply::Json(200, json!(seen.headers["authorization"]))).await;
    let connection = Connection::new("shop", &server.url).with_user("u").with_secret("TOKEN");
    let caller = with_connections(Connections::default().with(connection));
    let output = perform(&caller, "http.request", json!({ "url": "/", "connection": "shop" })).await.unwrap();
    assert_eq!(output["body"], "Basic ***");
}

#[tokio::test]
async fn nothing_is_sent_once_leave_has_run_out() {
    let server = StandIn::start(|_: &ReceivedRequest| Reply::Json(200, ok())).await;
    let caller = caller("slack", &server.url);
    let (connector, fields) = checked("slack.post", json!({ "channel": "C1", "text": "x" }));
    let asked = AtomicBool::new(false);
    let leave = || {
        asked.store(true, Ordering::Relaxed);
        false
    };
    let secrets = secrets(&caller);
    let operation = Operation { connector, fields: &fields, secrets: &secrets };
    let failure = caller.perform(operation, &facts(), &leave).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.sent), ("LEASE_TOO_SHORT", Sent::CertainlyNot));
    assert!(asked.load(Ordering::Relaxed) && server.seen().is_empty());
}

#[tokio::test]
async fn a_missing_secret_sends_nothing_and_names_it() {
    let server = StandIn::start(|_: &ReceivedRequest| Reply::Json(200, ok())).await;
    let connections = Connections::default().with(Connection::new("slack", &server.url).with_secret("OTHER"));
    let fields = json!({ "channel": "C1", "text": "x" });
    let failure = perform(&with_connections(connections.clone()), "slack.post", fields.clone()).await.unwrap_err();
    assert!(failure.message.contains("`OTHER`") && failure.sent == Sent::CertainlyNot, "{failure}");
    let none = Caller::new(outbound(), connections, Credentials::none(Clock::new(|| Timestamp(0))));
    let failure = perform(&none, "slack.post", fields).await.unwrap_err();
    assert!(failure.message.contains("--secrets"), "{failure}");
    assert!(server.seen().is_empty());
    assert!(!format!("{none:?}").contains(TOKEN));
}

#[test]
fn unknown_fields_and_wrong_types_are_refused_by_every_connector() {
    for connector in all() {
        let name = connector.declaration().operation;
        let faults = Fields::check(connector.declaration(), json!({ "no_such_field": 1 })).unwrap_err();
        assert!(
            faults.iter().any(|fault| fault.kind == FaultKind::Unknown && fault.path == ["no_such_field"]),
            "{name}"
        );
        assert!(Fields::check(connector.declaration(), json!([1])).is_err(), "{name}");
    }
    assert!(find("slack.pst").is_none());
}

#[test]
fn what_only_says_how_long_to_wait_is_not_signed() {
    let (http, fields) = checked("http.request", json!({ "url": "https://a", "timeout_s": 5 }));
    assert_eq!(fields.signed(http.declaration()), json!({ "url": "https://a", "method": "GET" }));
    assert_eq!(fields.to_value()["timeout_s"], 5);
}
