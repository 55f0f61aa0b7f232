//! Events of the journal in the envelope of the live streams.

use std::sync::Arc;

use interlock_core::ids::RunId;
use interlock_core::json::Json;
use interlock_core::run::change::Context;
use interlock_core::run::event::Event;
use interlock_core::time::Timestamp;
use interlock_engine::EngineError;
use interlock_protocol::live::{Cursor, Envelope, Meta};
use interlock_store::{EventRecord, TenantEvent};
use serde_json::{Map, Value};

use super::Topic;
use super::frame::Frame;
use super::names::{Names, RunNames};

/// Writes the events of one topic, with the names that make them readable.
pub struct Encoder {
    topic: Topic,
    names: Arc<Names>,
}

/// An event on its way into an envelope.
struct Fact {
    cursor: u64,
    run: RunId,
    seq: u64,
    at: Timestamp,
    event: Json,
    context: Context,
}

impl Encoder {
    pub fn new(topic: Topic, names: Arc<Names>) -> Self {
        Self { topic, names }
    }

    /// A run's own events. The cursor is their `seq`.
    pub async fn of_run(&self, run: RunId, events: Vec<EventRecord>) -> Result<Vec<Frame>, EngineError> {
        let envelopes = self.envelopes_of_run(run, events).await?;
        Ok(envelopes.iter().map(|envelope| Frame::new(envelope.meta.seq, envelope)).collect())
    }

    /// A run's own events as they are.
    pub async fn envelopes_of_run(&self, run: RunId, events: Vec<EventRecord>) -> Result<Vec<Envelope>, EngineError> {
        let mut envelopes = Vec::with_capacity(events.len());
        for EventRecord { seq, at, event, context } in events {
            let fact = Fact { cursor: seq, run, seq, at, event, context };
            envelopes.push(self.envelope(fact).await?);
        }
        Ok(envelopes)
    }

    /// A tenant's events, by the tenant's cursor.
    pub async fn of_tenant(&self, events: Vec<TenantEvent>) -> Result<Vec<Frame>, EngineError> {
        let mut frames = Vec::with_capacity(events.len());
        for envelope in self.envelopes(events).await? {
            let (cursor, envelope) = envelope;
            frames.push(Frame::new(cursor, &envelope));
        }
        Ok(frames)
    }

    /// A tenant's events as they are, each with its cursor.
    pub async fn envelopes(&self, events: Vec<TenantEvent>) -> Result<Vec<(u64, Envelope)>, EngineError> {
        let mut envelopes = Vec::with_capacity(events.len());
        for TenantEvent { cursor, run, seq, at, event, context } in events {
            let fact = Fact { cursor, run, seq, at, event, context };
            envelopes.push((cursor, self.envelope(fact).await?));
        }
        Ok(envelopes)
    }

    async fn envelope(&self, fact: Fact) -> Result<Envelope, EngineError> {
        let Fact { cursor, run, seq, at, event, context } = fact;
        let mut payload: Map<String, Value> = event.decode().unwrap_or_default();
        let name = match payload.remove("event") {
            Some(Value::String(name)) => name,
            _ => String::new(),
        };
        // An event that this build does not know still has its name and its fields.
        let known: Option<Event> = event.decode().ok();
        let step = known.as_ref().and_then(Event::step);
        payload.remove("step");
        let worker_id = match payload.get("session").and_then(Value::as_str) {
            Some(session) => Some(self.names.worker(session).await?),
            None => None,
        };
        let names = self.names.of(self.topic.tenant(), run, step).await?;
        let RunNames { workflow, subject, profile, trace, .. } = &*names;
        Ok(Envelope {
            id: Cursor::after(cursor).to_string(),
            event: name,
            session_id: run,
            step_number: step.map(|position| position + 1),
            timestamp: rfc3339(at),
            payload: Json::of(&payload).unwrap_or_else(|_| Json::null()),
            meta: Meta {
                seq,
                workflow: workflow.clone(),
                subject: subject.clone(),
                step: step.and_then(|position| names.step(position)),
                worker_id,
                environment: profile.as_deref().map(environment),
                sandbox_profile: profile.clone(),
                initiator: Some(context.initiator.to_string()),
                person: context.person,
                traceparent: trace.parent.clone(),
                tracestate: trace.state.clone(),
            },
        })
    }
}

/// The environment that a profile acts on: `prod` of `prod-critical`.
fn environment(profile: &str) -> String {
    profile.split('-').next().unwrap_or(profile).to_owned()
}

/// `2025-11-08T13:05:43.120Z`.
pub fn rfc3339(at: Timestamp) -> String {
    let instant = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default();
    format!("{instant:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_rfc_3339() {
        assert_eq!(rfc3339(Timestamp(1_762_607_143_120)), "2025-11-08T13:05:43.120Z");
        assert_eq!(rfc3339(Timestamp(0)), "1970-01-01T00:00:00.000Z");
    }
}
