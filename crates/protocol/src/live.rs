//! The live stream: events as they happen, over WebSocket and SSE. [`EventView`] is an event everywhere; its `id` is what a
//! subscriber hands back as `last_event_id` to go on behind it. [`Envelope`] is the same event on the runbook surface.
//!
//! Beside events there are [`Control`] frames, which say how the stream itself stands.

use interlock_core::ids::RunId;
use interlock_core::json::Json;
pub use interlock_core::run::told::{EventContext, EventView};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where the streams are.
pub mod path {
    pub const WS_RUN: &str = "/ws/runs/{run}";
    /// The same in the envelopes of the runbook surface.
    pub const WS_EXECUTION: &str = "/ws/executions/{run}";
    /// All runs of the tenant.
    pub const WS_FEED: &str = "/ws/feed";
    pub const SSE_RUN: &str = "/api/v1/runs/{run}/events/stream";
    pub const SSE_FEED: &str = "/api/v1/events/stream";
    /// What a step writes, as it writes it.
    pub const SSE_OUTPUT: &str = "/api/v1/runs/{run}/steps/{step}/output/stream";
    /// The tenant's events, for who polls.
    pub const FEED: &str = "/api/v1/events";
}

/// Bounds and rhythms of the streams.
pub mod limits {
    use interlock_core::time::Millis;

    /// How often an idle stream sends a heartbeat; a client that gets nothing for three times as long should reconnect.
    pub const HEARTBEAT: Millis = Millis::from_secs(15);
    /// How long a WebSocket may take to name its token and its place, where the request did not.
    pub const FIRST_FRAME_WAIT: Millis = Millis::from_secs(10);
    /// A frame from a subscriber: a token and a cursor.
    pub const FRAME_BYTES_MAX: usize = 16 << 10;
}

/// Close codes of the WebSocket (RFC 6455, §7.4).
pub mod close {
    /// The run has ended and everything was sent.
    pub const ENDED: u16 = 1000;
    /// A frame broke the protocol.
    pub const PROTOCOL: u16 = 1002;
    /// A text frame holds no UTF-8.
    pub const NOT_TEXT: u16 = 1007;
    /// A frame is longer than [`FRAME_BYTES_MAX`](super::limits::FRAME_BYTES_MAX).
    pub const TOO_LARGE: u16 = 1009;
    /// The first frame was not understood, or what it names does not exist.
    pub const REFUSED: u16 = 1008;
    /// The credential that opened the stream counts no more: revoked, expired, signed out. A code of our own.
    pub const UNAUTHORIZED: u16 = 4401;
    /// The server stops; reconnect.
    pub const RESTART: u16 = 1012;
    /// The subscriber is too slow; reconnect from the cursor that the `resync` frame named.
    pub const RESYNC: u16 = 1013;
}

/// The place in a stream: the `seq` of a run's event, or the tenant's cursor; behind it, inside a step, the attempt and
/// the number of the output chunk. Written `12`, or `12.1.17`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Cursor {
    pub seq: u64,
    pub attempt: u32,
    pub stream_seq: u64,
}

/// How long a cursor may be: its three numbers have fewer digits.
pub const CURSOR_BYTES_MAX: usize = 64;

/// A text that is no cursor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no last_event_id: send back the `id` of the last event that you have seen")]
pub struct InvalidCursor(pub String);

impl Cursor {
    pub const fn after(seq: u64) -> Self {
        Self { seq, attempt: 0, stream_seq: 0 }
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.attempt == 0 && self.stream_seq == 0 {
            return write!(f, "{}", self.seq);
        }
        write!(f, "{}.{}.{}", self.seq, self.attempt, self.stream_seq)
    }
}

