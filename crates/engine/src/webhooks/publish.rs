//! From a tenant's feed to messages for its endpoints. The feed is complete and in order, and an endpoint's place in it
//! moves in the commit that queues the messages, so no event is lost or queued twice, whichever server does it.

use std::collections::HashMap;

use interlock_core::ids::{OutboxId, RunId};
use interlock_core::json::{Hash, Json};
use interlock_core::planted::{Bug, is_planted};
use interlock_core::run::told::{EventFact, EventNames, EventView};
use interlock_core::time::{Millis, Timestamp};
use interlock_store::{Changed, NewMessage, OutboundRow, PublishMessages, ReadError, TenantEvent};
use serde_json::json;

use crate::Engine;
use crate::error::EngineError;
use crate::message::Message;

/// Events that are read at a time. Also the bound on ids that one instant can tell apart.
const EVENTS_MAX: usize = 256;

/// Queues what an endpoint has not been told yet. Answers whether there may be more.
pub(crate) async fn publish(engine: &Engine, endpoint: &OutboundRow) -> Result<bool, EngineError> {
    let store = &engine.0.store;
    let page = store.tenant_events(endpoint.tenant, endpoint.fed_to, EVENTS_MAX).await?;
    // The endpoint's place also moves past events that retention has removed.
    let to = page.cursor;
    if to == endpoint.fed_to {
        return Ok(false);
    }
    // Ids sort by the instant: a later batch must have a later one, whichever server makes it.
    let at = engine.now().max(endpoint.fed_at + Millis(1));
    let mut runs: HashMap<RunId, EventNames> = HashMap::new();
    let mut messages = Vec::new();
    for event in page.events {
        let name = name_of(&event);
        if !wants(endpoint.events.as_ref(), &name) {
            continue;
        }
        if let std::collections::hash_map::Entry::Vacant(place) = runs.entry(event.run) {
            let run = match store.load_runs(&[(endpoint.tenant, event.run)]).await {
                Ok(mut found) => found.pop(),
                // It costs its own names, and no other run's messages.
                Err(ReadError::Corrupt(_)) => None,
                Err(error) => return Err(error.into()),
            };
            // Of a run that retention has swept nothing but the event is known.
            place.insert(run.as_ref().map(EventNames::of).unwrap_or_default());
        }
        let names = &runs[&event.run];
        let of_workflow =
            |wanted: &Vec<String>| names.workflow().is_some_and(|own| wanted.iter().any(|name| name == own));
        if !endpoint.workflows.as_ref().is_none_or(of_workflow) {
            continue;
        }
        let (run, seq) = (event.run, event.seq);
        let TenantEvent { cursor, at: happened_at, event, context, .. } = event;
        let fact = EventFact { cursor, run, seq, at: happened_at, event, context };
        let worker = match fact.session().and_then(|session| session.parse().ok()) {
            Some(session) => engine.workers().name_of(session).await?,
            None => None,
        };
        let payload = message(fact.told(names, worker))?;
        let place = if is_planted(Bug::LatestEventFirst) { -(seq as i64) } else { seq as i64 };
        let id = message_id(at, messages.len(), &payload);
        messages.push(NewMessage { id, run, payload, place });
    }
    if is_planted(Bug::EventNotPublished) && messages.len() > 1 {
        messages.pop();
    }
    let queued = !messages.is_empty();
    let (tenant, id, from) = (endpoint.tenant, endpoint.id, endpoint.fed_to);
    let published = store.write(PublishMessages { tenant, endpoint: id, from, to, messages, at }).await?;
    if queued && published == Changed::Done {
        engine.0.relay.notify_one();
    }
    Ok(true)
}

fn name_of(event: &TenantEvent) -> String {
    #[derive(serde::Deserialize)]
    struct Named {
        event: String,
    }
    event.event.decode::<Named>().map(|named| named.event).unwrap_or_default()
}

fn wants(patterns: Option<&Vec<String>>, name: &str) -> bool {
    patterns.is_none_or(|patterns| patterns.iter().any(|pattern| fits(pattern, name)))
}

/// `session.*` fits all names of that kind, `*` all.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some("") => true,
        Some(kind) => kind.ends_with('.') && name.starts_with(kind),
        None => pattern == name,
    }
}

/// The event as CloudEvents 1.0 in JSON, whose `data` is the event as the API shows it. The id is the event's own, so
/// receivers can drop repeats.
fn message(event: EventView) -> Result<Json, EngineError> {
    let mut seed = event.run_id.as_bytes().to_vec();
    seed.extend_from_slice(&event.seq.to_be_bytes());
    let id = format!("msg_{}", &Hash::of(&seed).to_string()[..32]);
    let invalid = |error: serde_json::Error| EngineError::Store(format!("an event cannot be read: {error}"));
    let body = json!({
        "specversion": "1.0",
        "id": id,
        "source": format!("/api/v1/runs/{}", event.run_id),
        "type": event.kind,
        "time": interlock_core::trigger::schedule::slot_text(event.at),
        "datacontenttype": "application/json",
        "data": event,
    });
    Json::of(&Message { id, event: event.kind, body: Json::of(&body).map_err(invalid)? }).map_err(invalid)
}

/// An id for the outbox that sorts by instant and place in the batch.
pub(crate) fn message_id(at: Timestamp, index: usize, payload: &Json) -> OutboxId {
    const { assert!(EVENTS_MAX <= 1 << 12) };
    let hash = Hash::of(payload.as_str().as_bytes()).0;
    let mut random = [0u8; 10];
    random.copy_from_slice(&hash[..10]);
    // The first twelve bits behind the instant.
    random[..2].copy_from_slice(&(index as u16).to_be_bytes());
    OutboxId(uuid::Builder::from_unix_timestamp_millis(at.0.max(0) as u64, &random).into_uuid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_take_what_they_say() {
        for (pattern, name, expected) in [
            ("*", "session.created", true),
            ("session.*", "session.created", true),
            ("session.*", "execution.step.started", false),
            ("execution.step.*", "execution.step.started", true),
            ("sess*", "session.created", false),
            ("session.created", "session.created", true),
            ("session.created", "session.failed", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn ids_of_a_batch_keep_its_order() {
        let payload = |number: usize| Json::trusted(number.to_string());
        let ids: Vec<_> = (0..EVENTS_MAX).map(|index| message_id(Timestamp(1_000), index, &payload(index))).collect();
        assert!(ids.is_sorted());
        assert!(message_id(Timestamp(1_001), 0, &payload(0)) > ids[EVENTS_MAX - 1]);
    }
}
