//! An event as the command line tells it, whichever way it came: always the API's own.

use interlock_core::ids::RunId;
use interlock_core::run::event::Event;
use interlock_core::text::visible::visible;
use interlock_core::time::Timestamp;
use interlock_protocol::live::{Cursor, EventView};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

#[derive(Debug, Clone)]
pub struct RunEvent {
    /// The place behind it, to go on from.
    pub cursor: u64,
    pub run_id: RunId,
    pub at: Timestamp,
    /// Its name in the catalogue.
    pub event: String,
    /// The key of its step.
    pub step: Option<String>,
    pub subject: Option<String>,
    /// Who caused it, where that was a person or a key.
    pub person: Option<String>,
    /// Why, in the words of the person who caused it.
    pub reason: Option<String>,
    /// None for an event that this build does not know.
    pub known: Option<Event>,
    /// As it came.
    view: EventView,
}

/// Programs get the API's own event, whole.
impl Serialize for RunEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.view.serialize(serializer)
    }
}

impl RunEvent {
    /// None where the event's own fields make no sense.
    pub fn from_view(view: EventView) -> Option<Self> {
        let cursor: Cursor = view.id.parse().ok()?;
        let mut fields: Map<String, Value> = view.payload.decode().ok()?;
        fields.insert("event".into(), view.kind.clone().into());
        if let Some(position) = view.position {
            fields.insert("step".into(), position.into());
        }
        Some(Self {
            cursor: cursor.seq,
            run_id: view.run_id,
            at: view.at,
            known: serde_json::from_value(Value::Object(fields)).ok(),
            event: view.kind.clone(),
            step: view.step.clone(),
            subject: view.context.subject.clone(),
            person: view.context.who(),
            reason: view.context.reason.clone(),
            view,
        })
    }

    /// ` (by olga: wrong box)`: who caused it and why, as far as the event's own words do not say so already.
    pub fn caused(&self, words: &str) -> String {
        let reason = self.reason.as_deref().filter(|reason| !words.contains(*reason)).map(visible);
        let is_named = |person: &&str| words.split_whitespace().any(|word| word == *person);
        match (self.person.as_deref().filter(|person| !is_named(person)).map(visible), reason) {
            (Some(person), Some(reason)) => format!(" (by {person}: {reason})"),
            (Some(person), None) => format!(" (by {person})"),
            (None, Some(reason)) => format!(" ({reason})"),
            (None, None) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_leads_back_to_its_event() {
        let told = serde_json::json!({
            "id": "7", "type": "execution.step.completed", "run_id": RunId::from_bytes([1; 16]), "seq": 7, "at": 1_500,
            "step": "pay", "position": 2, "payload": { "attempt": 1, "output_bytes": 4 },
            "context": { "initiator": "system" },
        });
        let happened = RunEvent::from_view(serde_json::from_value(told.clone()).unwrap()).unwrap();
        assert_eq!(serde_json::to_value(&happened).unwrap(), told);
        assert_eq!(
            happened.known,
            Some(Event::StepCompleted { step: 2, attempt: 1, output_bytes: 4, session: None, cost: None })
        );
        assert_eq!((happened.cursor, happened.at), (7, Timestamp(1_500)));
    }

    #[test]
    fn the_reason_is_told_once() {
        let told = serde_json::json!({
            "id": "7", "type": "execution.rollback.started", "run_id": RunId::from_bytes([1; 16]), "seq": 7, "at": 1_500,
            "payload": { "steps": [2] }, "context": { "initiator": "operator", "person": "olga", "reason": "wrong box" },
        });
        let happened = RunEvent::from_view(serde_json::from_value(told).unwrap()).unwrap();
        assert_eq!(happened.caused("⟲ rolling back 1 steps"), " (by olga: wrong box)");
        assert_eq!(happened.caused("– skipped: wrong box"), " (by olga)");
        assert_eq!(happened.caused("– olga rejected"), " (wrong box)");
    }
}
