//! The outbox relay: at least once, in order per run and destination, with backoff, and a dead letter at the end.
//!
//! Messages are under way side by side: a few to each destination, and a share for each tenant, so that a receiver that
//! is slow or dead holds up its own messages and no others. Destinations take turns. What waits is read destination by
//! destination, so that a long backlog of one does not hide the others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::time::Duration;

use interlock_core::ids::{OutboxId, TenantId};
use interlock_core::plan::retry::{Backoff, JitterSeed};
use interlock_core::planted::{Bug, is_planted};
use interlock_core::time::Millis;
use interlock_core::work::destination::Destination;
use interlock_core::work::notice::Notice;
use interlock_store::{OutboxDelivered, OutboxDestination, OutboxFailed, OutboxMessage, OutboxRetry};
use tokio::task::{JoinError, JoinSet};

use crate::Engine;
use crate::deliver::DeliverError;
use crate::error::EngineError;
use crate::slack;
use crate::webhooks::deliver::{self, DeliveryTry};

/// Messages that are under way at once, of all tenants, of one tenant, and to one destination.
const SENDS_MAX: usize = 256;
const TENANT_SENDS_MAX: usize = 64;
const DESTINATION_SENDS_MAX: usize = 4;
/// Messages of one destination that are read at a time, and of all destinations that are in memory.
const DESTINATION_QUEUE_MAX: usize = 8;
const QUEUED_MAX: usize = 512;
/// Destinations that are looked at with one read.
const DESTINATIONS_PAGE: usize = 256;
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long a server that stops waits for receivers.
const STOP_GRACE: Duration = Duration::from_secs(3);

