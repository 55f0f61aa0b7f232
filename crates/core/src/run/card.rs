//! What people are shown who are asked for their approval.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::json::Json;
use crate::plan::BlastRadius;
use crate::state::{EffectClass, StepKind};

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
    /// What is agreed to along with it, in order: later steps of the same phase that are known by now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion)]
    pub then: Vec<ActionCard>,
}
