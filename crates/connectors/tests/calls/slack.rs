use std::sync::{Arc, Mutex};

use interlock_connectors::{Probed, Sent};
use serde_json::{Value, json};

use crate::harness::{ReceivedRequest, Reply, StandIn, TOKEN, caller, facts, perform, probe, undo};

fn message() -> Value {
    json!({ "channel": "C1", "text": "Restarted", "thread_ts": "1.2" })
}

/// A channel: posts, deletes, history, as Slack documents them.
async fn channel(loses_answers: bool) -> StandIn {
    let messages: Arc<Mutex<Vec<Value>>> = Arc::default();
    StandIn::start(move |seen: &ReceivedRequest| {
        assert_eq!(seen.headers["authorization"], format!("Bearer {TOKEN}"));
        let mut messages = messages.lock().unwrap();
        match seen.path.as_str() {
            "/api/chat.postMessage" => {
                assert_eq!(seen.headers["content-type"], "application/json; charset=utf-8");
                let ts = format!("{}.0", messages.len() + 1);
                messages.push(json!({ "ts": ts, "text": seen.body["text"], "metadata": seen.body["metadata"] }));
                if loses_answers {
                    Reply::Lost
                } else {
                    Reply::Json(200, json!({ "ok": true, "channel": "C1", "ts": ts }))
                }
            }
            "/api/chat.delete" => {
                let before = messages.len();
                messages.retain(|message| message["ts"] != seen.body["ts"]);
                let gone = json!({ "ok": false, "error": "message_not_found" });
                Reply::Json(200, if messages.len() < before { json!({ "ok": true }) } else { gone })
            }
            "/api/conversations.replies" | "/api/conversations.history" => {
                assert!(seen.query.contains("include_all_metadata=true"), "{}", seen.query);
                assert!(seen.query.contains("oldest=1699999940"), "{}", seen.query);
                Reply::Json(200, json!({ "ok": true, "messages": *messages, "has_more": false }))
            }
            other => panic!("no such method: {other}"),
        }
    })
    .await
}

#[tokio::test]
async fn a_message_is_posted_as_slack_wants_it_and_deleted_by_its_inverse() {
    let slack = channel(false).await;
    let caller = caller("slack", &slack.url);
    let output = perform(&caller, "slack.post", message()).await.unwrap();
    assert_eq!(output, json!({ "channel": "C1", "ts": "1.0" }));
    let sent = &slack.seen()[0];
    assert_eq!(
        (sent.method.as_str(), &sent.body["channel"], &sent.body["thread_ts"]),
        ("POST", &json!("C1"), &json!("1.2"))
    );
    assert_eq!(sent.body["metadata"]["event_type"], "interlock_effect");
    assert_eq!(sent.body["metadata"]["event_payload"]["mark"], facts().mark());

    let undone = undo(&caller, "slack.post", message(), &output).await.unwrap();
    assert_eq!(undone, json!({ "deleted": true }));
    assert_eq!(slack.seen()[1].body, json!({ "channel": "C1", "ts": "1.0" }));
    let again = undo(&caller, "slack.post", message(), &output).await.unwrap();
    assert_eq!(again, json!({ "deleted": false }), "what is gone need not be deleted");
}

#[tokio::test]
async fn a_lost_answer_is_unknown_until_the_history_is_asked() {
    let slack = channel(true).await;
    let caller = caller("slack", &slack.url);
    assert_eq!(probe(&caller, "slack.post", message()).await, Probed::NoTrace);
    let failure = perform(&caller, "slack.post", message()).await.unwrap_err();
    assert_eq!(failure.sent, Sent::Unknown, "{failure}");
    assert_eq!(
        probe(&caller, "slack.post", message()).await,
        Probed::Happened(json!({ "channel": "C1", "ts": "1.0" }))
    );
}

#[tokio::test]
async fn slacks_errors_come_with_status_200_and_say_what_may_have_happened() {
    for (error, sent, retried) in [
        ("channel_not_found", Sent::CertainlyNot, false),
        ("invalid_auth", Sent::CertainlyNot, false),
        ("ratelimited", Sent::CertainlyNot, true),
        ("fatal_error", Sent::Unknown, true),
        ("internal_error", Sent::Unknown, true),
    ] {
        let slack =
            StandIn::start(move |_: &ReceivedRequest| Reply::Json(200, json!({ "ok": false, "error": error }))).await;
        let caller = caller("slack", &slack.url);
        let failure = perform(&caller, "slack.post", message()).await.unwrap_err();
        assert_eq!((failure.sent, failure.class.is_retryable()), (sent, retried), "{failure}");
        assert!(failure.message.contains(error), "{failure}");
        let probed = probe(&caller, "slack.post", message()).await;
        assert!(matches!(probed, Probed::CannotTell(_)), "a refusal to answer is no answer: {probed:?}");
    }
}

#[tokio::test]
async fn a_history_that_is_too_long_says_nothing() {
    let slack =
        StandIn::start(|_: &ReceivedRequest| Reply::Json(200, json!({ "ok": true, "messages": [], "has_more": true })))
            .await;
    let probed = probe(&caller("slack", &slack.url), "slack.post", message()).await;
    assert!(matches!(probed, Probed::CannotTell(_)), "{probed:?}");
}
