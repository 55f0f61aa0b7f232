use interlock_connectors::{Connections, Sent};
use interlock_core::plan::retry::ErrorClass;
use serde_json::{Value, json};

use crate::harness::{ReceivedRequest, Reply, StandIn, TOKEN, checked, perform, with_connections};

fn connections(url: &str) -> Connections {
    let text = format!(
        r#"
        [connection.openai]
        url = "{url}/v1"
        secret = "TOKEN"
        [connection.anthropic]
        url = "{url}"
        secret = "TOKEN"
        [connection.local]
        url = "{url}/v1"
        api = "openai-compatible"
        [price.small]
        input = 0.5
        output = 2.0
        "#
    );
    Connections::from_toml(&text).unwrap()
}

fn openai_answer() -> Value {
    json!({
        "model": "small",
        "choices": [{ "message": { "role": "assistant", "content": "Yes." }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 12, "completion_tokens": 3 },
    })
}

#[tokio::test]
async fn openais_shape_with_tokens_and_cost() {
    let server = StandIn::start(|_: &ReceivedRequest| Reply::Json(200, openai_answer())).await;
    let caller = with_connections(connections(&server.url));
    let fields =
        json!({ "model": "small", "prompt": "Is it up?", "system": "Be short.", "max_tokens": 50, "temperature": 0.2 });
    let output = perform(&caller, "model.chat", fields).await.unwrap();
    assert_eq!(
        output,
        json!({
            "text": "Yes.", "stop_reason": "stop", "model": "small",
            "usage": { "input_tokens": 12, "output_tokens": 3 }, "cost_micros": 12,
        })
    );
    let sent = &server.seen()[0];
    assert_eq!(sent.path, "/v1/chat/completions");
    assert_eq!(sent.headers["authorization"], format!("Bearer {TOKEN}"));
    assert_eq!(
        sent.body,
        json!({
            "model": "small", "max_completion_tokens": 50, "temperature": 0.2,
            "messages": [{ "role": "system", "content": "Be short." }, { "role": "user", "content": "Is it up?" }],
        })
    );
}

#[tokio::test]
async fn servers_that_speak_the_older_language_need_no_secret() {
    let server = StandIn::start(|_: &ReceivedRequest| Reply::Json(200, openai_answer())).await;
    let caller = with_connections(connections(&server.url));
    let fields = json!({ "model": "other", "prompt": "x", "connection": "local" });
    perform(&caller, "model.chat", fields).await.unwrap();
    let sent = &server.seen()[0];
    assert_eq!((&sent.body["max_tokens"], sent.headers.get("authorization")), (&json!(1024), None));
}

#[tokio::test]
async fn anthropics_shape_and_a_model_without_a_price() {
    let server = StandIn::start(|_: &ReceivedRequest| {
        Reply::Json(
            200,
            json!({
                "model": "claude-x",
                "content": [{ "type": "text", "text": "Y" }, { "type": "text", "text": "es." }],
                "stop_reason": "end_turn",
                "usage": { "input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 4 },
            }),
        )
    })
    .await;
    let caller = with_connections(connections(&server.url));
    let said = json!([{ "role": "user", "content": "Is it up?" }]);
    let fields = json!({ "model": "claude-x", "messages": said, "system": "Be short.", "connection": "anthropic" });
    let output = perform(&caller, "model.chat", fields).await.unwrap();
    assert_eq!((&output["text"], &output["usage"]["input_tokens"]), (&json!("Yes."), &json!(15)));
    assert_eq!(output["cost_micros"], Value::Null, "what is not known is not free");
    let sent = &server.seen()[0];
    assert_eq!(sent.path, "/v1/messages");
    assert_eq!((sent.headers["x-api-key"].as_str(), sent.headers["anthropic-version"].as_str()), (TOKEN, "2023-06-01"));
    assert_eq!(sent.body, json!({ "model": "claude-x", "messages": said, "system": "Be short.", "max_tokens": 1024 }));
}

#[tokio::test]
async fn a_model_that_is_overloaded_is_asked_again_and_a_wrong_request_is_not() {
    for (status, class) in [(529, ErrorClass::RateLimited), (429, ErrorClass::RateLimited), (400, ErrorClass::Invalid)]
    {
        let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
        let server = StandIn::start(move |_: &ReceivedRequest| Reply::Json(status, error.clone())).await;
        let caller = with_connections(connections(&server.url));
        let fields = json!({ "model": "claude-x", "prompt": "x", "connection": "anthropic" });
        let failure = perform(&caller, "model.chat", fields).await.unwrap_err();
        assert_eq!(failure.class, class, "{failure}");
        assert!(failure.message.contains("Overloaded"), "{failure}");
    }
}

#[tokio::test]
async fn an_answer_without_usage_cannot_be_counted() {
    let text = json!([{ "type": "text", "text": "Yes." }]);
    for (connection, answer) in [
        ("openai", json!({ "choices": [{ "message": { "content": "Yes." } }] })),
        ("anthropic", json!({ "content": text, "usage": { "output_tokens": 3 } })),
    ] {
        let server = StandIn::start(move |_: &ReceivedRequest| Reply::Json(200, answer.clone())).await;
        let caller = with_connections(connections(&server.url));
        let fields = json!({ "model": "m", "prompt": "x", "connection": connection });
        let failure = perform(&caller, "model.chat", fields).await.unwrap_err();
        assert_eq!((failure.sent, failure.code.as_str()), (Sent::Unknown, "ANSWER_UNREADABLE"), "{connection}");
    }
}

#[tokio::test]
async fn a_refusal_with_status_200_says_what_it_is() {
    let answer = json!({ "error": { "code": 502, "message": "the provider is away" } });
    let server = StandIn::start(move |_: &ReceivedRequest| Reply::Json(200, answer.clone())).await;
    let caller = with_connections(connections(&server.url));
    let failure = perform(&caller, "model.chat", json!({ "model": "m", "prompt": "x" })).await.unwrap_err();
    assert_eq!((failure.class, failure.code.as_str()), (ErrorClass::Unavailable, "MODEL_REFUSED"));
    assert!(failure.message.ends_with("the provider is away"), "{failure}");
}

#[test]
fn a_lost_answer_costs_no_more_than_the_request_allows() {
    let caller = with_connections(connections("https://model.example"));
    let most = |fields: Value| caller.model_cost_at_most(&checked("model.chat", fields).1);
    // 1 byte and what stands around two messages for 0.5 each, 50 tokens for 2 each.
    assert_eq!(most(json!({ "model": "small", "prompt": "x", "max_tokens": 50 })), Some(133));
    let said = json!([{ "role": "user", "content": "ab" }, { "role": "assistant", "content": "cd" }]);
    let long = json!({ "model": "small", "messages": said, "system": "ef", "max_tokens": 1 });
    // 6 bytes and what stands around three messages for 0.5 each, 1 token for 2.
    assert_eq!(most(long), Some(53));
    assert_eq!(most(json!({ "model": "other", "prompt": "x" })), None, "what is not known is not free");
}
