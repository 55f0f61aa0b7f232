//! A worker's calls over a broker ([`interlock_broker`]). Leave to use it is asked for by a request, and again before it ends.
//!
//! Nothing that comes from the broker is believed unless it is sealed for a call that waits. A call that is not answered in a
//! moment is written again under the same idempotency key; one that is not answered in time, and a broker that cannot be
//! reached, have the calls of the next minute go the other way.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use interlock_broker::message::{AnswerEntry, AnswerMessage, CallEntry, CallKind, CallMessage};
use interlock_broker::{
    AnswerStream, BrokerAddress, BrokerError, Connection, SealedAs, Sealer, StreamEntry, key_of_text,
};
use interlock_protocol::agent::path;
use interlock_protocol::broker::BrokerTicket;
use interlock_protocol::call::CallContext;
use interlock_protocol::transport::TransportError;
use reqwest::StatusCode;
use serde_json::value::RawValue;
use tokio::sync::{Mutex as AsyncMutex, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use crate::{limits, trace};

/// The broker of a transport: in use, to be asked for, or left alone for a while.
pub(crate) struct Broker {
    address: BrokerAddress,
    now: Mutex<BrokerState>,
    /// Held by the caller that asks for it; the others wait for the outcome.
    opening: AsyncMutex<()>,
}

#[derive(Default, Clone)]
enum BrokerState {
    #[default]
    Closed,
    Open(Arc<BrokerLine>),
    Declined {
        until: Instant,
    },
}

impl BrokerState {
    fn line(self) -> Option<Arc<BrokerLine>> {
        if let Self::Open(line) = self { Some(line) } else { None }
    }
}

/// A call over the broker that has no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// It was not written; another way may be better.
    NotWritten,
    /// What became of it is unknown.
    Lost,
}

impl Broker {
    pub fn new(address: BrokerAddress) -> Self {
        Self { address, now: Mutex::default(), opening: AsyncMutex::default() }
    }

    /// The line to make calls over; `None` where they go another way. `ask` asks the server for leave.
    pub async fn open<Asking>(&self, ask: impl Fn() -> Asking) -> Option<Arc<BrokerLine>>
    where
        Asking: Future<Output = Result<BrokerTicket, TransportError>>,
    {
        if let Some(known) = self.known(Instant::now()) {
            return known.line();
        }
        let _opening = self.opening.lock().await;
        if let Some(known) = self.known(Instant::now()) {
            return known.line();
        }
        let before = self.state().clone();
        let opened = async {
            let asked_at = Instant::now();
            let ticket = ask().await.map_err(|error| error.to_string())?;
            BrokerLine::open(&self.address, ticket, asked_at).await.map_err(|error| error.to_string())
        };
        let (state, line) = match (opened.await, before) {
            (Ok(line), _) => {
                let line = Arc::new(line);
                (BrokerState::Open(Arc::clone(&line)), Some(line))
            }
            // It was only to be renewed.
            (Err(_), BrokerState::Open(line)) if line.is_usable(Instant::now()) => return Some(line),
            (Err(error), _) => {
                info!(broker = %self.address, error, "no calls over the broker for a while: they go directly to the server");
                (BrokerState::Declined { until: Instant::now() + limits::CHANNEL_PAUSE }, None)
            }
        };
        *self.state() = state;
        line
    }

    /// The line is of no use: calls go another way for a while.
    pub fn decline(&self, line: &Arc<BrokerLine>, why: &str) {
        let mut state = self.state();
        if matches!(&*state, BrokerState::Open(open) if Arc::ptr_eq(open, line)) {
            warn!(broker = %self.address, why, "calls go directly to the server for a while");
            *state = BrokerState::Declined { until: Instant::now() + limits::CHANNEL_PAUSE };
        }
    }

    /// Calls that are under way end as they began; the next one asks for leave.
    pub fn begin_anew(&self) {
        *self.state() = BrokerState::Closed;
    }

