//! A decision on one action of a run, as it is kept.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::DecisionId;
use crate::json::{HashHex, Json};

/// What a decision rests on: enough to make it again and see whether it is the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Basis {
    /// The rules that were asked.
    pub bundle: HashHex,
    /// What evaluated them.
    pub evaluator: String,
    /// The document that they were asked about.
    pub input: Json,
    /// All that they answered; nothing where they could not.
    pub answer: Option<Json>,
    /// What rules that are tried beside them would have answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow: Option<Json>,
    /// The tier of what the decision lets happen; empty where there was no decision.
    pub tier: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DecisionRecord {
    pub id: DecisionId,
    pub position: u32,
    pub iteration: u32,
    pub attempt: u32,
    pub operation: String,
    /// `allow`, `deny`, `needs_approval` or `undecided`.
    pub verdict: String,
    /// The digest of the action that it is about.
    pub action: HashHex,
    pub basis: Arc<Basis>,
}
