//! A signal from outside: for whoever waits for it, and for the workflows that its type starts.

use interlock_core::change::Context;
use interlock_core::ids::RunId;
use interlock_core::json::Hash;
use interlock_core::limits;
use interlock_core::run::Trigger;
use interlock_core::state::Initiator;

use crate::commands::signal::{SignalRequest, Signaled};
use crate::error::EngineError;
use crate::triggers::{Kind, Occasion, Taken};
use crate::{Engine, IdempotencyKey, StartWorkflow};

/// Whom the keys of runs belong to that signals start.
const CLIENT: &str = "signal";

/// What became of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    pub signaled: Signaled,
    /// The workflows that it started.
    pub runs: Vec<(String, RunId)>,
}

impl Engine {
    /// Stores a signal, wakes whoever waits for it, and starts the workflows whose `on.signal` takes it. A sender that
    /// names its message may send it again after a failure: nothing happens twice.
    pub async fn announce(&self, request: SignalRequest) -> Result<Announced, EngineError> {
        let (tenant, named) = (request.tenant, request.source_id.clone());
        let (signal_type, key, payload) = (request.signal_type.clone(), request.key.clone(), request.payload.clone());
        let signaled = self.signal(request).await?;
        let id = match (&signaled, named) {
            (_, Some(source_id)) => source_id,
            (Signaled::Stored(id), None) => id.to_string(),
            (Signaled::Duplicate, None) => return Ok(Announced { signaled, runs: Vec::new() }),
        };
        let occasion =
            Occasion { kind: Kind::Signal, event: signal_type, payload: payload.to_value().unwrap_or_default(), key };
        let mut runs = Vec::new();
        for Taken { workflow, inputs } in self.taken_by(tenant, occasion).await? {
            let inputs = match inputs {
                Ok(inputs) => inputs,
                Err(error) => {
                    tracing::warn!(workflow, error, "a signal's inputs cannot be made");
                    continue;
                }
            };
            let whole = format!("signal:{id}#{workflow}");
            let key = if whole.len() <= limits::KEY_BYTES_MAX { whole } else { Hash::of(whole.as_bytes()).to_string() };
            let start = StartWorkflow {
                trigger: Trigger { kind: "signal".into(), reference: Some(id.chars().take(200).collect()) },
                idempotency: Some(IdempotencyKey { client: CLIENT.into(), key }),
                by: Context { initiator: Initiator::Webhook, person: None, metadata: None },
                ..StartWorkflow::new(tenant, workflow.clone(), inputs)
            };
            match self.start_keyed(start).await {
                Ok(started) => runs.push((workflow, started.run)),
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => tracing::warn!(workflow, %error, "a signal did not start a run"),
            }
        }
        Ok(Announced { signaled, runs })
    }
}
