//! Starting the runs of a delivery: one for each workflow whose trigger takes it, each under a key of its own, so that
//! a server that does it again after a crash starts none twice.

use std::collections::BTreeMap;

use interlock_core::ids::RunId;
use interlock_core::json::{Hash, Json};
use interlock_core::limits;
use interlock_core::run::Trigger;
use interlock_core::run::change::Context;
use interlock_core::state::{IdempotencyState, Initiator};
use interlock_core::time::Millis;
use interlock_core::trigger::Source;
use interlock_core::trigger::webhook::github;
use interlock_store::{DeliveryRef, DeliveryRow, FinishDelivery, InboundRow};
use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::missed::MissedTrigger;
use crate::triggers::{Kind, TriggerEvent, TriggerMatch};
use crate::{Engine, IdempotencyKey, StartWorkflow};

/// What stands between a delivery's key and the workflow, in the key of a run that it starts.
pub(crate) const RUN_MARK: char = '#';
/// How long a delivery that failed rests before it is tried again.
const RETRY_AFTER: Millis = Millis::from_secs(30);

/// What became of a delivery; also the answer that its repeats get.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub delivery: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate_of: Option<String>,
    #[serde(default)]
    pub runs: Vec<StartedRun>,
    #[serde(default)]
    pub skipped: Vec<SkippedRun>,
    /// Where it started nothing: the triggers that it missed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<MissedTrigger>,
}

impl Outcome {
    pub(crate) fn of(key: &str) -> Self {
        Self { delivery: key.to_owned(), ..Self::default() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedRun {
    pub workflow: String,
    pub run_id: RunId,
}

/// A workflow that takes the delivery, and no run of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedRun {
    pub workflow: String,
    pub code: String,
    pub reason: String,
    /// The run that stands in the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
}

impl SkippedRun {
    /// Its inputs cannot be made from the event.
    pub(crate) fn unmade(workflow: String, reason: String) -> Self {
        Self { workflow, code: "TRIGGER_INVALID".into(), reason, run_id: None }
    }

    /// Its start was refused, perhaps for the sake of another run.
    pub(crate) fn refused(workflow: String, error: &EngineError) -> Self {
        let run_id = match error {
            EngineError::SubjectBusy { run, .. } => Some(*run),
            _ => None,
        };
        Self { workflow, code: error.code().to_owned(), reason: error.to_string(), run_id }
    }
}

pub(crate) async fn process(
    engine: &Engine,
    endpoint: &InboundRow,
    delivery: &DeliveryRow,
    attempt: u32,
) -> Result<Outcome, EngineError> {
    let outcome = start_all(engine, endpoint, delivery).await;
    finish(engine, &delivery.at, attempt, outcome.as_ref()).await?;
    outcome
}

/// Records what became of it. A server that has taken it over meanwhile records it instead.
pub(crate) async fn finish(
    engine: &Engine,
    at: &DeliveryRef,
    attempt: u32,
    outcome: Result<&Outcome, &EngineError>,
) -> Result<(), EngineError> {
    let now = engine.now();
    let finished = match outcome {
        Ok(outcome) => FinishDelivery {
            at: at.clone(),
            attempt,
            state: IdempotencyState::Completed,
            response: Json::of(outcome).ok(),
            error: None,
            now,
            expires_at: now + limits::IDEMPOTENCY_COMPLETED_TTL,
            retry_at: None,
        },
        Err(error) => {
            tracing::warn!(%error, delivery = at.key, attempt, "a delivery could not be processed");
            FinishDelivery {
                at: at.clone(),
                attempt,
                state: IdempotencyState::Failed,
                response: None,
                error: Some(error.to_string()),
                now,
                expires_at: now + limits::IDEMPOTENCY_FAILED_TTL,
                retry_at: (attempt < limits::IDEMPOTENCY_ATTEMPTS_MAX).then_some(now + RETRY_AFTER),
            }
        }
    };
    engine.0.store.write(finished).await?;
    Ok(())
}

/// Trouble that passes fails the whole delivery, to be tried again; a workflow that refuses is recorded and left out.
async fn start_all(engine: &Engine, endpoint: &InboundRow, delivery: &DeliveryRow) -> Result<Outcome, EngineError> {
    let occasion = || TriggerEvent {
        kind: Kind::Webhook { source: endpoint.source, endpoint: endpoint.name.clone() },
        event: delivery.event.clone(),
        payload: delivery.payload.to_value().unwrap_or_default(),
        key: delivery.at.key.clone(),
    };
    let labels = match endpoint.source {
        Source::GitHub => github::labels(&delivery.payload.to_value().unwrap_or_default()),
        _ => BTreeMap::new(),
    };
    let mut outcome = Outcome::of(&delivery.at.key);
    for TriggerMatch { workflow, inputs } in engine.taken_by(delivery.at.tenant, occasion()).await? {
        let inputs = match inputs {
            Ok(inputs) => inputs,
            Err(reason) => {
                outcome.skipped.push(SkippedRun::unmade(workflow, reason));
                continue;
            }
        };
        let start = StartWorkflow {
            trigger: Trigger { kind: endpoint.source.to_string(), reference: Some(delivery.at.key.clone()) },
            idempotency: Some(run_key(&delivery.at, &workflow)),
            started_by: Some(format!("webhook:{}", endpoint.name)),
            labels: labels.clone(),
            by: Context { makers: endpoint.makers(delivery.received_at), ..Context::by(Initiator::Webhook) },
            ..StartWorkflow::new(delivery.at.tenant, workflow.clone(), inputs)
        };
        match engine.start_keyed(start).await {
            Ok(started) => outcome.runs.push(StartedRun { workflow, run_id: started.run }),
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => outcome.skipped.push(SkippedRun::refused(workflow, &error)),
        }
    }
    if outcome.runs.is_empty() && outcome.skipped.is_empty() {
        outcome.missed = engine.missed_by(delivery.at.tenant, occasion()).await?;
    }
    Ok(outcome)
}

/// The key of one workflow's run of a delivery.
fn run_key(at: &DeliveryRef, workflow: &str) -> IdempotencyKey {
    let whole = format!("{}{RUN_MARK}{workflow}", at.key);
    let key = if whole.len() <= limits::KEY_BYTES_MAX { whole } else { Hash::of(whole.as_bytes()).to_string() };
    IdempotencyKey { client: at.client(), key }
}
