//! Signals: stored first, matched after. The one that commits last, the signal or the wait, sees the other and wakes
//! the step; a crash in between is mended by the sweep. The run's version lets exactly one of signal and timeout win.

use std::collections::HashSet;
use std::ops::ControlFlow;

use interlock_core::decide::Command;
use interlock_core::ids::{RunId, SignalId, TenantId};
use interlock_core::json::Json;
use interlock_core::limits;
use interlock_core::planted::{Bug, is_planted};
use interlock_core::rejection::Rejection;
use interlock_core::run::change::Context;
use interlock_core::state::Initiator;
use interlock_store::{
    AttachedWrites, FinishIdempotency, OpenWait, Refusal, SignalRow, SignalStored, StoreSignal, StoredSignal, Write,
};

use crate::boxed;
use crate::error::EngineError;
use crate::parts::Signals;

/// How many waits and signals of one key are looked at at once.
const MATCH_MAX: usize = 64;
/// How often matching looks again after another command or server was faster.
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
    /// Every wait for it gets it, now and as long as it is kept, each once. Else one wait uses it up.
    pub broadcast: bool,
    /// It is for this run alone, whichever other runs wait for its type and key.
    pub run: Option<RunId>,
}

/// What became of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signaled {
    Stored(SignalId),
    Duplicate,
}

impl Signals {
    /// Stores a signal durably, then wakes the runs that wait for it.
    #[boxed]
    pub async fn signal(&self, request: SignalRequest) -> Result<Signaled, EngineError> {
        let row = self.draft(request).await?;
        self.add(row, None).await
    }

    /// Stores a signal that was drafted, with the answer to the request that brings it.
    #[boxed]
    pub async fn add(&self, row: SignalRow, answer: Option<FinishIdempotency>) -> Result<Signaled, EngineError> {
        self.store_signal(row, StoreSignal, answer).await
    }

    /// A signal as it would be stored.
    #[boxed]
    pub async fn draft(&self, request: SignalRequest) -> Result<SignalRow, EngineError> {
        let SignalRequest { tenant, signal_type, key, payload, source_id, broadcast, run } = request;
        check(&signal_type, &key, &payload, source_id.as_deref())?;
        let id = SignalId(self.0.0.options.ids.fresh());
        let received_at = self.0.now();
        let payload = self.0.put_aside(tenant, id, payload).await?;
        let expires_at = received_at + limits::SIGNAL_KEPT;
        Ok(SignalRow { tenant, id, signal_type, key, received_at, expires_at, payload, source_id, broadcast, run })
    }

    /// Stores a signal, alone or with what it starts, then wakes the runs that wait for it.
    pub(crate) async fn store_signal<W: Write<Answer = SignalStored>>(
        &self,
        row: SignalRow,
        how: impl FnOnce(SignalRow) -> W,
        answer: Option<FinishIdempotency>,
    ) -> Result<Signaled, EngineError> {
        let (tenant, id, signal_type, key) = (row.tenant, row.id, row.signal_type.clone(), row.key.clone());
        if is_planted(Bug::SignalNotMatched) {
            self.match_signals(tenant, &signal_type, &key).await?;
        }
        match self.0.0.store.write_with(how(row), AttachedWrites { answer, notes: Vec::new() }).await? {
            SignalStored::UnknownTenant => return Err(Rejection::UnknownTenant { tenant }.into()),
            SignalStored::Duplicate => return Ok(Signaled::Duplicate),
            SignalStored::Stored => {}
        }
        if !is_planted(Bug::SignalNotMatched) {
            self.match_signals(tenant, &signal_type, &key).await?;
        }
        Ok(Signaled::Stored(id))
    }

    /// After a wait was opened: perhaps its signal is here already.
    pub(crate) fn match_in_background(&self, tenant: TenantId, signal_type: String, key: String) {
        let engine = self.clone();
        self.0.0.tasks.spawn(async move {
            if let Err(error) = engine.match_signals(tenant, &signal_type, &key).await {
                tracing::debug!(%error, signal_type, "matching failed; the sweep will do it");
            }
        });
    }

