//! What holds for every connector.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use interlock_connectors::schema::FaultKind;
use interlock_connectors::send::{Caller, Operation};
use interlock_connectors::{Connection, Connections, Fields, Sent, all, find};
use interlock_core::ids::TenantId;
use interlock_core::time::Timestamp;
use interlock_credentials::providers::fixed::FixedSecrets;
use interlock_credentials::{Clock, Credentials};
use interlock_outbound::{Outbound, OutboundOptions};
use serde_json::json;

use crate::harness::{
    ReceivedRequest, Reply, StandIn, TENANT, TOKEN, caller, checked, credentials, facts, ok, outbound, perform,
    secrets, with_connections,
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

/// JSON and addresses can spell a secret in other ways than it is.
#[tokio::test]
async fn every_spelling_of_a_secret_is_hidden() {
    const ODD: &str = "a/b\"c\\d=e f";
    for told in [
        r#"{ "again": "a\/b\"c\\d=e f" }"#,
        r#"{ "again": "\u0061\u002fb\u0022c\u005cd\u003de f" }"#,
        r#"{ "a/b\"c\\d=e f": 1 }"#,
        r#"broken { "again": "a/b\"c\\d=e f" "#,
        "see https://shop.example/?key=a%2Fb%22c%5Cd%3De%20f",
    ] {
        let server = StandIn::start(move |_: &ReceivedRequest| Reply::Text(200, told.to_owned())).await;
        let secrets = FixedSecrets([("ODD".to_owned(), ODD.to_owned())].into());
        let credentials = Credentials::of_one("fixed", Arc::new(secrets), Clock::new(|| Timestamp(0)));
        let caller = Caller::new(outbound(), Connections::default(), credentials);
        let fields = json!({ "url": server.url, "headers": { "x": { "$secret": "ODD" } } });
        let output = perform(&caller, "http.request", fields).await.unwrap().to_string();
        assert!(output.contains("***"), "{told}: {output}");
    }
}

/// A private range can be open to the steps of one tenant.
#[tokio::test]
async fn a_step_reaches_what_is_open_to_its_tenant() {
    let server = StandIn::start(|_: &ReceivedRequest| Reply::Json(200, ok())).await;
    let stranger = TenantId::from_bytes([9; 16]);
    for (tenant, reached) in [(TENANT, true), (stranger, false)] {
        let open_for = [(tenant.to_string(), vec!["127.0.0.1".parse().unwrap()])].into();
        let outbound = Outbound::new(OutboundOptions { open_for, ..OutboundOptions::default() }).unwrap();
        let caller = Caller::new(outbound, Connections::default(), credentials());
        let ended = perform(&caller, "http.request", json!({ "url": server.url })).await;
        assert_eq!(ended.is_ok(), reached, "{ended:?}");
        assert!(ended.err().is_none_or(|failure| failure.code == "ADDRESS_CLOSED"));
    }
    assert_eq!(server.seen().len(), 1);
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
fn what_is_bound_is_every_field_with_its_default() {
    let (_, fields) = checked("http.request", json!({ "url": "https://a" }));
    assert_eq!(fields.to_value(), json!({ "url": "https://a", "method": "GET", "timeout_s": 20 }));
}
