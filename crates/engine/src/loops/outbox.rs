//! The outbox relay: at least once, in order per run and destination, with backoff, and a dead letter at the end.

use futures::future::{BoxFuture, join_all};
use interlock_core::retry::{Backoff, JitterSeed};
use interlock_core::time::Millis;
use interlock_store::{Op, OutboxMessage, OutboxRetry};
use std::time::Duration;

use crate::Engine;
use crate::error::EngineError;
use crate::webhooks::deliver::{self, Tried};

const RELAY_BATCH_MAX: usize = 64;
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Brings a message to where it is going. The message's id stays the same when it is sent again, so that the
/// receiver can drop repeats.
pub trait Deliver: Send + Sync + 'static {
    fn deliver<'a>(&'a self, message: &'a OutboxMessage) -> BoxFuture<'a, Result<(), DeliverError>>;
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeliverError {
    /// Try again later.
    #[error("{0}")]
    Later(String),
    /// It can never be delivered.
    #[error("{0}")]
    Never(String),
}

/// Writes messages to the log: the destination of whoever has configured none.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogDeliver;

impl Deliver for LogDeliver {
    fn deliver<'a>(&'a self, message: &'a OutboxMessage) -> BoxFuture<'a, Result<(), DeliverError>> {
        tracing::info!(id = %message.id, run = %message.run, destination = message.destination, "outbox message");
        Box::pin(std::future::ready(Ok(())))
    }
}

pub(crate) async fn run(engine: Engine) {
    loop {
        match relay(&engine).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "the outbox could not be relayed; it will be tried again"),
        }
        tokio::select! {
            biased;
            () = engine.0.stopping.cancelled() => return,
            () = engine.0.relay.notified() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// Sends what is due; answers whether there may be more.
async fn relay(engine: &Engine) -> Result<bool, EngineError> {
    let due = engine.0.store.due_outbox(engine.now(), RELAY_BATCH_MAX).await?;
    if due.is_empty() || engine.0.stopping.is_cancelled() {
        return Ok(false);
    }
    for result in join_all(due.iter().map(|message| send(engine, message))).await {
        result?;
    }
    Ok(true)
}

async fn send(engine: &Engine, message: &OutboxMessage) -> Result<(), EngineError> {
    if message.destination.starts_with(deliver::DESTINATION) {
        return send_webhook(engine, message).await;
    }
    let delivered = engine.0.options.deliver.deliver(message).await;
    let (tenant, id) = (message.tenant, message.id);
    let op = match delivered {
        Ok(()) => Op::OutboxDelivered { tenant, id, at: engine.now() },
        Err(error) => {
            tracing::warn!(%id, destination = message.destination, attempts = message.attempts + 1, %error, "a message was not delivered");
            let gave_up =
                matches!(error, DeliverError::Never(_)) || message.attempts + 1 >= engine.0.options.outbox_attempts_max;
            let retry = if gave_up {
                OutboxRetry::Dead(engine.now())
            } else {
                let seed = JitterSeed { run: message.run, position: 0, attempt: message.attempts };
                let backoff = Backoff::Exponential { base: Millis(1_000), factor: 2.0, cap: Millis::from_mins(10) };
                // Half of the wait is certain, so that a failing receiver is never hammered.
                let ceiling = backoff.ceiling(message.attempts + 1);
                let jitter = backoff.delay(message.attempts + 1, seed);
                OutboxRetry::At(engine.now() + Millis(ceiling.0 / 2 + jitter.0 / 2))
            };
            Op::OutboxFailed { tenant, id, error: error.to_string(), retry }
        }
    };
    engine.0.store.execute(op).await?;
    Ok(())
}

/// Endpoints have their own waits between tries, and a sender has a message to itself while it tries.
async fn send_webhook(engine: &Engine, message: &OutboxMessage) -> Result<(), EngineError> {
    let (tenant, id) = (message.tenant, message.id);
    let op = match deliver::deliver(engine, message).await? {
        Tried::Held => return Ok(()),
        Tried::Delivered => Op::OutboxDelivered { tenant, id, at: engine.now() },
        Tried::Later { error, at } => Op::OutboxFailed { tenant, id, error, retry: OutboxRetry::At(at) },
        Tried::Never { error } => Op::OutboxFailed { tenant, id, error, retry: OutboxRetry::Dead(engine.now()) },
    };
    engine.0.store.execute(op).await?;
    Ok(())
}
