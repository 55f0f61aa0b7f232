//! A signal from outside: for the runs that wait for it, and for the workflows that its type starts.

use interlock_boxed::boxed;
use interlock_core::json::{Hash, Json};
use interlock_core::limits;
use interlock_core::run::Trigger;
use interlock_core::run::change::Context;
use interlock_core::state::Initiator;
use interlock_core::trace::TraceContext;
use interlock_store::{AnnounceSignal, DeliveryRef, DeliveryRow, FinishIdempotency};
use serde::{Deserialize, Serialize};

use crate::commands::process::{self, Outcome, SkippedRun, StartedRun};
use crate::commands::signal::{SignalRequest, Signaled};
use crate::error::EngineError;
use crate::parts::Signals;
use crate::triggers::{Kind, TriggerEvent, TriggerMatch};
use crate::{IdempotencyKey, StartWorkflow};

/// The client that the idempotency keys of runs belong to that signals start.
const CLIENT: &str = "signal";

/// What became of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    pub signaled: Signaled,
    /// The workflows that it started.
    pub runs: Vec<StartedRun>,
    /// The workflows that take it and could not be started.
    pub skipped: Vec<SkippedRun>,
}

/// What is kept of a signal until the runs that it starts are made.
#[derive(Serialize, Deserialize)]
struct PendingStarts {
    key: String,
    payload: Json,
    /// What tells its starts from others': the signal's own id. Servers of earlier releases have the sender's name for it here.
    id: String,
    /// What the runs say that they come from, where that is not the id: the name that the sender has given it.
    #[serde(default)]
    name: Option<String>,
    /// Of the request that brought it.
    #[serde(default)]
    trace: TraceContext,
    #[serde(default)]
    by: Option<String>,
    #[serde(default)]
    makers: Vec<String>,
}

/// Where a signal comes from.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The person who sent it, and so has started what it starts.
    pub by: Option<String>,
    /// Who else has held the key that it was sent with.
    pub makers: Vec<String>,
    pub trace: TraceContext,
}

/// The signal that starts runs.
struct SignalStart<'a> {
    /// Their keys follow from it. Its name does not do for that: it is free again after a day, for another signal.
    id: &'a str,
    name: Option<&'a str>,
    origin: &'a Origin,
}

/// A signal as the triggers of workflows see it.
fn occasion(signal_type: &str, key: &str, payload: &Json) -> TriggerEvent {
    let payload = payload.to_value().unwrap_or_default();
    TriggerEvent { kind: Kind::Signal, event: signal_type.to_owned(), payload, key: key.to_owned() }
}

impl Signals {
    /// Stores a signal, wakes the runs that wait for it, and starts the workflows whose `on.signal` takes it. Signal
    /// and starts are promised in one commit: what a crash leaves undone is taken over like a webhook's delivery. A
    /// sender that names its message may send it again: nothing happens twice. Another message under the name is refused.
    #[boxed]
    pub async fn announce(&self, request: SignalRequest, origin: Origin) -> Result<Announced, EngineError> {
        self.announce_answering(request, origin, |_| Ok(None)).await
    }

    /// The same, with the answer to the request that brings the signal. It is kept in the signal's commit where no workflow
    /// takes it; the runs that one starts are not known by then, and a repeat finds them by the signal's own id.
    pub async fn announce_answering(
        &self,
        request: SignalRequest,
        origin: Origin,
        answer: impl FnOnce(Announced) -> Result<Option<FinishIdempotency>, EngineError> + Send,
    ) -> Result<Announced, EngineError> {
        let occasion = occasion(&request.signal_type, &request.key, &request.payload);
        let row = self.draft(request).await?;
        let taken = self.0.taken_by(row.tenant, occasion).await?;
        if taken.is_empty() {
            let alone = |signaled| Announced { signaled, runs: Vec::new(), skipped: Vec::new() };
            let answer = answer(alone(Signaled::Stored(row.id)))?;
            return Ok(alone(self.add(row, answer).await?));
        }
        let at = DeliveryRef::of_signal(row.tenant, row.id);
        let source = row.source_id.as_ref().map(|identity| identity.source.clone());
        let name = source.as_ref().map(|source| source.name.clone());
        let (tenant, mut id) = (row.tenant, row.id.to_string());
        let Origin { by, makers, trace } = origin.clone();
        let kept = PendingStarts {
            key: row.key.clone(),
            payload: row.payload.clone(),
            id: id.clone(),
            name: name.clone(),
            trace,
            by,
            makers,
        };
        let payload = Json::of(&kept).map_err(|error| EngineError::Store(error.to_string()))?;
        let (received_at, event) = (row.received_at, row.signal_type.clone());
        let lock_until = received_at + limits::IDEMPOTENCY_LOCK;
        let delivery = DeliveryRow { at: at.clone(), event, payload, received_at, retry_at: Some(lock_until) };
        let announced = |signal| AnnounceSignal { signal, delivery, lock_until };
        let signaled = self.store_signal(row, announced, None).await?;
        if signaled == Signaled::Duplicate
            && let Some(source) = source
        {
            let store = &self.0.0.store;
            id = match store.signal_named(tenant, &source).await? {
                Some(first) => first.to_string(),
                // Its runs go by its name.
                None if store.was_named_before(tenant, &source.name).await? => source.name,
                // It was swept away just now, and with it what it has started.
                None => return Ok(Announced { signaled, runs: Vec::new(), skipped: Vec::new() }),
            };
        }
        let started =
            self.start_taken(&at, SignalStart { id: &id, name: name.as_deref(), origin: &origin }, taken).await;
        if signaled == Signaled::Duplicate {
            let Outcome { runs, skipped, .. } = started?;
            return Ok(Announced { signaled, runs, skipped });
        }
        // What failed for a while is tried again: the signal itself is here, and need not be sent once more.
        let Outcome { runs, skipped, .. } = self.finish_signal(&at, 1, started).await?.unwrap_or_default();
        Ok(Announced { signaled, runs, skipped })
    }

