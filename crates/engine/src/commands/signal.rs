//! Signals: stored first, matched after. The one that commits last, the signal or the wait, sees the other and wakes
//! the step; a crash in between is mended by the sweep. The run's version lets exactly one of signal and timeout win.

use std::collections::HashSet;
use std::ops::ControlFlow;

use interlock_boxed::boxed;
use interlock_core::decide::Command;
use interlock_core::ids::{RunId, SignalId, TenantId};
use interlock_core::json::{Json, canonical_hash};
use interlock_core::limits;
use interlock_core::planted::{Bug, is_planted};
use interlock_core::rejection::Rejection;
use interlock_core::run::change::Context;
use interlock_core::state::Initiator;
use interlock_core::text::visible::visible;
use interlock_store::{
    AttachedWrites, FinishIdempotency, OpenWait, Refusal, SignalIdentity, SignalRow, SignalScope, SignalStored,
    SourceId, StoreSignal, StoredSignal, Write,
};
use serde_json::json;

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
    /// The sender's own id. The same signal under it is dropped as a repeat, another one is refused.
    pub source_id: Option<SourceId>,
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

    /// Whether this very signal, under the name that it has, has come before.
    #[boxed]
    pub async fn came_before(&self, request: &SignalRequest) -> Result<bool, EngineError> {
        check(request)?;
        match identity_of(request)? {
            Some(identity) => Ok(self.0.0.store.has_signal(request.tenant, &identity).await?),
            None => Ok(false),
        }
    }

    /// A signal as it would be stored.
    #[boxed]
    pub async fn draft(&self, request: SignalRequest) -> Result<SignalRow, EngineError> {
        check(&request)?;
        let source_id = identity_of(&request)?;
        let SignalRequest { tenant, signal_type, key, payload, broadcast, run, .. } = request;
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
        let source = row.source_id.as_ref().map(|identity| identity.source.clone());
        if is_planted(Bug::SignalNotMatched) {
            self.match_signals(tenant, &signal_type, &key).await?;
        }
        match self.0.0.store.write_with(how(row), AttachedWrites { answer, notes: Vec::new() }).await? {
            SignalStored::UnknownTenant => return Err(Rejection::UnknownTenant { tenant }.into()),
            SignalStored::Duplicate => return Ok(Signaled::Duplicate),
            SignalStored::NameTaken => return Err(name_taken(source)),
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

/// What the name of a signal that was checked stands for: its type, key, run and payload, and nothing of how or when it was
/// sent. Payloads that differ only in spacing, in the order of keys and in the spelling of numbers are the same.
fn identity_of(request: &SignalRequest) -> Result<Option<SignalIdentity>, Rejection> {
    let SignalRequest { signal_type, key, payload, source_id, broadcast, run, .. } = request;
    let Some(source) = source_id else { return Ok(None) };
    let invalid = |error: serde_json::Error| Rejection::InvalidInput { what: format!("the payload: {error}") };
    let payload = payload.to_value().map_err(invalid)?;
    let says = json!({ "type": signal_type, "key": key, "broadcast": broadcast, "run": run, "payload": payload });
    let fingerprint = canonical_hash(&says).map_err(invalid)?;
    Ok(Some(SignalIdentity { source: source.clone(), fingerprint }))
}

/// Why a signal is refused whose name is another one's. A name that follows from an idempotency key is not the sender's to
/// change: the key is.
fn name_taken(source: Option<SourceId>) -> EngineError {
    match source {
        Some(SourceId { scope: SignalScope::Request, .. }) | None => EngineError::IdempotencyMismatch,
        Some(SourceId { name, .. }) => EngineError::SourceIdTaken { name: visible(&name).chars().take(80).collect() },
    }
}

fn check(request: &SignalRequest) -> Result<(), Rejection> {
    let SignalRequest { signal_type, key, payload, source_id, .. } = request;
    let bounded = |what: &'static str, bytes: usize, max: usize| {
        if bytes > max { Err(Rejection::TooLarge { what, bytes, max }) } else { Ok(()) }
    };
    if signal_type.is_empty() || key.is_empty() {
        return Err(Rejection::InvalidInput { what: "a signal needs a type and a key".into() });
    }
    if source_id.as_ref().is_some_and(|source| source.name.is_empty()) {
        let what = "the signal's `source_id` is empty: leave it out, or give the signal a name of its own";
        return Err(Rejection::InvalidInput { what: what.into() });
    }
    bounded("the signal's type", signal_type.len(), limits::NAME_BYTES_MAX)?;
    bounded("the signal's key", key.len(), limits::KEY_BYTES_MAX)?;
    let named = source_id.as_ref().map_or(0, |source| source.name.len());
    bounded("the signal's source id", named, limits::SOURCE_ID_BYTES_MAX)?;
    bounded("the payload", payload.len(), limits::PAYLOAD_BYTES_MAX)?;
    // Triggers and expressions read it as a value, in which a number would be another one.
    let inexact = |what: String| Rejection::InvalidInput { what: format!("the payload: {what}") };
    payload.to_exact_value().map(drop).map_err(inexact)
}
