//! An event as the command line tells it, whichever way it came.

use interlock_core::ids::RunId;
use interlock_core::json::Json;
use interlock_core::run::event::Event;
use interlock_core::time::Timestamp;
use interlock_protocol::live::{Cursor, Envelope};
use interlock_protocol::runs::EventView;
use serde::Serialize;
use serde_json::{Map, Value};

#[derive(Debug, Clone, Serialize)]
pub struct Happened {
    /// The place behind it, to go on from.
    pub cursor: u64,
    pub run_id: RunId,
    pub seq: u64,
    pub at: Timestamp,
    /// Its name in the catalogue.
    pub event: String,
    /// The key of its step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    pub payload: Json,
    /// None for an event that this build does not know.
    #[serde(skip)]
    pub known: Option<Event>,
}

impl Happened {
    /// From a stream. None where the frame's own fields make no sense.
    pub fn from_envelope(envelope: Envelope) -> Option<Self> {
        let cursor: Cursor = envelope.id.parse().ok()?;
        let at: jiff::Timestamp = envelope.timestamp.parse().ok()?;
        let mut fields: Map<String, Value> = envelope.payload.decode().ok()?;
        fields.insert("event".into(), envelope.event.clone().into());
        if let Some(number) = envelope.step_number {
            fields.insert("step".into(), number.saturating_sub(1).into());
        }
        Some(Self {
            cursor: cursor.seq,
            run_id: envelope.session_id,
            seq: envelope.meta.seq,
            at: Timestamp(at.as_millisecond()),
            known: serde_json::from_value(Value::Object(fields)).ok(),
            event: envelope.event,
            step: envelope.meta.step,
            subject: envelope.meta.subject,
            payload: envelope.payload,
        })
    }

    /// From a poll of one run.
    pub fn from_view(run_id: RunId, view: &EventView) -> Self {
        let known: Option<Event> = view.event.decode().ok();
        let mut fields: Map<String, Value> = view.event.decode().unwrap_or_default();
        let event = fields.remove("event").and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
        fields.remove("step");
        Self {
            cursor: view.seq,
            run_id,
            seq: view.seq,
            at: view.at,
            event,
            step: None,
            subject: None,
            payload: Json::of(&fields).unwrap_or_else(|_| Json::null()),
            known,
        }
    }
}

#[cfg(test)]
mod tests {
    use interlock_protocol::live::Meta;

    use super::*;

    #[test]
    fn an_envelope_leads_back_to_its_event() {
        let envelope = Envelope {
            id: "7".into(),
            event: "execution.step.completed".into(),
            session_id: RunId::from_bytes([1; 16]),
            step_number: Some(3),
            timestamp: "1970-01-01T00:00:01.500Z".into(),
            payload: Json::trusted(r#"{"attempt":1,"output_bytes":4}"#),
            meta: Meta { seq: 7, step: Some("pay".into()), ..Meta::default() },
        };
        let happened = Happened::from_envelope(envelope).unwrap();
        assert_eq!(happened.known, Some(Event::StepCompleted { step: 2, attempt: 1, output_bytes: 4, session: None }));
        assert_eq!((happened.cursor, happened.at), (7, Timestamp(1_500)));
    }
}
