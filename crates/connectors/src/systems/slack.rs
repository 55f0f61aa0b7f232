//! Slack's Web API: `chat.postMessage`, `chat.delete`, and `conversations.history` to find out what has become of a post.
//!
//! Slack drops no repeats. Each message carries the mark of its effect key as message metadata, by which it is found again.
//! Slack answers errors with status 200 and `"ok": false`.

use interlock_core::plan::retry::ErrorClass;
use interlock_core::state::EffectClass;
use serde_json::{Value, json};

use super::connection;
use crate::connection::Connection;
use crate::connector::{CallFacts, Connector, Inverse, Probed};
use crate::declaration::{Declaration, Reversal};
use crate::failure::{CallFailure, Sent, quoted};
use crate::fields::Fields;
use crate::limits;
use crate::request::{HttpCall, Request, Response, only, with_query};
use crate::schema::{Field, Kind, Need};

/// `slack.post`
#[derive(Debug)]
pub struct Post;

/// `slack.delete`
#[derive(Debug)]
pub struct Delete;

/// Longer texts are cut by Slack, and the cut text is not what was approved.
const TEXT_BYTES: usize = 40_000;
const EVENT_TYPE: &str = "interlock_effect";
/// How far the clocks of Slack and the server may be apart.
const CLOCK_SLACK_SECONDS: i64 = 60;

const CHANNEL: Field =
    Field::new("channel", Kind::Id(limits::SHORT_TEXT), Need::Required, "The channel's id, such as `C0123456789`.");

static POST: Declaration = Declaration {
    operation: "slack.post",
    about: "Posts a message to a channel or a thread.",
    fields: &[
        CHANNEL,
        Field::new(
            "text",
            Kind::Text(TEXT_BYTES),
            Need::Required,
            "The message; with `blocks`, what notifications show.",
        ),
        Field::new("thread_ts", Kind::Id(32), Need::Optional, "The message whose thread it belongs to."),
        Field::new(
            "blocks",
            Kind::Any { bytes: limits::JSON_BYTES, secrets: false },
            Need::Optional,
            "A list of at most 50 blocks.",
        ),
        connection("\"slack\""),
    ],
    effect: EffectClass::Unsafe,
    key: "slack:post:{channel}:{thread_ts}:{body_hash}",
    reversal: Reversal::Inverse { by: "slack.delete", about: "deletes the message; people may have read it before" },
    reads_before: false,
    probe: Some("looks for the message's metadata in the channel's history (scope `channels:history` or its kin)"),
};

static DELETE: Declaration = Declaration {
    operation: "slack.delete",
    about: "Deletes a message that this connection has posted.",
    fields: &[
        CHANNEL,
        Field::new("ts", Kind::Id(32), Need::Required, "The message's timestamp, as `slack.post` answers it."),
        connection("\"slack\""),
    ],
    effect: EffectClass::Idempotent,
    key: "slack:delete:{channel}:{ts}",
    reversal: Reversal::Irreversible("a message that was deleted cannot be brought back"),
    reads_before: false,
    probe: None,
};

fn method(at: &Connection, name: &str) -> String {
    format!("{}/api/{name}", at.url)
}

fn post(at: &Connection, name: &str, body: Value) -> HttpCall {
    HttpCall::new("POST", method(at, name))
        .login(at)
        .header("content-type", "application/json; charset=utf-8")
        .json(body)
}

/// A success, or what Slack says went wrong.
fn answered(answer: &Response) -> Result<Value, CallFailure> {
    let body = answer.json()?;
    if body["ok"] == true {
        return Ok(body);
    }
    let error = body["error"].as_str().unwrap_or("unknown_error");
    let (sent, class) = match error {
        // Slack says of these that a part of the operation may have succeeded.
        "fatal_error" | "internal_error" | "service_unavailable" | "request_timeout" | "unknown_error" => {
            (Sent::Unknown, ErrorClass::Unavailable)
        }
        "ratelimited" | "rate_limited" | "message_limit_exceeded" => (Sent::CertainlyNot, ErrorClass::RateLimited),
        _ => (Sent::CertainlyNot, ErrorClass::Invalid),
    };
    let after = answer.retry_after();
    let message = format!("Slack refuses: {}", quoted(error));
    Err(CallFailure { after, ..CallFailure::new(sent, class, "SLACK_REFUSED", message) })
}

fn posted(channel: &str, ts: &str) -> Value {
    json!({ "channel": channel, "ts": ts })
}

