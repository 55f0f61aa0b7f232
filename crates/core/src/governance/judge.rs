//! A [`Judge`] decides on actions, and only what it allows can become a [`Grant`]: an effect that was not judged cannot
//! be recorded.

use std::fmt;
use std::sync::Arc;

use crate::governance::action::Action;
use crate::json::{HashHex, Json};
use crate::run::approval::{Met, Terms};
use crate::run::decision::Basis;
use crate::run::receipt::Receipt;
use crate::run::{Agreed, Run};
use crate::state::{EffectClass, StepKind};
use crate::time::Timestamp;

/// What was decided on an action.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    Allow,
    Deny {
        reasons: Vec<String>,
    },
    /// People are asked first, on these terms.
    NeedsApproval {
        reasons: Vec<String>,
        terms: Box<Terms>,
    },
    /// The judge could not decide: nothing happens, and the run stops until it is asked again.
    Undecided {
        why: String,
    },
}

impl Decision {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny { .. } => "deny",
            Self::NeedsApproval { .. } => "needs_approval",
            Self::Undecided { .. } => "undecided",
        }
    }
}

/// A decision and what it rests on; nothing where it stands for every run of the workflow's version.
#[derive(Debug, Clone, PartialEq)]
pub struct Ruling {
    pub decision: Decision,
    pub basis: Option<Arc<Basis>>,
    /// The bundle that allows the action in every run of the workflow's version.
    pub standing: Option<HashHex>,
}

impl Ruling {
    /// Leave that a bundle gives for every run of a workflow's version.
    pub const fn standing(bundle: HashHex) -> Self {
        Self { decision: Decision::Allow, basis: None, standing: Some(bundle) }
    }

    /// The bundle that has decided; none where no policy was asked.
    pub fn bundle(&self) -> Option<HashHex> {
        self.standing.or_else(|| self.basis.as_ref().map(|basis| basis.bundle))
    }
}

impl From<Decision> for Ruling {
    fn from(decision: Decision) -> Self {
        Self { decision, basis: None, standing: None }
    }
}

/// Decides on actions; the policy is one. The same action of the same run is decided in the same way.
pub trait Judge: fmt::Debug + Send + Sync {
    fn judge(&self, action: &Action, run: &Run) -> Ruling;
}

/// Allows what a workflow declares: its tasks are trusted code, and its gates ask by themselves.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowDeclared;

impl Judge for AllowDeclared {
    fn judge(&self, _: &Action, _: &Run) -> Ruling {
        Decision::Allow.into()
    }
}

/// An action with the decision on it. There is no other way to one than through a judge.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    action: Action,
    ruling: Ruling,
}

impl Judged {
    pub fn by(judge: &dyn Judge, action: Action, run: &Run) -> Self {
        let ruling = judge.judge(&action, run);
        Self { action, ruling }
    }

    pub const fn action(&self) -> &Action {
        &self.action
    }

    pub const fn decision(&self) -> &Decision {
        &self.ruling.decision
    }

    pub(crate) const fn ruling(&self) -> &Ruling {
        &self.ruling
    }

    /// Leave to act, or what withholds it. Where people were to be asked and have agreed, in this iteration of the step,
    /// to this very action or to the step that performs it, their agreement is the leave, for a while.
    pub fn grant(self, run: &Run, now: Timestamp) -> Result<Grant, Box<Withheld>> {
        let Self { action, ruling } = self;
        if ruling.decision == Decision::Allow {
            return Ok(Grant { action, ruling });
        }
        let agreed = Agreed::to(&action, run);
        if let Decision::NeedsApproval { terms, .. } = &ruling.decision {
            // They agreed to what was asked of them then; what the rules demand by now may be more.
            let permits = |wanted: &Agreed| {
                run.notes.agreed.iter().any(|kept| kept.permits(wanted, now) && kept.met.covers(terms))
            };
            if permits(&agreed) || is_part_of_agreed(&action, run, permits) {
                return Ok(Grant { action, ruling });
            }
        }
        Err(Box::new(Withheld { action, ruling, agreed }))
    }
}

/// Whether people have agreed to the step whose effect this is. What goes further than the step has declared is none of
/// what they have agreed to.
fn is_part_of_agreed(action: &Action, run: &Run, permits: impl Fn(&Agreed) -> bool) -> bool {
    let spec = run.spec(action.step);
    let input = run.input(action.step);
    // Of these kinds of steps all is known beforehand: they perform what people were shown, and nothing else.
    let is_known = matches!(spec.kind(), StepKind::Connector | StepKind::Model | StepKind::Command);
    let is_whole = is_known && action.effect != EffectClass::Read;
    if is_whole && action.input.to_value().ok() != input.to_value().ok() {
        return false;
    }
    let whole = Action::of_step(spec, action.step, input);
    action.effect <= spec.effect_class() && whole.is_some_and(|whole| permits(&Agreed::to(&whole, run)))
}

impl Agreed {
    /// What people agree to who agree to this action. When they do, is not known yet.
    pub fn to(action: &Action, run: &Run) -> Self {
        let iteration = run.steps.get(action.step as usize).map_or(0, |step| step.iteration);
        Self {
            step: action.step,
            iteration,
            action: HashHex(action.digest()),
            at: Timestamp::default(),
            met: Met::default(),
            acted: 0,
            only_claimed: false,
        }
    }
}

/// A decision that does not allow an action, and what people would have to agree to.
#[derive(Debug, Clone, PartialEq)]
pub struct Withheld {
    action: Action,
    ruling: Ruling,
    agreed: Agreed,
}

impl Withheld {
    pub const fn decision(&self) -> &Decision {
        &self.ruling.decision
    }

    pub(crate) fn into_parts(self) -> (Action, Ruling, Agreed) {
        (self.action, self.ruling, self.agreed)
    }
}

/// Leave to perform one action, given by a decision that allows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    action: Action,
    ruling: Ruling,
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

    pub(crate) const fn ruling(&self) -> &Ruling {
        &self.ruling
    }

    /// Whether this is leave for a whole step.
    pub(crate) fn covers_step(&self, step: u32, input: &Json) -> bool {
        self.action.step == step && self.action.input == *input
    }
}