    /// Starts the runs of a signal whose server died, or could not start them.
    pub(crate) async fn announce_again(&self, row: &DeliveryRow, attempt: u32) -> Result<(), EngineError> {
        let tenant = row.at.tenant;
        let started = match row.payload.decode::<PendingStarts>() {
            Ok(PendingStarts { key, payload, id, name, trace, by, makers }) => {
                let origin = Origin { by, makers, trace };
                let payload = self.0.at_hand(tenant, payload).await?;
                let taken = self.0.taken_by(tenant, occasion(&row.event, &key, &payload)).await;
                match taken {
                    Ok(taken) => {
                        let start = SignalStart { id: &id, name: name.as_deref(), origin: &origin };
                        self.start_taken(&row.at, start, taken).await
                    }
                    Err(error) => Err(error),
                }
            }
            Err(error) => Err(EngineError::Store(error.to_string())),
        };
        self.finish_signal(&row.at, attempt, started).await.map(|_| ())
    }

    /// Records what became of a signal's starts, and hands it on.
    async fn finish_signal(
        &self,
        at: &DeliveryRef,
        attempt: u32,
        started: Result<Outcome, EngineError>,
    ) -> Result<Option<Outcome>, EngineError> {
        process::finish(&self.0, at, attempt, started.as_ref()).await?;
        Ok(started.ok())
    }

    /// One run for each workflow that takes the signal, each under a key of its own.
    async fn start_taken(
        &self,
        at: &DeliveryRef,
        SignalStart { id, name, origin }: SignalStart<'_>,
        taken: Vec<TriggerMatch>,
    ) -> Result<Outcome, EngineError> {
        let mut outcome = Outcome::of(&at.key);
        for TriggerMatch { workflow, inputs } in taken {
            let inputs = match inputs {
                Ok(inputs) => inputs,
                Err(reason) => {
                    tracing::warn!(workflow, reason, "a signal's inputs cannot be made");
                    outcome.skipped.push(SkippedRun::unmade(workflow, reason));
                    continue;
                }
            };
            let whole = format!("signal:{id}#{workflow}");
            let key = if whole.len() <= limits::KEY_BYTES_MAX { whole } else { Hash::of(whole.as_bytes()).to_string() };
            let start = StartWorkflow {
                trigger: Trigger {
                    kind: "signal".into(),
                    reference: Some(name.unwrap_or(id).chars().take(200).collect()),
                },
                idempotency: Some(IdempotencyKey { client: CLIENT.into(), key }),
                trace: origin.trace.clone(),
                started_by: origin.by.clone(),
                by: Context { makers: origin.makers.clone(), ..Context::by(Initiator::Webhook) },
                ..StartWorkflow::new(at.tenant, workflow.clone(), inputs)
            };
            match self.0.start_keyed(start).await {
                Ok(started) => outcome.runs.push(StartedRun { workflow, run_id: started.run }),
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => {
                    tracing::warn!(workflow, %error, "a signal did not start a run");
                    outcome.skipped.push(SkippedRun::refused(workflow, &error));
                }
            }
        }
        Ok(outcome)
    }
}
