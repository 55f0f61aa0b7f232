//! Events of the journal as they are told: in the one shape of all streams, or in the envelope of the runbook surface.

use std::sync::Arc;

use interlock_core::ids::RunId;
use interlock_core::run::told::{EventFact, EventView};
use interlock_core::time::Timestamp;
use interlock_engine::EngineError;
use interlock_protocol::live::{Envelope, Meta};
use interlock_store::{EventRecord, TenantEvent};

use super::Topic;
use super::frame::Frame;
use super::names::Names;

/// Writes the events of one topic, with the names that make them readable.
pub struct Encoder {
    topic: Topic,
    names: Arc<Names>,
}

impl Encoder {
    pub fn new(topic: Topic, names: Arc<Names>) -> Self {
        Self { topic, names }
    }

    /// A run's own events. The cursor is their `seq`.
    pub async fn of_run(&self, run: RunId, events: Vec<EventRecord>) -> Result<Vec<Frame>, EngineError> {
        let told = self.views_of_run(run, events).await?;
        Ok(told.into_iter().map(|event| (event.seq, event)).map(|(cursor, event)| self.frame(cursor, event)).collect())
    }

    /// A run's own events as they are.
    pub async fn views_of_run(&self, run: RunId, events: Vec<EventRecord>) -> Result<Vec<EventView>, EngineError> {
        let mut views = Vec::with_capacity(events.len());
        for EventRecord { seq, at, event, context } in events {
            views.push(self.view(EventFact { cursor: seq, run, seq, at, event, context }).await?);
        }
        Ok(views)
    }

    /// A tenant's events, by the tenant's cursor.
    pub async fn of_tenant(&self, events: Vec<TenantEvent>) -> Result<Vec<Frame>, EngineError> {
        let cursors: Vec<u64> = events.iter().map(|event| event.cursor).collect();
        let told = self.views(events).await?;
        Ok(cursors.into_iter().zip(told).map(|(cursor, event)| self.frame(cursor, event)).collect())
    }

    /// A tenant's events as they are.
    pub async fn views(&self, events: Vec<TenantEvent>) -> Result<Vec<EventView>, EngineError> {
        let mut views = Vec::with_capacity(events.len());
        for TenantEvent { cursor, run, seq, at, event, context } in events {
            views.push(self.view(EventFact { cursor, run, seq, at, event, context }).await?);
        }
        Ok(views)
    }

    fn frame(&self, cursor: u64, event: EventView) -> Frame {
        match self.topic {
            Topic::Execution(..) => {
                let envelope = enveloped(event);
                Frame::new(cursor, &envelope.event, &envelope)
            }
            Topic::Run(..) | Topic::Tenant(_) => Frame::new(cursor, &event.kind, &event),
        }
    }

    async fn view(&self, fact: EventFact) -> Result<EventView, EngineError> {
        let worker = match fact.session() {
            Some(session) => Some(self.names.worker(&session).await?),
            None => None,
        };
        let names = self.names.of(self.topic.tenant(), fact.run, fact.step()).await?;
        Ok(fact.told(&names, worker))
    }
}

/// The event as the runbook surface tells it.
pub fn enveloped(event: EventView) -> Envelope {
    let EventView { id, kind, run_id, seq, at, step, position, payload, context } = event;
    Envelope {
        id,
        event: kind,
        session_id: run_id,
        step_number: position.map(|position| position + 1),
        timestamp: rfc3339(at),
        payload,
        meta: Meta {
            seq,
            workflow: context.workflow.unwrap_or_default(),
            subject: context.subject,
            step,
            worker_id: context.worker,
            environment: context.environment,
            sandbox_profile: context.profile,
            initiator: Some(context.initiator.to_string()),
            person: context.person,
            key: context.key,
            traceparent: context.traceparent,
            tracestate: context.tracestate,
        },
    }
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
