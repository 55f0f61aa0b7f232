//! What people are shown who are asked for their approval.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::json::Json;
use crate::plan::BlastRadius;
use crate::state::{EffectClass, StepKind};
use crate::time::Timestamp;

/// An action as people see it who are asked for their approval. Their vote names the hash of all of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionCard {
    /// The key of the step that proposes it.
    pub step: String,
    pub kind: StepKind,
    pub operation: String,
    /// What it is done with, whole; a long one by its reference and hash.
    pub input: Json,
    pub effect: EffectClass,
    pub blast_radius: BlastRadius,
    pub destructive: bool,
    /// What undoes it; nothing does where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<String>,
    /// It is done only if this holds by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_if: Option<String>,
    /// Why its input was not known when people were asked. Their agreement does not depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// What is agreed to along with it, in order: later steps of the same phase that are known by now, or what a gate guards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion)]
    pub then: Vec<ActionCard>,
}

impl ActionCard {
    /// A gate of the workflow: it does nothing by itself, and lets happen what stands in `then`.
    pub fn is_gate(&self) -> bool {
        self.kind == StepKind::Approval
    }

    /// What would be done, in order.
    pub fn actions(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).filter(|card| !card.is_gate()).chain(&self.then)
    }
}

/// What an action would change, beside what is there: read from the target when people were asked. It is shown to them and is no
/// part of what their vote names, because it may be another by the time that the action happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PresentState {
    /// The key of the step that proposes the action.
    pub step: String,
    pub read_at: Timestamp,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FieldChange>,
    /// Why the present state could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// One field: what it is, and what it would become.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FieldChange {
    pub field: String,
    /// `null` where there is nothing, or where something is only added.
    pub before: Json,
    pub after: Json,
}
