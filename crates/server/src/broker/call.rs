//! From an entry of the stream to a call that is believed.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use interlock_broker::message::{CallEntry, CallMessage};
use interlock_broker::{Sealer, StreamEntry, key_of_text, limits};
use interlock_core::ids::TenantId;
use interlock_core::json::Hash;
use interlock_core::time::Timestamp;

use super::recent::CallName;
use super::ticket::Ticket;
use crate::identity::LastingCredential;
use crate::metrics::BrokerResult;

/// A call, and whose it is.
pub struct BelievedCall {
    /// The entry's id.
    pub entry: String,
    pub name: CallName,
    pub tenant: TenantId,
    /// Opens calls of its channel and seals their answers.
    pub sealer: Sealer,
    pub traceparent: String,
    pub path: String,
    pub body: String,
    credential: LastingCredential,
}

/// The longest idempotency key.
const KEY_BYTES_MAX: usize = 64;

impl BelievedCall {
    /// Believes a call only with a ticket of this installation, and with a fresh seal by the ticket's key.
    pub fn read(entry: StreamEntry, tickets: &Sealer, now: Timestamp) -> Result<Self, (String, BrokerResult)> {
        match Self::of(&entry, tickets, now) {
            Ok(call) => Ok(Self { entry: entry.id, ..call }),
            Err(result) => Err((entry.id, result)),
        }
    }

    fn of(entry: &StreamEntry, tickets: &Sealer, now: Timestamp) -> Result<Self, BrokerResult> {
        let unreadable = BrokerResult::Unreadable;
        let entry = CallEntry::of(entry).ok_or(unreadable)?;
        let ticket = Ticket::open(tickets, entry.ticket).ok_or(unreadable)?;
        if ticket.expires_at <= now {
            return Err(BrokerResult::Expired);
        }
        let key = key_of_text(&ticket.key).ok_or(unreadable)?;
        let sealer = Sealer::new(&key);
        let opened = sealer.open(entry.sealed_as(&ticket.channel), entry.sealed).map_err(|_| unreadable)?;
        let message: CallMessage<'_> = serde_json::from_slice(&opened).map_err(|_| unreadable)?;
        if message.idempotency_key.is_empty() || message.idempotency_key.len() > KEY_BYTES_MAX {
            return Err(unreadable);
        }
        if now.0.abs_diff(message.sent_at_ms) > limits::CALL_AGE_MAX.as_millis() as u64 {
            return Err(BrokerResult::Expired);
        }
        Ok(Self {
            entry: String::new(),
            name: CallName {
                channel: ticket.channel.into(),
                key: Arc::from(&*message.idempotency_key),
                digest: Hash::of(format!("{} {}", message.call, message.body.get()).as_bytes()).0,
            },
            tenant: ticket.tenant,
            sealer,
            traceparent: message.traceparent.into_owned(),
            path: message.call.into_owned(),
            body: message.body.get().to_owned(),
            credential: ticket.credential,
        })
    }

    /// What its worker would have sent by `POST`; none where the address is none.
    pub fn request(&self) -> Option<Request> {
        let mut request = Request::post(&self.path)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONTENT_LENGTH, self.body.len())
            .header("traceparent", &self.traceparent)
            .header("x-request-id", &*self.name.key)
            .body(Body::from(self.body.clone()))
            .ok()?;
        self.credential.vouch_for(&mut request).then_some(request)
    }
}
