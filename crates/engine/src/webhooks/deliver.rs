//! Bringing a message to its endpoint: signed by Standard Webhooks, once at a time, with a log of every try.

use interlock_core::ids::OutboundId;
use interlock_core::planted::{Bug, is_planted};
use interlock_core::text::visible::visible;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::trigger::EndpointState;
use interlock_core::trigger::webhook::standard;
use interlock_outbound::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use interlock_outbound::{Call, Excess, OutboundError, StatusCode};
use interlock_store::{AttemptRow, Changed, DisableOutbound, LogAttempt, OutboundRow, OutboxMessage, TakeMessage};

use super::outbound::{DISABLED, details};
use crate::Engine;
use crate::audit::Actor;
use crate::error::EngineError;
use crate::message::Message;

/// What the destinations of endpoints begin with.
pub(crate) const DESTINATION: &str = "webhook:";
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(15);
/// How much of an answer is kept in the log.
const EXCERPT_BYTES_MAX: usize = 1 << 10;
/// How long one sender has a message to itself: longer than a try can take.
const TAKEN_FOR: Millis = Millis::from_secs(60);
/// The waits between tries; with the first one there are twelve tries over about three days.
const WAITS: [Millis; 11] = [
    Millis::from_secs(5),
    Millis::from_secs(30),
    Millis::from_mins(2),
    Millis::from_mins(10),
    Millis::from_mins(30),
    Millis::from_hours(2),
    Millis::from_hours(5),
    Millis::from_hours(10),
    Millis::from_hours(14),
    Millis::from_hours(20),
    Millis::from_hours(24),
];
/// The longest that a receiver may ask the server to wait (`Retry-After`).
const AWAY_MAX: Millis = Millis::from_hours(24);
/// An endpoint that has taken nothing for so long is disabled.
pub const DISABLED_AFTER: Millis = Millis::from_hours(24 * 5);

/// What became of one try.
pub(crate) enum DeliveryTry {
    Delivered,
    /// Not for this server to send now: another server has it, or the endpoint is disabled.
    Held,
    Later {
        error: String,
        at: Timestamp,
    },
    Never {
        error: String,
    },
}

/// One try.
pub(crate) async fn deliver(engine: &Engine, message: &OutboxMessage) -> Result<DeliveryTry, EngineError> {
    let named = message.destination.strip_prefix(DESTINATION).and_then(|id| id.parse::<OutboundId>().ok());
    let Some(id) = named else { return Ok(DeliveryTry::Never { error: "the destination is no endpoint".into() }) };
    let now = engine.now();
    let (tenant, attempts) = (message.tenant, message.attempts);
    let take = TakeMessage { tenant, id: message.id, attempts, now, until: now + TAKEN_FOR };
    if engine.0.store.write(take).await? == Changed::Gone {
        return Ok(DeliveryTry::Held);
    }
    let Some(endpoint) = engine.0.store.outbound_endpoint(tenant, id).await? else {
        return Ok(DeliveryTry::Never { error: "the endpoint was removed".into() });
    };
    if endpoint.state == EndpointState::Disabled {
        return Ok(DeliveryTry::Held);
    }
    let answered = send(engine, &endpoint, message, now).await?;
    let (status, excerpt, error) = match &answered {
        Ok(ReceiverAnswer { status, excerpt, .. }) => {
            let error = (!status.is_success()).then(|| format!("the endpoint answered {}", status.as_u16()));
            (Some(*status), Some(excerpt.clone()), error)
        }
        Err(error) => (None, None, Some(error.to_string())),
    };
    let away = answered.ok().and_then(|answered| answered.away);
    let attempt = AttemptRow {
        attempt: attempts + 1,
        at: now,
        duration: engine.now().since(now),
        status: status.map(|status| status.as_u16()),
        error: error.clone(),
        excerpt,
    };
    engine.0.store.write(LogAttempt { tenant, endpoint: id, message: message.id, attempt }).await?;
    let Some(error) = error.filter(|_| !is_planted(Bug::RefusalIsDelivery)) else { return Ok(DeliveryTry::Delivered) };
    give_up_on(engine, &endpoint, status, now).await?;
    if status == Some(StatusCode::GONE) {
        return Ok(DeliveryTry::Never { error });
    }
    let Some(wait) = wait_after(message) else { return Ok(DeliveryTry::Never { error }) };
    // Never sooner than the receiver asks for, nor than the retry schedule says.
    let wait = wait.max(away.unwrap_or(Millis(0)));
    Ok(DeliveryTry::Later { error, at: now + wait })
}

/// How long to wait after this try, unless it was the last.
pub(crate) fn wait_after(message: &OutboxMessage) -> Option<Millis> {
    WAITS.get(message.attempts as usize).map(|wait| jittered(*wait, message))
}

