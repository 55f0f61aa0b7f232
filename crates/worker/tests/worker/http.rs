//! What the HTTP transport makes of answers, of an Interlock server and of others.

use interlock_core::ids::{ReceiptId, SessionId};
use interlock_core::json::Json;
use interlock_core::time::Millis;
use interlock_protocol::agent::*;
use interlock_protocol::problem::Problem;
use interlock_protocol::transport::{Transport, TransportError};
use interlock_worker::HttpTransport;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// A server that gives one answer, and what it was asked.
async fn answering(status: &str, body: &str) -> (HttpTransport, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let length = body.len();
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut asked = Vec::new();
        while !is_whole(&asked) {
            assert_ne!(stream.read_buf(&mut asked).await.unwrap(), 0);
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(asked).unwrap()
    });
    (HttpTransport::new(&server, Some("s3cret".into())).unwrap(), serving)
}

fn is_whole(asked: &[u8]) -> bool {
    let asked = String::from_utf8_lossy(asked);
    let Some((head, body)) = asked.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    body.len() == length.parse::<usize>().unwrap()
}

/// An older server, or a proxy that knows no WebSockets.
#[tokio::test]
async fn without_a_channel_calls_are_requests() {
    let left = axum::routing::post(|| async { axum::http::StatusCode::NO_CONTENT });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let router = axum::Router::new().route(path::UNREGISTER, left);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let transport = HttpTransport::new(&server, None).unwrap().with_channel();
    for _ in 0..2 {
        transport.unregister(session()).await.unwrap();
    }
}

fn session() -> SessionId {
    SessionId(Uuid::from_u128(1))
}

async fn poll_answered(status: &str, body: &str) -> Result<Polled, TransportError> {
    let (transport, _serving) = answering(status, body).await;
    transport.poll(Poll { session: session(), max: 1, wait_ms: Millis(0), round_trip_ms: None }).await
}

#[tokio::test]
async fn a_call_carries_the_token_and_the_session() {
    let (transport, serving) = answering("200 OK", r#"{"recorded":true}"#).await;
    let at = AttemptRef {
        tenant: interlock_core::ids::TenantId(Uuid::nil()),
        run: interlock_core::ids::RunId(Uuid::nil()),
        position: 0,
        attempt: 1,
    };
    let outcome = ReportedOutcome::Completed { output: Json::trusted("1") };
    let report = Report { at, epoch: 1, outcome, claim_next: true, cost: None, credentials: Vec::new() };
    let completed = transport.complete(Complete { session: session(), report }).await;
    assert_eq!(completed, Ok(Completed { next: None, recorded: true }));
    let asked = serving.await.unwrap();
    let first = format!("POST /api/v1/agent/{}/complete-step HTTP/1.1\r\n", session());
    assert!(asked.starts_with(&first), "{asked}");
    assert!(asked.contains("authorization: Bearer s3cret\r\n"), "{asked}");
    assert!(asked.contains(&format!("idempotency-key: complete:{}:0:1\r\n", at.run)), "what it is known by: {asked}");
    assert!(asked.contains("traceparent: 00-"), "{asked}");
    assert!(asked.contains(r#""outcome":{"status":"completed","output":1}"#), "{asked}");
}

#[tokio::test]
async fn answers_are_read_whole() {
    let receipt = ReceiptId(Uuid::nil());
    let body = format!(r#"{{"answer":"performed","receipt":"{receipt}","response":{{"n":1.10}}}}"#);
    let (transport, _serving) = answering("200 OK", &body).await;
    let intent = EffectIntent {
        at: AttemptRef {
            tenant: interlock_core::ids::TenantId(Uuid::nil()),
            run: interlock_core::ids::RunId(Uuid::nil()),
            position: 0,
            attempt: 1,
        },
        epoch: 1,
        template: "t".into(),
        number: 0,
        effect: interlock_core::state::EffectClass::Keyed,
        request: Json::null(),
    };
    let response = Some(Json::trusted(r#"{"n":1.10}"#));
    assert_eq!(transport.intent(session(), intent).await, Ok(EffectAnswer::Performed { receipt, response }));

    let (transport, _serving) = answering("204 No Content", "").await;
    assert_eq!(transport.unregister(session()).await, Ok(()));
}

#[tokio::test]
async fn refusals_keep_their_code_and_outages_are_worth_a_repeat() {
    let problem = |status| serde_json::to_string(&Problem::new(status, "STEP_STALE_ATTEMPT", "over")).unwrap();
    let refused = poll_answered("409 Conflict", &problem(409)).await.unwrap_err();
    assert!(refused.is_stale_attempt(), "{refused}");
    let overloaded = poll_answered("503 Service Unavailable", &problem(503)).await.unwrap_err();
    assert!(matches!(overloaded, TransportError::Unavailable(_)), "{overloaded}");

    // Something else stands at that address, or in between.
    let elsewhere = poll_answered("404 Not Found", "<html>").await.unwrap_err();
    assert_eq!(elsewhere, TransportError::refused("HTTP_404", "404 Not Found: <html>"));
    let gateway = poll_answered("502 Bad Gateway", "<html>").await.unwrap_err();
    assert!(matches!(gateway, TransportError::Unavailable(_)), "{gateway}");
    let portal = poll_answered("200 OK", "<html>log in</html>").await.unwrap_err();
    assert!(matches!(portal, TransportError::Unavailable(_)), "{portal}");
}

#[tokio::test]
async fn nobody_there_is_an_outage() {
    // Taken, so that no other process gets the port, and nobody listens at it.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let server = format!("http://{}", socket.local_addr().unwrap());
    let error = HttpTransport::new(&server, None).unwrap().unregister(session()).await.unwrap_err();
    assert!(matches!(error, TransportError::Unavailable(_)), "{error}");
}

#[test]
fn an_address_that_cannot_work_is_refused_at_once() {
    assert!(HttpTransport::new("https://example.org", None).is_ok());
    for server in ["ftp://example.org", "example.org:8080", "/tmp/socket", ""] {
        assert!(HttpTransport::new(server, None).is_err(), "{server}");
    }
}