impl Connector for Post {
    fn declaration(&self) -> &'static Declaration {
        &POST
    }

    fn check(&self, fields: &Fields) -> Result<(), String> {
        match fields.get("blocks") {
            None => Ok(()),
            Some(Value::Array(blocks)) if blocks.len() <= 50 => Ok(()),
            Some(_) => Err("`blocks` is a list of at most 50 blocks".to_owned()),
        }
    }

    fn key(&self, fields: &Fields, _: &Connection) -> String {
        let (channel, thread) = (fields.text("channel"), fields.text("thread_ts"));
        format!("slack:post:{channel}:{thread}:{}", fields.hash_of(&["text", "blocks"]))
    }

    fn requests(&self, fields: &Fields, at: &Connection, facts: &CallFacts) -> Result<Vec<Request>, CallFailure> {
        at.secret()?;
        let mut body = json!({
            "channel": fields.text("channel"),
            "text": fields.text("text"),
            "metadata": { "event_type": EVENT_TYPE, "event_payload": { "mark": facts.mark() } },
        });
        for name in ["thread_ts", "blocks"] {
            if let Some(value) = fields.get(name) {
                body[name] = value.clone();
            }
        }
        Ok(vec![post(at, "chat.postMessage", body).into_request()])
    }

    fn read(&self, fields: &Fields, _: &CallFacts, answers: &[Response]) -> Result<Value, CallFailure> {
        let body = answered(only(answers)?)?;
        let Some(ts) = body["ts"].as_str() else {
            return Err(CallFailure::unreadable("Slack's answer has no `ts`"));
        };
        Ok(posted(body["channel"].as_str().unwrap_or(fields.text("channel")), ts))
    }

    fn probe(&self, fields: &Fields, at: &Connection, facts: &CallFacts) -> Option<Request> {
        let oldest = facts.since.map_or(0, |since| since.0 / 1_000 - CLOCK_SLACK_SECONDS).max(0).to_string();
        let mut query = vec![("channel", fields.text("channel")), ("oldest", &oldest), ("limit", "200")];
        query.push(("include_all_metadata", "true"));
        let name = match fields.opt_text("thread_ts") {
            Some(thread) => {
                query.push(("ts", thread));
                "conversations.replies"
            }
            None => "conversations.history",
        };
        Some(HttpCall::new("GET", with_query(method(at, name), &query)).login(at).into_request())
    }

    fn read_probe(&self, fields: &Fields, facts: &CallFacts, answer: &Response) -> Probed {
        let body = match answered(answer) {
            Ok(body) => body,
            Err(failure) => return Probed::CannotTell(failure.message),
        };
        let is_ours = |message: &&Value| {
            message["metadata"]["event_type"] == EVENT_TYPE
                && message["metadata"]["event_payload"]["mark"] == facts.mark().as_str()
        };
        let found = body["messages"].as_array().into_iter().flatten().find(is_ours);
        match found.and_then(|message| message["ts"].as_str()) {
            Some(ts) => Probed::Happened(posted(fields.text("channel"), ts)),
            None if body["has_more"] == true => Probed::CannotTell("there are too many messages since then".to_owned()),
            None => Probed::NoTrace,
        }
    }

    fn inverse(&self, fields: &Fields, output: &Value) -> Result<Inverse, String> {
        let ts = output["ts"].as_str().ok_or("which message it was is not known")?;
        let channel = output["channel"].as_str().unwrap_or(fields.text("channel"));
        let fields = json!({ "channel": channel, "ts": ts, "connection": fields.text("connection") });
        Ok(Inverse { operation: DELETE.operation, fields })
    }
}

impl Connector for Delete {
    fn declaration(&self) -> &'static Declaration {
        &DELETE
    }

    fn key(&self, fields: &Fields, _: &Connection) -> String {
        format!("slack:delete:{}:{}", fields.text("channel"), fields.text("ts"))
    }

    fn requests(&self, fields: &Fields, at: &Connection, _: &CallFacts) -> Result<Vec<Request>, CallFailure> {
        at.secret()?;
        let body = json!({ "channel": fields.text("channel"), "ts": fields.text("ts") });
        Ok(vec![post(at, "chat.delete", body).into_request()])
    }

    fn read(&self, _: &Fields, _: &CallFacts, answers: &[Response]) -> Result<Value, CallFailure> {
        let answer = only(answers)?;
        // Gone is what was wanted.
        let gone = answer.body_json().is_some_and(|body| body["error"] == "message_not_found");
        if !gone {
            answered(answer)?;
        }
        Ok(json!({ "deleted": !gone }))
    }
}
