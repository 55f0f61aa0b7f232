//! Workers' calls over Redis Streams, on the server's side.
//!
//! A worker asks for a [`ticket`] by a request and writes its calls, sealed, to one stream that all servers read as a
//! group. [`consumer`] reads them, believes those with a ticket of this installation and a fresh seal, and hands each
//! to its route, past the guard; the answer goes to the worker's own stream. [`recent`] knows the calls of the last
//! minutes, so that each is worked on once. The database decides about everything: the broker may lose, repeat, reorder
//! or forge what it likes.

mod answer;
mod call;
mod consumer;
mod outage;
mod recent;
mod ticket;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use interlock_broker::{BrokerAddress, Sealer, answer_stream, call_stream, fresh_key, fresh_name, text_of_key};
use interlock_core::ids::TenantId;
use interlock_core::time::Timestamp;
use interlock_protocol::broker::BrokerTicket;

use crate::identity::{LastingCredential, ServerSecret};
use crate::state::AppState;
use consumer::Consumer;
use ticket::{TICKET_LIFETIME, Ticket};

/// The broker of this server.
pub struct Broker {
    address: BrokerAddress,
    installation: String,
    /// Seals tickets.
    sealer: Sealer,
    is_connected: AtomicBool,
}

impl Broker {
    pub fn new(address: BrokerAddress, secret: &ServerSecret) -> Self {
        Self {
            address,
            installation: secret.installation(),
            sealer: Sealer::new(&secret.broker_key()),
            is_connected: AtomicBool::new(false),
        }
    }

    /// Whether this server reads calls now.
    pub fn is_connected(&self) -> bool {
        self.is_connected.load(Ordering::Relaxed)
    }

    /// Leave for a worker to make calls over the broker.
    pub fn admit(&self, tenant: TenantId, credential: LastingCredential, now: Timestamp) -> BrokerTicket {
        let (channel, key) = (fresh_name(), fresh_key());
        let ticket = Ticket { tenant, credential, channel, key: text_of_key(&key), expires_at: now + TICKET_LIFETIME };
        BrokerTicket {
            calls: call_stream(&self.installation),
            answers: answer_stream(&self.installation, &ticket.channel),
            ticket: ticket.seal(&self.sealer),
            channel: ticket.channel,
            key: ticket.key,
            expires_in_ms: TICKET_LIFETIME,
            now,
        }
    }
}

/// Reads and answers calls until the server stops. It can be started again after a panic: what was read and answered
/// before is known still.
pub fn serve(state: AppState, broker: Arc<Broker>) -> impl Fn() -> BoxFuture<'static, ()> {
    let consumer = Consumer::new(state.clone(), broker);
    move || {
        let (tracked, consumer) = (state.hub().tasks().token(), consumer.clone());
        Box::pin(async move {
            let _tracked = tracked;
            consumer.run().await;
        })
    }
}
