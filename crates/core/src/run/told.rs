//! An event as all readers get it: by polling, in a stream, in webhooks and on the command line. [`EventFact`] is what
//! the journal says, [`EventNames`] make it readable, [`EventView`] is both together.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Run;
use super::change::{Context, key_in_words};
use super::event::Event;
use crate::ids::RunId;
use crate::json::Json;
use crate::limits::{INPUT_LABELS, OWN_LABELS};
use crate::state::Initiator;
use crate::time::Timestamp;
use crate::trace::TraceContext;

/// One event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventView {
    /// Its place in the stream that it came by. Send it back as `last_event_id` to go on behind this event; treat it as opaque.
    pub id: String,
    /// A name of the catalogue.
    #[serde(rename = "type")]
    pub kind: String,
    pub run_id: RunId,
    /// The event's number in its run: 1, 2, … without gaps.
    pub seq: u64,
    pub at: Timestamp,
    /// The key of the step that it is about; absent where it is about the run as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The position of that step, counted from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// What the event itself says.
    pub payload: Json,
    pub context: EventContext,
}

/// Who caused an event, and what helps to read it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventContext {
    /// Who or what caused it.
    pub initiator: Initiator,
    /// The person who did it, or owns the key that did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// The name of the API key that did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Why, as the person or program that caused it has said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What else was noted about the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// The name of the worker that the event is about; its session stands in the payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_version: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The environment that the run's profile acts on: `prod` of `prod-critical`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The W3C trace context that the run was started in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracestate: Option<String>,
}

impl EventContext {
    /// Who did it, for people to read: the person, or `key deploy-bot`, with the key's owner where it has one.
    pub fn who(&self) -> Option<String> {
        match &self.key {
            Some(key) => Some(key_in_words(key, self.person.as_deref())),
            None => self.person.clone(),
        }
    }
}

/// An event as the journal has it.
#[derive(Debug, Clone)]
pub struct EventFact {
    /// Its place in the stream by which it is told.
    pub cursor: u64,
    pub run: RunId,
    pub seq: u64,
    pub at: Timestamp,
    pub event: Json,
    pub context: Context,
}

/// The names that make a run's events readable. They never change but for rollback steps, which are added, and for labels.
#[derive(Debug, Clone, Default)]
pub struct EventNames {
    workflow: Option<(String, u32)>,
    subject: Option<String>,
    labels: BTreeMap<String, String>,
    profile: Option<String>,
    trace: TraceContext,
    steps: Vec<String>,
}

impl EventNames {
    pub fn of(run: &Run) -> Self {
        let is_free = |name: &str| !name.starts_with(OWN_LABELS) && !name.starts_with(INPUT_LABELS);
        let labels = run.header.labels.iter().filter(|(name, _)| is_free(name));
        Self {
            workflow: Some((run.plan.workflow.clone(), run.plan.version)),
            subject: run.header.subject.clone(),
            labels: labels.map(|(name, value)| (name.clone(), value.clone())).collect(),
            profile: run.plan.rules.profile.clone(),
            trace: TraceContext::of_labels(&run.header.labels),
            steps: run.plan.steps.iter().chain(run.added.iter()).map(|step| step.key.clone()).collect(),
        }
    }

    /// The same, told in another trace than the one that the run was started in.
    #[must_use]
    pub fn in_trace(self, trace: TraceContext) -> Self {
        Self { trace, ..self }
    }

    /// Whether the step of this position is among them.
    pub fn has_step(&self, position: u32) -> bool {
        (position as usize) < self.steps.len()
    }

    pub fn workflow(&self) -> Option<&str> {
        self.workflow.as_ref().map(|(name, _)| name.as_str())
    }
}

impl EventFact {
    /// The position of the step that it is about.
    pub fn step(&self) -> Option<u32> {
        self.event.decode::<Event>().ok().as_ref().and_then(Event::step)
    }

    /// The session of the worker that it is about.
    pub fn session(&self) -> Option<String> {
        let fields: Map<String, Value> = self.event.decode().ok()?;
        fields.get("session").and_then(Value::as_str).map(str::to_owned)
    }

