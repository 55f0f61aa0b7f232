//! Answers that are too long, too slow, or never come.

use std::time::Duration;

use interlock_outbound::{Call, Excess, OutboundError};

use crate::server::{Server, client, ok};

#[tokio::test]
async fn a_long_answer_is_refused_or_cut() {
    let server = Server::answering("127.0.0.2", 0, ok(&"x".repeat(5_000))).await;
    let outbound = client(&[&["127.0.0.2"]]);
    let call = Call { answer_bytes_max: 1_000, ..Call::get(format!("http://{}/", server.at)) };
    let error = outbound.send(call.clone()).await.unwrap_err();
    assert_eq!(error, OutboundError::AnswerTooLarge { max: 1_000 });
    let answer = outbound.send(Call { excess: Excess::Cut, ..call }).await.unwrap();
    assert_eq!(answer.body.len(), 1_000);
}

#[tokio::test]
async fn an_answer_that_claims_less_than_it_sends_ends_where_it_claimed() {
    let server = Server::answering("127.0.0.2", 0, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokmore").await;
    let answer = client(&[&["127.0.0.2"]]).send(Call::get(format!("http://{}/", server.at))).await.unwrap();
    assert_eq!(answer.body, b"ok");
}

#[tokio::test]
async fn silence_ends_at_the_timeout() {
    let server = Server::answering("127.0.0.2", 0, "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n").await;
    let timeout = Duration::from_millis(100);
    let call = Call { timeout, ..Call::get(format!("http://{}/", server.at)) };
    let error = client(&[&["127.0.0.2"]]).send(call).await.unwrap_err();
    assert!(matches!(error, OutboundError::Timeout(_) | OutboundError::Failed(_)), "{error}");
    assert!(error.is_transient());
}

#[tokio::test]
async fn a_failure_does_not_repeat_the_url() {
    let error = client(&[&["127.0.0.2"]]).send(Call::get("http://127.0.0.2:1/hook?token=secret")).await.unwrap_err();
    assert!(matches!(error, OutboundError::NotConnected(_)), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
}
