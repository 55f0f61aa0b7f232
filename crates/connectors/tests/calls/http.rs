use interlock_connectors::{Connection, Connections, Fields, Sent, find};
use interlock_core::state::EffectClass;
use serde_json::{Value, json};

use crate::harness::{ReceivedRequest, Reply, StandIn, TOKEN, facts, ok, perform, with_connections};

#[tokio::test]
async fn a_request_goes_out_as_written_with_its_key_and_secrets_in_place() {
    let server = StandIn::start(|_: &ReceivedRequest| {
        Reply::With(201, vec![("etag", "\"v1\"".to_owned()), ("set-cookie", "a=b".to_owned())], ok())
    })
    .await;
    let caller = with_connections(Connections::default());
    let fields = json!({
        "url": format!("{}/orders?a=b", server.url), "method": "POST",
        "headers": { "X-Key": { "$secret": "TOKEN" }, "X-Plain": "plain" },
        "auth": { "bearer": { "$secret": "TOKEN" } },
        "json": { "amount": 3, "token": { "$secret": "TOKEN" } },
        "idempotency_header": "Idempotency-Key",
    });
    let output = perform(&caller, "http.request", fields).await.unwrap();
    let headers = json!({ "content-type": "application/json", "etag": "\"v1\"" });
    assert_eq!(output, json!({ "status": 201, "headers": headers, "body": { "ok": true }, "truncated": false }));
    let sent = &server.seen()[0];
    assert_eq!((sent.method.as_str(), sent.path.as_str(), sent.query.as_str()), ("POST", "/orders", "a=b"));
    assert_eq!(sent.headers["idempotency-key"], facts().key);
    assert_eq!((sent.headers["x-key"].as_str(), sent.headers["x-plain"].as_str()), (TOKEN, "plain"));
    assert_eq!(sent.headers["authorization"], format!("Bearer {TOKEN}"));
    assert_eq!(sent.body, json!({ "amount": 3, "token": TOKEN }));
    assert_eq!(sent.headers["content-type"], "application/json");
}

#[tokio::test]
async fn a_connection_says_where_and_who() {
    let server = StandIn::start(|_: &ReceivedRequest| Reply::Json(200, ok())).await;
    let connection = Connection::new("shop", &format!("{}/v2", server.url)).with_user("u").with_secret("TOKEN");
    let caller = with_connections(Connections::default().with(connection));
    perform(&caller, "http.request", json!({ "url": "/orders", "connection": "shop" })).await.unwrap();
    let sent = &server.seen()[0];
    assert_eq!(sent.path, "/v2/orders");
    assert!(sent.headers["authorization"].starts_with("Basic "));
    let failure = perform(&caller, "http.request", json!({ "url": "/x", "connection": "none" })).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.sent), ("CONNECTION_UNKNOWN", Sent::CertainlyNot));
}

#[tokio::test]
async fn reads_follow_redirects_but_not_into_private_ranges_and_writes_follow_none() {
    for (to, code) in [
        ("http://10.0.0.1/", "ADDRESS_CLOSED"),
        ("http://169.254.169.254/latest", "ADDRESS_CLOSED"),
        ("file:///etc/passwd", "ADDRESS_INVALID"),
    ] {
        let server =
            StandIn::start(move |_: &ReceivedRequest| Reply::With(302, vec![("location", to.to_owned())], Value::Null))
                .await;
        let caller = with_connections(Connections::default());
        let failure = perform(&caller, "http.request", json!({ "url": server.url })).await.unwrap_err();
        assert_eq!(failure.code, code, "{failure}");
        let fields = json!({ "url": server.url, "method": "POST", "json": {} });
        let failure = perform(&caller, "http.request", fields).await.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.sent), ("HTTP_302", Sent::Unknown), "{failure}");
        assert_eq!(server.seen().len(), 2);
    }
}

#[tokio::test]
async fn private_addresses_are_closed_unless_they_are_opened() {
    let caller = with_connections(Connections::default());
    for url in ["http://127.0.0.2:1/", "http://10.1.2.3/", "http://[::1]/", "http://0x7f000002/"] {
        let failure = perform(&caller, "http.request", json!({ "url": url, "method": "POST" })).await.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.sent), ("ADDRESS_CLOSED", Sent::CertainlyNot), "{url}");
        assert!(!failure.class.is_retryable());
    }
}

#[tokio::test]
async fn nothing_was_sent_where_nobody_listens() {
    // Taken, so that no other process gets the port, and nobody listens at it.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}", socket.local_addr().unwrap());
    let caller = with_connections(Connections::default());
    let failure = perform(&caller, "http.request", json!({ "url": url, "method": "POST" })).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.sent), ("NOT_CONNECTED", Sent::CertainlyNot), "{failure}");
    assert!(failure.class.is_retryable());
}

#[tokio::test]
async fn every_status_class_is_told_apart() {
    for (status, sent, retried) in [
        (400, Sent::CertainlyNot, false),
        (404, Sent::CertainlyNot, false),
        (429, Sent::CertainlyNot, true),
        (500, Sent::Unknown, true),
        (503, Sent::Unknown, true),
    ] {
        let server = StandIn::start(move |_: &ReceivedRequest| {
            Reply::With(status, vec![("retry-after", "3".to_owned())], json!({ "error": { "message": "why" } }))
        })
        .await;
        let caller = with_connections(Connections::default());
        let fields = json!({ "url": server.url, "method": "POST" });
        let failure = perform(&caller, "http.request", fields).await.unwrap_err();
        assert_eq!((failure.sent, failure.class.is_retryable()), (sent, retried), "{status}");
        assert_eq!(failure.after.map(|after| after.as_secs()), retried.then_some(3), "{status}");
        assert!(failure.message.ends_with("why"), "{failure}");
    }
}