    /// How it stands, where nothing has to be asked for first.
    fn known(&self, now: Instant) -> Option<BrokerState> {
        let state = self.state().clone();
        let stands = match &state {
            BrokerState::Closed => false,
            BrokerState::Open(line) => line.is_fresh(now),
            BrokerState::Declined { until } => now < *until,
        };
        stands.then_some(state)
    }

    fn state(&self) -> MutexGuard<'_, BrokerState> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The status and the body of an answer.
type BrokerAnswer = (StatusCode, Vec<u8>);

/// The calls that wait for their answers, by their idempotency keys; none once the broker is lost.
type PendingAnswers = Arc<Mutex<Option<HashMap<String, oneshot::Sender<BrokerAnswer>>>>>;

fn pending(of: &PendingAnswers) -> MutexGuard<'_, Option<HashMap<String, oneshot::Sender<BrokerAnswer>>>> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Leave to use the broker, and the connection that it is used by.
pub(crate) struct BrokerLine {
    ticket: BrokerTicket,
    sealer: Arc<Sealer>,
    writing: Connection,
    pending: PendingAnswers,
    /// When the server's clock was asked: before its answer came, so a call is never older than it says.
    asked_at: Instant,
    reading: AbortHandle,
}

impl Drop for BrokerLine {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

impl BrokerLine {
    async fn open(address: &BrokerAddress, ticket: BrokerTicket, asked_at: Instant) -> Result<Self, BrokerError> {
        let key =
            key_of_text(&ticket.key).ok_or_else(|| BrokerError::Refused("the server's key is none".to_owned()))?;
        let (writing, reading) = (Connection::open(address).await?, Connection::open(address).await?);
        let sealer = Arc::new(Sealer::new(&key));
        let open: PendingAnswers = Arc::new(Mutex::new(Some(HashMap::new())));
        let reader = AnswerReader {
            connection: reading,
            stream: AnswerStream { name: ticket.answers.clone() },
            channel: ticket.channel.clone(),
            sealer: Arc::clone(&sealer),
            pending: Arc::clone(&open),
        };
        let reading = tokio::spawn(reader.run()).abort_handle();
        Ok(Self { ticket, sealer, writing, pending: open, asked_at, reading })
    }

    /// Whether calls can be made with it.
    fn is_usable(&self, now: Instant) -> bool {
        now < self.asked_at + self.ticket.expires_in_ms.as_duration() && pending(&self.pending).is_some()
    }

    /// Whether it need not be asked for anew soon.
    fn is_fresh(&self, now: Instant) -> bool {
        now < self.asked_at + self.ticket.expires_in_ms.as_duration() * 2 / 3 && pending(&self.pending).is_some()
    }

