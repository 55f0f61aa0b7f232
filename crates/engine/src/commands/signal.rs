//! Signals: stored first, matched after. Whoever commits last, the signal or the wait, sees the other and wakes the
//! step; a crash in between is mended by the sweep. The run's version lets exactly one of signal and timeout win.

use std::ops::ControlFlow;

use interlock_core::change::Context;
use interlock_core::decide::Command;
use interlock_core::ids::{SignalId, TenantId};
use interlock_core::json::Json;
use interlock_core::limits;
use interlock_core::planted::{Bug, is_planted};
use interlock_core::rejection::Rejection;
use interlock_core::state::Initiator;
use interlock_store::{Op, OpAnswer, OpenWait, Refusal, SignalRow, StoredSignal};

use crate::Engine;
use crate::error::EngineError;

/// How many waits and signals of one key are looked at at once.
const MATCH_MAX: usize = 64;
/// How often matching looks again after somebody else was faster.
const ROUNDS_MAX: usize = 16;

/// A message from outside.
#[derive(Debug, Clone)]
pub struct SignalRequest {
    pub tenant: TenantId,
    pub signal_type: String,
    pub key: String,
    pub payload: Json,
    /// The sender's own id: the same one again is dropped.
    pub source_id: Option<String>,
}

/// What became of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signaled {
    Stored(SignalId),
    Duplicate,
}

impl Engine {
    /// Stores a signal durably, then wakes whoever waits for it.
    pub async fn signal(&self, request: SignalRequest) -> Result<Signaled, EngineError> {
        let row = self.signal_row(request).await?;
        self.store_signal(row, Op::StoreSignal).await
    }

    /// A signal as it will be stored.
    pub(crate) async fn signal_row(&self, request: SignalRequest) -> Result<SignalRow, EngineError> {
        let SignalRequest { tenant, signal_type, key, payload, source_id } = request;
        check(&signal_type, &key, &payload, source_id.as_deref())?;
        let id = SignalId(self.0.options.ids.fresh());
        let received_at = self.now();
        let payload = self.put_aside(tenant, id, payload).await?;
        let expires_at = received_at + limits::SIGNAL_KEPT;
        Ok(SignalRow { tenant, id, signal_type, key, received_at, expires_at, payload, source_id })
    }

    /// Stores a signal, alone or with what it starts, then wakes whoever waits for it.
    pub(crate) async fn store_signal(
        &self,
        row: SignalRow,
        how: impl FnOnce(SignalRow) -> Op,
    ) -> Result<Signaled, EngineError> {
        let (tenant, id, signal_type, key) = (row.tenant, row.id, row.signal_type.clone(), row.key.clone());
        if is_planted(Bug::SignalNotMatched) {
            self.match_signals(tenant, &signal_type, &key).await?;
        }
        match self.0.store.execute(how(row)).await? {
            OpAnswer::UnknownTenant => return Err(Rejection::UnknownTenant { tenant }.into()),
            OpAnswer::Duplicate => return Ok(Signaled::Duplicate),
            _ => {}
        }
        if !is_planted(Bug::SignalNotMatched) {
            self.match_signals(tenant, &signal_type, &key).await?;
        }
        Ok(Signaled::Stored(id))
    }

    /// After a wait was opened: perhaps its signal is here already.
    pub(crate) fn match_in_background(&self, tenant: TenantId, signal_type: String, key: String) {
        let engine = self.clone();
        self.0.tasks.spawn(async move {
            if let Err(error) = engine.match_signals(tenant, &signal_type, &key).await {
                tracing::warn!(%error, signal_type, "matching failed; the sweep will do it");
            }
        });
    }

    /// Pairs open waits with stored signals, both first come, first served.
    pub(crate) async fn match_signals(
        &self,
        tenant: TenantId,
        signal_type: &str,
        key: &str,
    ) -> Result<(), EngineError> {
        for _ in 0..ROUNDS_MAX {
            let signals = self.0.store.pending_signals(tenant, signal_type, key, MATCH_MAX).await?;
            if signals.is_empty() {
                return Ok(());
            }
            let waits = self.0.store.open_waits(tenant, signal_type, key, MATCH_MAX).await?;
            let pairs = pair(waits, signals);
            if pairs.is_empty() {
                return Ok(());
            }
            for (wait, signal) in pairs {
                self.wake(tenant, &wait, signal).await?;
            }
        }
        Ok(())
    }

    async fn wake(&self, tenant: TenantId, wait: &OpenWait, signal: StoredSignal) -> Result<(), EngineError> {
        let by = Context { initiator: Initiator::Webhook, person: None, metadata: None };
        let position = wait.position;
        let StoredSignal { id, payload, .. } = signal;
        let payload = self.at_hand(tenant, payload).await?;
        let woken = self
            .execute(
                tenant,
                wait.run,
                by,
                |_| Ok(ControlFlow::Continue(Command::Wake { position, signal: id, payload: payload.clone() })),
                |_, _| (),
            )
            .await;
        match woken {
            // Somebody else was faster: a timeout, a cancel, another server's match. The next round looks again.
            Err(EngineError::Rejected(_) | EngineError::Refused(Refusal::SignalConsumed)) => Ok(()),
            other => other,
        }
    }
}

/// First come, first served on both sides; a signal that came before a wait accepts any is passed over.
fn pair(waits: Vec<OpenWait>, mut signals: Vec<StoredSignal>) -> Vec<(OpenWait, StoredSignal)> {
    let mut pairs = Vec::new();
    for wait in waits {
        if let Some(index) = signals.iter().position(|signal| signal.received_at >= wait.accept_from) {
            let signal = signals.remove(index);
            pairs.push((wait, signal));
        }
    }
    pairs
}

fn check(signal_type: &str, key: &str, payload: &Json, source_id: Option<&str>) -> Result<(), Rejection> {
    let bounded = |what: &'static str, bytes: usize, max: usize| {
        if bytes > max { Err(Rejection::TooLarge { what, bytes, max }) } else { Ok(()) }
    };
    if signal_type.is_empty() || key.is_empty() {
        return Err(Rejection::InvalidInput { what: "a signal needs a type and a key".into() });
    }
    bounded("the signal's type", signal_type.len(), limits::NAME_BYTES_MAX)?;
    bounded("the signal's key", key.len(), limits::KEY_BYTES_MAX)?;
    bounded("the signal's source id", source_id.map_or(0, str::len), limits::SOURCE_ID_BYTES_MAX)?;
    bounded("the payload", payload.len(), limits::PAYLOAD_BYTES_MAX)
}