pub(crate) async fn run(engine: Engine) {
    let mut relay = Relay::default();
    let mut look = true;
    loop {
        if look && engine.noted("outbox", relay.look(&engine).await) == Some(true) {
            engine.0.relay.notify_one();
        }
        relay.begin(&engine);
        look = tokio::select! {
            biased;
            () = engine.0.stopping.cancelled() => break,
            Some(ended) = relay.under_way.join_next() => {
                let read = relay.ended(&engine, of_task(ended)).await;
                engine.noted("outbox", read);
                false
            }
            () = engine.0.relay.notified() => true,
            () = tokio::time::sleep(LOOK_EVERY) => true,
        };
    }
    // What is under way is brought to its end where that is near, so that it need not be sent again.
    let drained = async { while relay.under_way.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(STOP_GRACE, drained).await;
}

/// A send that panics ends the relay, which is begun anew.
fn of_task(ended: Result<FinishedSend, JoinError>) -> FinishedSend {
    match ended {
        Ok(ended) => ended,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// A destination of one tenant.
type DestinationKey = (TenantId, String);

/// A message that was under way.
struct FinishedSend {
    key: DestinationKey,
    id: OutboxId,
    result: Result<(), EngineError>,
}

#[derive(Default)]
struct Relay {
    /// Tasks, which go on while the relay reads from the store. Futures that only the relay polls would keep their
    /// reading connections meanwhile, and the relay could wait for one of these for ever.
    under_way: JoinSet<FinishedSend>,
    /// What is being sent, so that no second look begins it again.
    sending: BTreeSet<OutboxId>,
    destinations: BTreeMap<DestinationKey, DestinationQueue>,
    of_tenant: BTreeMap<TenantId, usize>,
    queued: usize,
    /// The destination that was looked at last; the next look goes on behind it.
    looked_at: Option<DestinationKey>,
    /// The destination that had its turn last.
    turn: Option<DestinationKey>,
}

#[derive(Default)]
struct DestinationQueue {
    queue: VecDeque<OutboxMessage>,
    sending: usize,
}

impl Relay {
    /// Reads what is due, from where the last look stopped. Answers whether there may be more behind it.
    async fn look(&mut self, engine: &Engine) -> Result<bool, EngineError> {
        if self.queued >= QUEUED_MAX || engine.0.stopping.is_cancelled() {
            return Ok(false);
        }
        let now = engine.now();
        let page = engine.0.store.outbox_destinations(self.looked_at.as_ref(), DESTINATIONS_PAGE).await?;
        let full = page.len() == DESTINATIONS_PAGE;
        let last = page.last().map(|found| (found.tenant, found.destination.clone()));
        // At the end the next look begins anew.
        self.looked_at = last.filter(|_| full);
        let due = page.into_iter().filter(|found| found.next_at <= now);
        let wanted: Vec<DestinationKey> = due
            .map(|OutboxDestination { tenant, destination, .. }| (tenant, destination))
            .filter(|key| self.destinations.get(key).is_none_or(|of| of.queue.is_empty()))
            .collect();
        self.read(engine, wanted).await?;
        Ok(full)
    }

    /// Reads the first messages of destinations.
    async fn read(&mut self, engine: &Engine, wanted: Vec<DestinationKey>) -> Result<(), EngineError> {
        if wanted.is_empty() {
            return Ok(());
        }
        let now = engine.now();
        // Those under way are read again until they are done; they must not hide the ones behind them.
        let limit = DESTINATION_QUEUE_MAX + DESTINATION_SENDS_MAX;
        for message in engine.0.store.due_messages(&wanted, now, limit).await? {
            let aside = engine.0.set_aside.holds(message.tenant, message.id, now);
            if aside || self.sending.contains(&message.id) || self.queued >= QUEUED_MAX {
                continue;
            }
            let of = self.destinations.entry((message.tenant, message.destination.clone())).or_default();
            if of.queue.len() < DESTINATION_QUEUE_MAX && of.queue.iter().all(|other| other.id != message.id) {
                of.queue.push_back(message);
                self.queued += 1;
            }
        }
        Ok(())
    }

    /// Begins what there is room for: one message of each destination in turn.
    fn begin(&mut self, engine: &Engine) {
        let sends_max = if is_planted(Bug::EndpointsHoldEachOtherUp) { 1 } else { SENDS_MAX };
        while self.under_way.len() < sends_max {
            let Some(key) = self.next_turn() else { return };
            let of = self.destinations.get_mut(&key).expect("it has its turn");
            let message = of.queue.pop_front().expect("it has one to send");
            of.sending += 1;
            self.queued -= 1;
            *self.of_tenant.entry(key.0).or_default() += 1;
            self.sending.insert(message.id);
            self.turn = Some(key.clone());
            let engine = engine.clone();
            self.under_way.spawn(async move {
                let id = message.id;
                let sent = engine.one_of_many(message.tenant, id, send(&engine, &message)).await;
                FinishedSend { key, id, result: sent.map(drop) }
            });
        }
    }

    /// The next destination behind the last one that has a message and may send it.
    fn next_turn(&self) -> Option<DestinationKey> {
        let behind = self.turn.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let rest = self.destinations.range::<DestinationKey, _>((behind, Bound::Unbounded));
        let mut all = rest.chain(self.destinations.iter());
        let may = |(key, of): &(&DestinationKey, &DestinationQueue)| {
            let tenant = self.of_tenant.get(&key.0).copied().unwrap_or(0);
            !of.queue.is_empty() && of.sending < DESTINATION_SENDS_MAX && tenant < TENANT_SENDS_MAX
        };
        all.find(may).map(|(key, _)| key.clone())
    }

    /// Makes room again, and reads what comes behind the message at its destination.
    async fn ended(&mut self, engine: &Engine, ended: FinishedSend) -> Result<(), EngineError> {
        let FinishedSend { key, id, result } = ended;
        self.sending.remove(&id);
        if let Some(sends) = self.of_tenant.get_mut(&key.0) {
            *sends -= 1;
            if *sends == 0 {
                self.of_tenant.remove(&key.0);
            }
        }
        let mut empty = false;
        if let Some(of) = self.destinations.get_mut(&key) {
            of.sending -= 1;
            empty = of.queue.is_empty();
            if empty && of.sending == 0 {
                self.destinations.remove(&key);
            }
        }
        // Without the store it would be the same message again at once.
        result?;
        if empty && !engine.0.stopping.is_cancelled() {
            self.read(engine, vec![key]).await?;
        }
        Ok(())
    }
}

async fn send(engine: &Engine, message: &OutboxMessage) -> Result<(), EngineError> {
    if let Some(kind) = Notice::of_destination(&message.destination) {
        return record(engine, message, slack::deliver::deliver(engine, message, kind).await?).await;
    }
    let delivered = match message.destination.parse() {
        Ok(Destination::Webhook(_)) => return record(engine, message, deliver::deliver(engine, message).await?).await,
        Ok(Destination::Signal { run, signal }) => engine.deliver_signal(message, run, signal).await?,
        // What is stored names endpoints by their ids.
        Ok(Destination::WebhookNamed(_)) | Err(_) => engine.0.options.deliver.deliver(message).await,
    };
    let (tenant, id) = (message.tenant, message.id);
    let Err(error) = delivered else {
        engine.0.store.write(OutboxDelivered { tenant, id, at: engine.now() }).await?;
        return Ok(());
    };
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
    engine.0.store.write(OutboxFailed { tenant, id, error: error.to_string(), retry }).await?;
    Ok(())
}

/// What became of a try at a destination that has its own waits between tries. A sender has such a message to itself.
async fn record(engine: &Engine, message: &OutboxMessage, tried: DeliveryTry) -> Result<(), EngineError> {
    let (tenant, id) = (message.tenant, message.id);
    let (error, retry) = match tried {
        DeliveryTry::Held => return Ok(()),
        DeliveryTry::Delivered => {
            engine.0.store.write(OutboxDelivered { tenant, id, at: engine.now() }).await?;
            return Ok(());
        }
        DeliveryTry::Later { error, at } => (error, OutboxRetry::At(at)),
        DeliveryTry::Never { error } => (error, OutboxRetry::Dead(engine.now())),
    };
    engine.0.store.write(OutboxFailed { tenant, id, error, retry }).await?;
    Ok(())
}