/// What the receiver said.
struct ReceiverAnswer {
    status: StatusCode,
    excerpt: String,
    /// How long it asks the server to wait.
    away: Option<Millis>,
}

async fn send(
    engine: &Engine,
    endpoint: &OutboundRow,
    message: &OutboxMessage,
    now: Timestamp,
) -> Result<Result<ReceiverAnswer, OutboundError>, EngineError> {
    let outbound = engine.outbound().ok_or(EngineError::OutboundClosed)?;
    let secrets = engine.webhooks().open_secrets(endpoint.tenant, endpoint.id.0, &endpoint.secrets, now)?;
    let keys: Vec<Vec<u8>> = secrets.iter().filter_map(|secret| standard::key_of_secret(secret)).collect();
    let Message { id, body, .. } =
        message.payload.decode().map_err(|error| EngineError::Store(format!("a message cannot be read: {error}")))?;
    let body = body.as_str().as_bytes().to_vec();
    let signature = standard::sign(&keys, &id, now, &body);
    let mut call = Call { timeout: TIMEOUT, redirects_max: 0, excess: Excess::Cut, ..Call::post(&endpoint.url, body) };
    call.answer_bytes_max = EXCERPT_BYTES_MAX;
    call.headers = headers(&id, &(now.0 / 1_000).to_string(), &signature);
    Ok(outbound.send(call).await.map(|answer| {
        let excerpt = visible(&String::from_utf8_lossy(&answer.body)).into_owned();
        let asked = answer.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        ReceiverAnswer { status: answer.status, excerpt, away: asked.and_then(|text| away(text, now)) }
    }))
}

/// `Retry-After`: seconds, or a date (RFC 9110).
fn away(text: &str, now: Timestamp) -> Option<Millis> {
    let text = text.trim();
    let asked = match text.parse::<u64>() {
        Ok(seconds) => Millis::from_secs(seconds.min(AWAY_MAX.0)),
        Err(_) => Timestamp(jiff::fmt::rfc2822::parse(text).ok()?.timestamp().as_millisecond()).since(now),
    };
    Some(asked.min(AWAY_MAX))
}

fn headers(id: &str, seconds: &str, signature: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/cloudevents+json; charset=utf-8"));
    for (name, value) in [(standard::ID, id), (standard::TIMESTAMP, seconds), (standard::SIGNATURE, signature)] {
        if let Ok(mut value) = HeaderValue::from_str(value) {
            value.set_sensitive(name == standard::SIGNATURE);
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    headers
}

/// Disables an endpoint that says it is gone, or that has failed for days.
async fn give_up_on(
    engine: &Engine,
    endpoint: &OutboundRow,
    status: Option<StatusCode>,
    now: Timestamp,
) -> Result<(), EngineError> {
    let note = if status == Some(StatusCode::GONE) {
        "it answered 410 Gone".to_owned()
    } else if endpoint.failing_since.is_some_and(|since| now.since(since) > DISABLED_AFTER) {
        format!("no message was taken for {} days", DISABLED_AFTER.0 / Millis::from_hours(24).0)
    } else {
        return Ok(());
    };
    tracing::warn!(endpoint = %endpoint.id, note, "a webhook endpoint is disabled");
    let disabled = OutboundRow { state: EndpointState::Disabled, note: Some(note.clone()), ..endpoint.clone() };
    let what = Actor::system().did(DISABLED, endpoint.id, &details(&disabled));
    let disable = DisableOutbound { tenant: endpoint.tenant, endpoint: endpoint.id, note };
    engine.write_noted(endpoint.tenant, disable, what).await?;
    Ok(())
}

/// Half of the wait is certain, so that a failing receiver is never hammered; the rest spreads messages out.
fn jittered(wait: Millis, message: &OutboxMessage) -> Millis {
    let mut seed = message.id.as_bytes().to_vec();
    seed.extend_from_slice(&message.attempts.to_be_bytes());
    let hash = interlock_core::json::Hash::of(&seed).0;
    let drawn = u64::from_be_bytes(*hash.first_chunk().expect("a hash has 32 bytes"));
    Millis(wait.0 / 2 + drawn % (wait.0 / 2 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_says_in_seconds_or_by_a_date_when_to_come_back() {
        let now = Timestamp(784_111_777_000);
        assert_eq!(away("120", now), Some(Millis::from_secs(120)));
        assert_eq!(away(" 0 ", now), Some(Millis(0)));
        assert_eq!(away("Sun, 06 Nov 1994 08:59:37 GMT", now), Some(Millis::from_mins(10)));
        assert_eq!(away("Sun, 06 Nov 1994 08:39:37 GMT", now), Some(Millis(0)), "that was before");
        assert_eq!(away("99999999999999", now), Some(AWAY_MAX), "a receiver cannot keep the relay away for ever");
        assert_eq!(away("soon", now), None);
        assert_eq!(away("-5", now), None);
    }
}