/// A target that drops repeats by a key answers 409 while an earlier call with the same key is under way.
#[tokio::test]
async fn a_key_that_is_in_use_is_tried_again_and_any_other_conflict_is_not() {
    let server = StandIn::start(|_: &ReceivedRequest| Reply::Json(409, json!({ "message": "in use" }))).await;
    let caller = with_connections(Connections::default());
    let mut fields = json!({ "url": server.url, "method": "POST" });
    let failure = perform(&caller, "http.request", fields.clone()).await.unwrap_err();
    assert_eq!((failure.sent, failure.class.is_retryable()), (Sent::CertainlyNot, false), "{failure}");
    fields["idempotency_header"] = json!("Idempotency-Key");
    let failure = perform(&caller, "http.request", fields).await.unwrap_err();
    assert_eq!((failure.sent, failure.class.is_retryable()), (Sent::Unknown, true), "{failure}");
    assert_eq!(failure.code, "HTTP_409");
}

#[tokio::test]
async fn a_lost_answer_may_have_happened() {
    let server = StandIn::start(|_: &ReceivedRequest| Reply::Lost).await;
    let caller = with_connections(Connections::default());
    let fields = json!({ "url": server.url, "method": "POST" });
    assert_eq!(perform(&caller, "http.request", fields).await.unwrap_err().sent, Sent::Unknown);
}

#[tokio::test]
async fn a_long_answer_is_cut_and_says_so() {
    let long = "x".repeat(interlock_connectors::limits::ANSWER_BYTES * 2);
    let server = StandIn::start(move |_: &ReceivedRequest| Reply::Json(200, json!(long))).await;
    let output = perform(&with_connections(Connections::default()), "http.request", json!({ "url": server.url })).await;
    let output = output.unwrap();
    assert_eq!(output["truncated"], true);
    assert_eq!(output["body"].as_str().unwrap().len(), interlock_connectors::limits::ANSWER_BYTES);
}

#[test]
fn the_method_says_how_safe_a_repeat_is() {
    let http = find("http.request").unwrap();
    let class = |fields: Value| http.effect(&Fields::written(http.declaration(), fields));
    assert_eq!(class(json!({ "url": "https://a" })), EffectClass::Read);
    assert_eq!(class(json!({ "url": "https://a", "method": "DELETE" })), EffectClass::Idempotent);
    assert_eq!(class(json!({ "url": "https://a", "method": "POST" })), EffectClass::Unsafe);
    let keyed = json!({ "url": "https://a", "method": "POST", "idempotency_header": "Idempotency-Key" });
    assert_eq!(class(keyed), EffectClass::Keyed);
    assert_eq!(class(json!({ "url": "https://a", "method": "${{ inputs.m }}" })), EffectClass::Unsafe);
}

#[test]
fn contradictions_are_refused() {
    let http = find("http.request").unwrap();
    let secret = json!({ "$secret": "A" });
    for (fields, says) in [
        (json!({ "url": "https://a", "method": "POST", "json": 1, "text": "x" }), "one body"),
        (json!({ "url": "https://a", "json": 1 }), "no body"),
        (json!({ "url": "https://a", "headers": { "Content-Length": "5" } }), "Content-Length"),
        (json!({ "url": "https://a", "headers": { "host": "inside" } }), "host"),
        (json!({ "url": "https://a", "headers": { "X-HTTP-Method-Override": "DELETE" } }), "as `method`"),
        (json!({ "url": "https://a", "idempotency_header": "X-Method-Override" }), "as `method`"),
        (json!({ "url": "https://a", "auth": { "user": "u" } }), "`user` and `password`"),
        (json!({ "url": "https://a", "auth": { "bearer": secret, "user": "u", "password": secret } }), "either"),
        (json!({ "url": "ftp://a" }), "https://"),
        (json!({ "url": "https://a", "connection": "c" }), "begins with one `/`"),
        (json!({ "url": "//evil.example", "connection": "c" }), "begins with one `/`"),
        (json!({ "url": "/a/../../admin", "connection": "c" }), "climb"),
        (json!({ "url": "/a/%2E./b", "connection": "c" }), "climb"),
        (json!({ "url": "/a\\..\\b", "connection": "c" }), "climb"),
        (json!({ "url": "/a/..%2Fb", "connection": "c" }), "climb"),
        (json!({ "url": "/a/..;x=1/b", "connection": "c" }), "climb"),
        (json!({ "url": "/a/.\t./b", "connection": "c" }), "control character"),
        (json!({ "url": "https://a\r\n/b" }), "control character"),
        (json!({ "url": "/a", "connection": "c", "auth": { "bearer": secret } }), "leave out `auth`"),
    ] {
        let fields = Fields::check(http.declaration(), fields).unwrap();
        let refusal = http.check(&fields).unwrap_err();
        assert!(refusal.contains(says), "{refusal}");
    }
}