    /// Pairs open waits with stored signals, both first come, first served. Waits for which nothing has come are passed
    /// over page by page: however many they are, those behind them get theirs.
    pub(crate) async fn match_signals(
        &self,
        tenant: TenantId,
        signal_type: &str,
        key: &str,
    ) -> Result<(), EngineError> {
        let mut after: Option<OpenWait> = None;
        let mut rounds = 0;
        while rounds < ROUNDS_MAX {
            let waits = self.0.0.store.open_waits(tenant, signal_type, key, after.as_ref(), MATCH_MAX).await?;
            let full = waits.len() == MATCH_MAX;
            let last = waits.last().cloned();
            // A signal is not kept for a run that cannot be worked on.
            let now = self.0.now();
            let able = waits.into_iter().filter(|wait| !self.0.0.set_aside.holds(tenant, wait.run, now)).collect();
            let pairs = self.pair(tenant, signal_type, key, able).await?;
            if !pairs.is_empty() {
                rounds += 1;
                for (wait, signal) in pairs {
                    self.0.one_of_many(tenant, wait.run, self.wake(tenant, &wait, signal)).await?;
                }
            } else if full {
                after = last;
            } else {
                return Ok(());
            }
        }
        Ok(())
    }

    /// For each wait the oldest signal that it accepts and that no wait before it has taken.
    async fn pair(
        &self,
        tenant: TenantId,
        signal_type: &str,
        key: &str,
        waits: Vec<OpenWait>,
    ) -> Result<Vec<(OpenWait, StoredSignal)>, EngineError> {
        let Some(from) = waits.iter().map(|wait| wait.accept_from).min() else { return Ok(Vec::new()) };
        let signals = self.0.0.store.pending_signals(tenant, signal_type, key, from, MATCH_MAX).await?;
        let mut taken = HashSet::new();
        let mut pairs = Vec::new();
        for wait in waits {
            let accepted = |signal: &&StoredSignal| {
                signal.received_at >= wait.accept_from
                    && signal.run.is_none_or(|run| run == wait.run)
                    && !taken.contains(&signal.id)
            };
            let mut found = signals.iter().find(accepted).cloned();
            // The run may have heard it; or what it accepts is not on this page. Of its own page, not all is taken: that
            // is as long as there are waits.
            let heard = found.as_ref().is_some_and(|signal| signal.broadcast);
            if heard || found.is_none() && signals.len() == MATCH_MAX {
                let unheard = self.0.0.store.unheard_signals(&wait, (tenant, signal_type, key), MATCH_MAX).await?;
                found = unheard.into_iter().find(|signal| !taken.contains(&signal.id));
            }
            if let Some(signal) = found {
                taken.extend((!signal.broadcast).then_some(signal.id));
                pairs.push((wait, signal));
            }
        }
        Ok(pairs)
    }

    async fn wake(&self, tenant: TenantId, wait: &OpenWait, signal: StoredSignal) -> Result<(), EngineError> {
        let by = Context::by(Initiator::Webhook);
        let position = wait.position;
        let StoredSignal { id, payload, broadcast, .. } = signal;
        let payload = self.0.at_hand(tenant, payload).await?;
        let woken = self
            .0
            .execute(
                tenant,
                wait.run,
                by,
                |_| {
                    let payload = payload.clone();
                    Ok(ControlFlow::Continue(Command::Wake { position, signal: id, payload, broadcast }))
                },
                |_, _| (),
            )
            .await;
        match woken {
            // Another command was faster: a timeout, a cancel, another server's match. The next round looks again.
            Err(EngineError::Rejected(_) | EngineError::Refused(Refusal::SignalConsumed)) => Ok(()),
            other => other,
        }
    }
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