impl std::str::FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let invalid = || InvalidCursor(text.chars().take(80).collect());
        // `+5` and the like are numbers to Rust, and none to us.
        if text.len() > CURSOR_BYTES_MAX || !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return Err(invalid());
        }
        let mut parts = text.split('.');
        let seq = parts.next().and_then(|part| part.parse().ok()).ok_or_else(invalid)?;
        let place = match (parts.next(), parts.next(), parts.next()) {
            (None, None, None) => Some((0, 0)),
            (Some(attempt), Some(stream_seq), None) => attempt.parse().ok().zip(stream_seq.parse().ok()),
            _ => None,
        };
        let (attempt, stream_seq) = place.ok_or_else(invalid)?;
        Ok(Self { seq, attempt, stream_seq })
    }
}

/// One event as the runbook surface tells it: `/executions/{session_id}/events` and `/ws/executions/{run}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Envelope {
    /// Send it back as `last_event_id` to go on behind this event.
    pub id: String,
    /// A name of the catalogue.
    pub event: String,
    /// The run's id, as the runbook surface names it.
    pub session_id: RunId,
    /// 1, 2, …; absent where the event is about the run as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_number: Option<u32>,
    /// RFC 3339, UTC, with milliseconds.
    pub timestamp: String,
    /// What the event itself says.
    pub payload: Json,
    pub meta: Meta,
}

/// What helps to read an event.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Meta {
    /// The event's number in its run: 1, 2, … without gaps.
    pub seq: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workflow: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The key of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The name of the worker that the event is about; its session stands in the payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// The profile that the run's policy follows, such as `prod`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_profile: Option<String>,
    /// Who or what caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initiator: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// The name of the API key that caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The W3C trace context that the run was started in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// What tracing systems have added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracestate: Option<String>,
}

/// How the stream itself stands. On SSE the name is the event's, with `stream.` before it; a heartbeat is a comment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Control {
    /// What follows comes after this cursor.
    Subscribed { last_event_id: String },
    /// Nothing happened, and the connection is well.
    Heartbeat { last_event_id: String },
    /// The subscriber is too slow. The stream closes; reconnect from this cursor.
    Resync { last_event_id: String, reason: String },
    /// The server stops. Reconnect from this cursor.
    Closing { last_event_id: String },
    /// The run has ended, and this was all.
    End { last_event_id: String },
    /// The subscription is refused; the code is one of the problem codes.
    Refused { code: String, detail: String },
}

/// The first frame of a WebSocket, where the request itself could not say it. A later one moves the subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Subscribe {
    Subscribe {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_event_id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<String>,
    },
}

/// A page of a tenant's events, for who polls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FeedPage {
    pub events: Vec<EventView>,
    /// Pass it as `last_event_id` for what comes next.
    pub last_event_id: String,
    /// With `order=newest`: pass it as `before` for what came before these; absent where nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<String>,
}

/// In which order events are told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventOrder {
    #[default]
    Oldest,
    Newest,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_survive_the_way_through_text() {
        for text in ["0", "12", "12.1.17"] {
            assert_eq!(text.parse::<Cursor>().unwrap().to_string(), text);
        }
        for text in ["", "x", "-1", "+1", "1.2", "1.2.3.4", "1..2", "99999999999999999999", "1 "] {
            assert!(text.parse::<Cursor>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_envelope_reads_as_002_wrote_it() {
        let envelope = Envelope {
            id: "4".into(),
            event: "execution.step.started".into(),
            session_id: RunId::from_bytes([1; 16]),
            step_number: Some(4),
            timestamp: "2025-11-08T13:05:43.120Z".into(),
            payload: Json::trusted(r#"{"attempt":1}"#),
            meta: Meta { seq: 4, ..Meta::default() },
        };
        let json = serde_json::to_value(&envelope).unwrap();
        for field in ["event", "session_id", "step_number", "timestamp", "payload", "meta"] {
            assert!(!json[field].is_null(), "{field}");
        }
        assert_eq!(serde_json::from_value::<Envelope>(json).unwrap(), envelope);
        let frame = r#"{"type":"subscribe","last_event_id":"7"}"#;
        assert_eq!(
            serde_json::from_str::<Subscribe>(frame).unwrap(),
            Subscribe::Subscribe { last_event_id: Some("7".into()), token: None }
        );
    }
}