    /// Makes a call, and writes it again while there is no answer. `waits` is how long the server may wait with it.
    pub async fn call(
        &self,
        call: &str,
        body: &RawValue,
        (waits, span): (Duration, Duration),
    ) -> Result<BrokerAnswer, Unanswered> {
        let CallContext { idempotency_key: key, traceparent } = trace::fresh_call();
        let (answered, mut answer) = oneshot::channel();
        pending(&self.pending).as_mut().ok_or(Unanswered::NotWritten)?.insert(key.clone(), answered);
        let _abandoned = AbandonedCall { pending: &self.pending, key: &key };
        let calling = async {
            let mut pause = limits::BROKER_PATIENCE + waits;
            loop {
                let sent_at = Instant::now().duration_since(self.asked_at);
                let message = CallMessage {
                    idempotency_key: Cow::Borrowed(&key),
                    sent_at_ms: self.ticket.now.0 + sent_at.as_millis() as i64,
                    traceparent: Cow::Borrowed(&traceparent),
                    call: Cow::Borrowed(call),
                    body,
                };
                let plain = serde_json::to_vec(&message).map_err(|_| Unanswered::NotWritten)?;
                let kind = kind_of(call);
                let sealed_as = SealedAs::Call { channel: &self.ticket.channel, kind: kind.as_str() };
                let sealed = self.sealer.seal(sealed_as, &plain);
                let entry = CallEntry { kind, ticket: self.ticket.ticket.as_bytes(), sealed: &sealed };
                if let Err(error) = self.writing.add_call(&self.ticket.calls, &entry).await {
                    info!(%error, "a call could not be written to the broker");
                    return Err(Unanswered::NotWritten);
                }
                match timeout(pause, &mut answer).await {
                    Ok(answer) => return answer.map_err(|_| Unanswered::Lost),
                    Err(_) => pause = (pause * 2).min(limits::BROKER_PATIENCE_MAX + waits),
                }
            }
        };
        timeout(span, calling).await.unwrap_or(Err(Unanswered::Lost))
    }
}

fn kind_of(call: &str) -> CallKind {
    let ends_as = |pattern: &str| pattern.rsplit('/').next() == call.rsplit('/').next();
    if ends_as(path::COMPLETE) || ends_as(path::OUTCOMES) { CallKind::Result } else { CallKind::Call }
}

/// Removes a call whose caller does not wait any more.
struct AbandonedCall<'a> {
    pending: &'a PendingAnswers,
    key: &'a str,
}

impl Drop for AbandonedCall<'_> {
    fn drop(&mut self) {
        if let Some(open) = pending(self.pending).as_mut() {
            open.remove(self.key);
        }
    }
}

/// Reads a worker's answers.
struct AnswerReader {
    connection: Connection,
    stream: AnswerStream,
    channel: String,
    sealer: Arc<Sealer>,
    pending: PendingAnswers,
}

impl AnswerReader {
    /// Until the broker is lost.
    async fn run(self) {
        let mut last = "0-0".to_owned();
        loop {
            match self.stream.read(&self.connection, &last).await {
                Ok(entries) => {
                    for entry in entries {
                        self.take(&entry);
                        last = entry.id;
                    }
                }
                // It was deleted, and is there again with the next answer.
                Err(BrokerError::StreamLost | BrokerError::Refused(_)) => sleep(limits::BROKER_PAUSE).await,
                Err(error) => {
                    info!(%error, "answers over the broker end");
                    if matches!(error, BrokerError::TooLong) {
                        self.forget_all().await;
                    }
                    *pending(&self.pending) = None;
                    return;
                }
            }
        }
    }

    /// Hands an answer to the call that waits for it. What is sealed for none is nothing.
    fn take(&self, entry: &StreamEntry) {
        let Some(entry) = AnswerEntry::of(entry) else { return };
        let Ok(opened) = self.sealer.open(entry.sealed_as(&self.channel), entry.sealed) else { return };
        let Ok(message) = serde_json::from_slice::<AnswerMessage<'_>>(&opened) else { return };
        let Ok(status) = StatusCode::from_u16(message.status) else { return };
        if message.idempotency_key != entry.call {
            return;
        }
        let Some(waiting) = pending(&self.pending).as_mut().and_then(|open| open.remove(entry.call)) else { return };
        // The caller may have given up at this very moment.
        let _ = waiting.send((status, message.body.map_or_else(Vec::new, |body| body.get().as_bytes().to_vec())));
    }

    /// The stream is flooded: its messages are not worth reading.
    async fn forget_all(&self) {
        if let Err(error) = self.stream.clear(&self.connection).await {
            info!(%error, "the stream of answers could not be cleared");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_told_from_other_calls() {
        assert_eq!(kind_of("/api/v1/agent/ses_1/complete-step"), CallKind::Result);
        assert_eq!(kind_of("/api/v1/agent/ses_1/outcomes"), CallKind::Result);
        for call in ["/api/v1/agent/poll", "/api/v1/agent/ses_1/effects", ""] {
            assert_eq!(kind_of(call), CallKind::Call, "{call}");
        }
    }
}
