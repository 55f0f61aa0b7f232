//! An event as the command line tells it, whichever way it came: always the API's own envelope.

use interlock_core::ids::RunId;
use interlock_core::run::event::Event;
use interlock_core::time::Timestamp;
use interlock_protocol::live::{Cursor, Envelope};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

#[derive(Debug, Clone)]
pub struct Happened {
    /// The place behind it, to go on from.
    pub cursor: u64,
    pub run_id: RunId,
    pub at: Timestamp,
    /// Its name in the catalogue.
    pub event: String,
    /// The key of its step.
    pub step: Option<String>,
    pub subject: Option<String>,
    /// Who caused it, where that was a person.
    pub person: Option<String>,
    /// None for an event that this build does not know.
    pub known: Option<Event>,
    /// As it came.
    envelope: Envelope,
}

/// Programs get the API's own event, whole.
impl Serialize for Happened {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.envelope.serialize(serializer)
    }
}

impl Happened {
    /// None where the frame's own fields make no sense.
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
            at: Timestamp(at.as_millisecond()),
            known: serde_json::from_value(Value::Object(fields)).ok(),
            event: envelope.event.clone(),
            step: envelope.meta.step.clone(),
            subject: envelope.meta.subject.clone(),
            person: envelope.meta.person.clone(),
            envelope,
        })
    }
}

#[cfg(test)]
mod tests {
    use interlock_core::json::Json;
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
        let happened = Happened::from_envelope(envelope.clone()).unwrap();
        assert_eq!(serde_json::to_value(&happened).unwrap(), serde_json::to_value(&envelope).unwrap());
        assert_eq!(
            happened.known,
            Some(Event::StepCompleted { step: 2, attempt: 1, output_bytes: 4, session: None, cost: None })
        );
        assert_eq!((happened.cursor, happened.at), (7, Timestamp(1_500)));
    }
}