    /// The event with its names, and with the name of its worker.
    pub fn told(self, names: &EventNames, worker: Option<String>) -> EventView {
        let position = self.step();
        let Self { cursor, run, seq, at, event, context } = self;
        // An event that this build does not know still has its name and its fields.
        let mut payload: Map<String, Value> = event.decode().unwrap_or_default();
        let kind = match payload.remove("event") {
            Some(Value::String(name)) => name,
            _ => String::new(),
        };
        payload.remove("step");
        let key = context.key_name();
        let Context { initiator, person, metadata, .. } = context;
        let noted: Option<Map<String, Value>> = metadata.as_ref().and_then(|metadata| metadata.decode().ok());
        let of_run = matches!(kind.as_str(), "session.paused" | "session.canceled").then(|| payload.get("reason"));
        let reason = noted.as_ref().and_then(|noted| noted.get("reason")).or_else(|| of_run.flatten());
        let reason = reason.and_then(Value::as_str).map(str::to_owned);
        let EventNames { workflow, subject, labels, profile, trace, steps } = names;
        EventView {
            id: cursor.to_string(),
            kind,
            run_id: run,
            seq,
            at,
            step: position.and_then(|position| steps.get(position as usize)).cloned(),
            position,
            context: EventContext {
                initiator,
                person,
                key,
                reason,
                // What says nothing beside the reason says nothing new.
                metadata: metadata.filter(|_| noted.is_none_or(|noted| noted.keys().any(|name| name != "reason"))),
                worker,
                workflow: workflow.as_ref().map(|(name, _)| name.clone()),
                workflow_version: workflow.as_ref().map(|(_, version)| *version),
                subject: subject.clone(),
                labels: labels.clone(),
                environment: profile.as_deref().map(|profile| profile.split('-').next().unwrap_or(profile).to_owned()),
                profile: profile.clone(),
                traceparent: trace.parent.clone(),
                tracestate: trace.state.clone(),
            },
            payload: Json::of(&payload).unwrap_or_else(|_| Json::null()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::KeyId;

    fn fact(event: &str, context: Context) -> EventFact {
        let run = RunId::from_bytes([1; 16]);
        EventFact { cursor: 12, run, seq: 7, at: Timestamp(5), event: Json::trusted(event), context }
    }

    #[test]
    fn the_shape_is_one() {
        let context =
            Context { metadata: Some(Json::trusted(r#"{"reason":"wrong box"}"#)), ..Context::operator("olga") };
        let names = EventNames { steps: vec!["pay".into()], subject: Some("T-1".into()), ..EventNames::default() };
        let event = r#"{"event":"execution.step.started","step":0,"attempt":1,"session":"wks_1"}"#;
        let fact = fact(event, context);
        assert_eq!(fact.session().as_deref(), Some("wks_1"));
        let told = serde_json::to_value(fact.told(&names, Some("box".into()))).unwrap();
        let expected = serde_json::json!({
            "id": "12", "type": "execution.step.started", "run_id": RunId::from_bytes([1; 16]), "seq": 7, "at": 5,
            "payload": { "attempt": 1, "session": "wks_1" },
            "context": { "initiator": "operator", "person": "olga", "reason": "wrong box", "worker": "box", "subject": "T-1" },
        });
        // The session here is none, so that the event is not known to this build: it has no step.
        assert_eq!(told, expected);
    }

    #[test]
    fn a_key_is_told_by_its_name_and_its_owner() {
        let key = KeyId::from_bytes([7; 16]);
        let told = |by: &Context| {
            let event = fact(r#"{"event":"session.resumed"}"#, by.clone()).told(&EventNames::default(), None);
            assert_eq!(event.context.who(), by.who());
            (event.context.key, event.context.person, by.who())
        };
        let text = |text: &str| Some(text.to_owned());
        let of_nobody = Context::by(Initiator::Operator).with_key(key, "deploy-bot");
        assert_eq!(told(&of_nobody), (text("deploy-bot"), None, text("key deploy-bot")));
        let owned = Context::operator("ada").with_key(key, "deploy-bot");
        assert_eq!(told(&owned), (text("deploy-bot"), text("ada"), text("key deploy-bot of ada")));
        assert_eq!(told(&Context::operator("ada")), (None, text("ada"), text("ada")));
    }

    #[test]
    fn a_reason_is_found_where_it_stands() {
        let paused = fact(r#"{"event":"session.paused","reason":"night"}"#, Context::SYSTEM);
        assert_eq!(paused.told(&EventNames::default(), None).context.reason.as_deref(), Some("night"));
        let failed = fact(r#"{"event":"session.failed","state":"failed","reason":"step_failed"}"#, Context::SYSTEM);
        assert_eq!(failed.told(&EventNames::default(), None).context.reason, None, "that is no person's word");
        let step = fact(r#"{"event":"execution.step.skipped","step":1,"why":"x"}"#, Context::SYSTEM);
        let names = EventNames { steps: vec!["a".into(), "b".into()], ..EventNames::default() };
        let told = step.told(&names, None);
        assert_eq!((told.step.as_deref(), told.position), (Some("b"), Some(1)));
    }
}
