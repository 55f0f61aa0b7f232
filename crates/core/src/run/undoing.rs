//! What a rollback that somebody orders would undo: for people who are about to order one.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Run;
use crate::json::Json;
use crate::plan::{RollbackCondition, StepSpec, Undo};
use crate::state::{EffectClass, StepState};

/// What a rollback would do, in order, and what it would leave as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RollbackPreview {
    /// In this order: the newest first.
    pub undone: Vec<UndoneStep>,
    /// Steps that may have changed something and would not be undone.
    pub left: Vec<LeftStep>,
    /// Who would be asked first.
    pub asks: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UndoneStep {
    pub step: String,
    pub position: u32,
    /// As it stands now. What failed or is in doubt may have done nothing: whoever undoes it finds out.
    pub state: StepState,
    /// The task, command or operation that undoes it.
    pub by: String,
    /// What that is given beside what the step was given and said; a template, rendered when it happens. Without it a connector
    /// does the exact inverse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<Json>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LeftStep {
    pub step: String,
    pub position: u32,
    pub state: StepState,
    pub why: String,
}

impl Run {
    /// What a rollback from a position on would come to, as the run stands.
    pub fn rollback_preview(&self, from: u32) -> RollbackPreview {
        let (mut undone, mut left) = (Vec::new(), Vec::new());
        for position in (from..self.forward_len() as u32).rev() {
            let (spec, now) = (self.spec(position), &self.steps[position as usize]);
            let (step, state) = (spec.key.clone(), now.state());
            if now.is_undoable(spec, RollbackCondition::Manual) {
                let Some(rollback) = &spec.rollback else { continue };
                let by = match &rollback.by {
                    Undo::Argv(argv) => argv.join(" "),
                    by => by.handler().to_owned(),
                };
                undone.push(UndoneStep { step, position, state, by, with: rollback.with.clone() });
            } else if let Some(why) = why_left(spec, state, now.attempt) {
                left.push(LeftStep { step, position, state, why: why.to_owned() });
            }
        }
        let asks = "nobody: what was done may always be undone as the workflow says; the policy may still forbid it";
        RollbackPreview { undone, left, asks: asks.to_owned() }
    }
}

/// Why a step that may have changed something stays as it is.
fn why_left(spec: &StepSpec, state: StepState, attempt: u32) -> Option<&'static str> {
    if !spec.is_governed() || spec.effect_class() == EffectClass::Read {
        return None;
    }
    match state {
        StepState::RolledBack => Some("it is undone already"),
        StepState::Running => Some("it is still running: it is judged once it has ended"),
        _ if attempt == 0 => None,
        _ if spec.rollback.is_none() => {
            Some("the workflow does not say how to undo it, and nothing undoes it by itself")
        }
        _ => Some("its rollback is for failures only (`conditions`), not for when somebody orders one"),
    }
}
