//! Workers that the policy keeps from a step. A rule may look at the worker that comes to take a step (`input.worker`): what it
//! denies because of that is denied to this worker alone, and the step waits for another one.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Run;
use crate::ids::SessionId;
use crate::json::{Hash, HashHex};
use crate::plan::retry::POLICY_DENIED;
use crate::time::Timestamp;

/// A worker session that the policy has kept from a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedWorker {
    pub session: SessionId,
    /// The worker's own name.
    pub worker: String,
    /// The rules that denied the step to it, with what they say.
    pub why: String,
    /// The bundle of these rules, in hexadecimal. Under another bundle the worker is judged anew.
    #[schema(value_type = String)]
    pub bundle: HashHex,
    pub at: Timestamp,
}

/// The refused workers of one step in one of its iterations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRefusals {
    pub step: u32,
    pub iteration: u32,
    /// The oldest first, all of one bundle.
    pub workers: Vec<RefusedWorker>,
}

impl Run {
    /// The workers that the policy has kept from the step that the run stands at.
    pub fn refused_workers(&self) -> &[RefusedWorker] {
        match self.notes.refused_workers.as_deref() {
            Some(noted) if (noted.step, noted.iteration) == (self.position, self.current().iteration) => &noted.workers,
            _ => &[],
        }
    }

    /// Whether the last worker that had the step was refused right before an effect: then it depends on the worker, and each is judged when
    /// it comes for the step.
    pub fn is_denied_to_workers(&self) -> bool {
        self.current().last_error.as_ref().is_some_and(|error| error.code == POLICY_DENIED)
    }

    /// Whether the rules of this bundle have kept the session from the step that the run stands at.
    pub fn refuses_worker(&self, session: SessionId, bundle: Hash) -> bool {
        self.refused_workers().iter().any(|refused| refused.session == session && refused.bundle.0 == bundle)
    }
}
