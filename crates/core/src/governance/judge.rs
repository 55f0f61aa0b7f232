//! A [`Judge`] decides on actions, and only what it allows can become a [`Grant`]: an effect that nobody has judged cannot
//! be written down.

use std::fmt;

use crate::governance::action::Action;
use crate::json::{HashHex, Json};
use crate::plan::Gate;
use crate::run::receipt::Receipt;
use crate::run::{Agreed, Run};

/// What was decided on an action.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    Allow,
    Deny {
        reasons: Vec<String>,
    },
    /// People are asked first, as this gate says.
    NeedsApproval {
        reasons: Vec<String>,
        gate: Box<Gate>,
    },
}

/// Whoever decides on actions. The same action of the same run is decided in the same way.
pub trait Judge: fmt::Debug + Send + Sync {
    fn judge(&self, action: &Action, run: &Run) -> Decision;
}

/// Allows what a workflow declares: its tasks are trusted code, and its gates ask by themselves.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowDeclared;

impl Judge for AllowDeclared {
    fn judge(&self, _: &Action, _: &Run) -> Decision {
        Decision::Allow
    }
}

/// An action with the decision on it. There is no other way to one than through a judge.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    action: Action,
    decision: Decision,
}

impl Judged {
    pub fn by(judge: &dyn Judge, action: Action, run: &Run) -> Self {
        let decision = judge.judge(&action, run);
        Self { action, decision }
    }

    pub const fn action(&self) -> &Action {
        &self.action
    }

    pub const fn decision(&self) -> &Decision {
        &self.decision
    }

    /// Leave to act, or what withholds it. Where people were to be asked and have agreed to this very action, in this
    /// iteration of its step, it is theirs.
    pub fn grant(self, run: &Run) -> Result<Grant, Withheld> {
        let Self { action, decision } = self;
        let digest = match &decision {
            Decision::Allow => return Ok(Grant { action }),
            Decision::Deny { .. } | Decision::NeedsApproval { .. } => action.digest(),
        };
        let asked = matches!(decision, Decision::NeedsApproval { .. });
        let iteration = run.steps.get(action.step as usize).map_or(0, |step| step.iteration);
        let agreed = Agreed { step: action.step, iteration, action: HashHex(digest) };
        if asked && run.notes.agreed.contains(&agreed) {
            return Ok(Grant { action });
        }
        Err(Withheld { decision, agreed })
    }
}

/// A decision that does not allow an action, and what people would have to agree to.
#[derive(Debug, Clone, PartialEq)]
pub struct Withheld {
    decision: Decision,
    agreed: Agreed,
}

impl Withheld {
    pub const fn decision(&self) -> &Decision {
        &self.decision
    }

    pub(crate) fn into_parts(self) -> (Decision, Agreed) {
        (self.decision, self.agreed)
    }
}

/// Leave to perform one action, given by a decision that allows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    action: Action,
}

impl Grant {
    /// Whether this is leave for the effect that a receipt is about.
    pub(crate) fn covers(&self, receipt: &Receipt) -> bool {
        let Action { step, input, effect, .. } = &self.action;
        *step == receipt.position && *effect == receipt.effect && *input == receipt.request
    }

    pub(crate) const fn action(&self) -> &Action {
        &self.action
    }

    /// Whether this is leave for a whole step.
    pub(crate) fn covers_step(&self, step: u32, input: &Json) -> bool {
        self.action.step == step && self.action.input == *input
    }
}
