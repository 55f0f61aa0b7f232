//! Asking. `decide` assumes nothing about a step that begins: where a condition has to be evaluated, an input to be
//! rendered or an action to be judged, it stops there and answers [`Decided::Needs`]. The caller finds it out and
//! [answers](Asking::answer), until there is a change. What was not found out is refused.

use std::fmt;

use super::draft::Draft;
use super::{activate, control, gated, rollback};
use crate::governance::action::Action;
use crate::governance::judge::{Judge, Judged};
use crate::json::Json;
use crate::plan::retry::StepError;
use crate::plan::{Gate, StepSpec, WaitFor, Work, is_template};
use crate::rejection::Rejection;
use crate::run::approval::Terms;
use crate::run::change::ChangeSet;
use crate::run::{Run, Step};
use crate::state::StepState;
use crate::time::Timestamp;

/// What `decide` has come to.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a need is as frequent as a change, and is answered at once")]
pub enum Decided<'a> {
    /// The change that carries the command out.
    Change(Box<ChangeSet>),
    /// Something about a step that is about to begin must be found out first.
    Needs(Asking<'a>),
}

impl<'a> Decided<'a> {
    pub(super) fn of(draft: Draft<'a>) -> Self {
        if draft.need.is_some() { Self::Needs(Asking { draft }) } else { Self::Change(draft.finish()) }
    }

    /// The change, with everything that is needed answered by a function.
    pub fn settle(mut self, mut bind: impl FnMut(&Asking<'_>) -> Bound) -> Result<Box<ChangeSet>, Rejection> {
        loop {
            match self {
                Self::Change(change) => return Ok(change),
                Self::Needs(asking) => {
                    let bound = bind(&asking);
                    self = asking.answer(bound)?;
                }
            }
        }
    }
}

/// Why something must be found out about a step.
#[derive(Debug, Clone)]
pub(super) enum Occasion {
    /// It is the next one.
    Activation,
    /// It is the next one of a rollback, and may act from an instant on.
    Rollback { eligible_at: Timestamp },
    /// An operator has it run again.
    Retry(Again),
}

/// A step that an operator has run again.
#[derive(Debug, Clone)]
pub(super) struct Again {
    /// Whom to ask first, where an approval guards it.
    pub ask: Option<Box<Terms>>,
    /// What it was given before.
    pub before: Json,
    /// Whether the operator has given it another input.
    pub is_changed: bool,
}

/// The step that cannot begin yet.
#[derive(Debug, Clone)]
pub(super) struct Need {
    pub position: u32,
    pub occasion: Occasion,
}

/// A command that waits for an answer about one step.
pub struct Asking<'a> {
    draft: Draft<'a>,
}

impl fmt::Debug for Asking<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").field("run", &self.draft.run.id).field("need", &self.draft.need).finish()
    }
}

/// What the expressions of a step came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rendered {
    pub input: Option<Json>,
    /// The key of a signal wait.
    pub wait_key: Option<String>,
    /// The instant of a timer.
    pub wait_until: Option<Timestamp>,
    /// The message of a gate.
    pub message: Option<String>,
}

/// What was found out about a step. It is made by [`Asking::bind`] and its kin only.
#[derive(Debug, Clone)]
pub struct Bound(pub(super) StepBinding);

#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "nearly every one is `Go`, and it is moved, not kept")]
pub(super) enum StepBinding {
    /// An expression cannot be evaluated, which fails the step.
    Broken(StepError),
    ConditionFalse,
    /// What the step begins with, the decision on it, and what else people would agree to with it.
    Go(Rendered, Option<Judged>, Vec<Later>),
}

/// A later step that people are asked about along with another, or behind a gate.
#[derive(Debug, Clone)]
pub struct Later {
    pub step: u32,
    /// What it is about to do, or why that cannot be told yet.
    pub action: Result<Action, String>,
}

impl Bound {
    /// An expression of the step cannot be evaluated.
    pub const fn broken(error: StepError) -> Self {
        Self(StepBinding::Broken(error))
    }

    /// The step's condition does not hold.
    pub const fn condition_false() -> Self {
        Self(StepBinding::ConditionFalse)
    }
}

impl<'a> Asking<'a> {
    fn need(&self) -> &Need {
        self.draft.need.as_ref().expect("a draft that asks has a need")
    }

    /// The run as it stands in the store. What the command has changed already is seen through [`Asking::step`].
    pub const fn run(&self) -> &'a Run {
        self.draft.run
    }

    /// The step that is about to begin.
    pub fn position(&self) -> u32 {
        self.need().position
    }

    pub fn spec(&self) -> &StepSpec {
        self.draft.spec(self.position())
    }

    /// Any step, as it is by now.
    pub fn step(&self, position: u32) -> &Step {
        self.draft.step(position)
    }

    /// Whether expressions must be evaluated.
    pub fn has_expressions(&self) -> bool {
        self.has_condition() || self.has_template()
    }

    /// Whether the step's condition has to hold for it to begin. It need not where an operator gives another input.
    pub fn has_condition(&self) -> bool {
        let counts = match &self.need().occasion {
            Occasion::Activation => true,
            Occasion::Rollback { .. } => false,
            Occasion::Retry(again) => !again.is_changed,
        };
        counts && self.spec().condition.is_some()
    }

    /// Whether something must be rendered. A step that runs again keeps what it was given.
    fn has_template(&self) -> bool {
        let has_input = match &self.need().occasion {
            Occasion::Activation => false,
            Occasion::Rollback { .. } => true,
            Occasion::Retry(_) => self.draft.step(self.position()).input.is_some(),
        };
        !has_input && self.spec().is_rendered()
    }

    /// The input that the step will have.
    fn input(&self, rendered: &Rendered) -> Json {
        let position = self.position();
        let kept = match &self.need().occasion {
            Occasion::Retry(_) => self.draft.step(position).input.as_ref(),
            Occasion::Activation | Occasion::Rollback { .. } => None,
        };
        self.draft.input(position, kept.or(rendered.input.as_ref()))
    }

    /// What the step is about to do, with what was rendered.
    pub fn action(&self, rendered: &Rendered) -> Option<Action> {
        Action::of_step(self.spec(), self.position(), self.input(rendered))
    }

    /// Binds the step's action to what was rendered, and has it judged.
    pub fn bind(&self, rendered: Rendered, judge: &dyn Judge) -> Bound {
        let action = self.action(&rendered);
        let judged = action.map(|action| Judged::by(judge, action, self.draft.run));
        Bound(StepBinding::Go(rendered, judged, Vec::new()))
    }

    /// Where people are asked before a phase: later steps of the phase, which they are asked about as well. A step with a
    /// condition, or behind a gate of the workflow's, is asked about for itself. Of a gate: what it guards.
    pub fn asked_along(&self) -> Vec<u32> {
        if matches!(self.spec().work, Work::Approval(_)) {
            return gated::guarded_by(&self.draft, self.position());
        }
        if !matches!(self.need().occasion, Occasion::Activation) {
            return Vec::new();
        }
        let mut later = self.draft.run.plan.asked_along(self.position());
        later.retain(|position| self.draft.step(*position).state() == StepState::Pending);
        later
    }

    /// What one of these steps is about to do, with the input that it will have.
    pub fn later_action(&self, position: u32, input: Option<&Json>) -> Option<Action> {
        Action::of_step(self.draft.spec(position), position, self.draft.input(position, input))
    }

    /// The same answer, with what people would agree to along with the step.
    pub fn along(&self, bound: Bound, also: Vec<Later>) -> Bound {
        match bound.0 {
            StepBinding::Go(rendered, judged, _) => Bound(StepBinding::Go(rendered, judged, also)),
            other => Bound(other),
        }
    }

    /// Goes on with what was found out.
    pub fn answer(mut self, bound: Bound) -> Result<Decided<'a>, Rejection> {
        self.check(&bound)?;
        let Need { position, occasion } = self.draft.need.take().expect("a draft that asks has a need");
        let draft = &mut self.draft;
        match occasion {
            Occasion::Activation => activate::answered(draft, position, bound.0)?,
            Occasion::Rollback { eligible_at } => rollback::answered(draft, position, bound.0, eligible_at)?,
            Occasion::Retry(again) => control::answered(draft, position, bound.0, again)?,
        }
        Ok(Decided::of(self.draft))
    }

    /// Refuses an answer that leaves out what the step cannot begin without.
    fn check(&self, bound: &Bound) -> Result<(), Rejection> {
        let spec = self.spec();
        let refuse = |what| Err(Rejection::NotBound { run: self.draft.run.id, step: spec.key.clone(), what });
        let (rendered, judged) = match &bound.0 {
            StepBinding::Broken(_) => return Ok(()),
            StepBinding::ConditionFalse if self.has_condition() => return Ok(()),
            StepBinding::ConditionFalse => return refuse("a condition that it does not have"),
            StepBinding::Go(rendered, judged, also) => {
                let along = self.asked_along();
                if also.iter().any(|later| !along.contains(&later.step)) {
                    return refuse("nothing about other steps than those that people are asked about with it");
                }
                (rendered, judged)
            }
        };
        if self.has_template()
            && let Some(missing) = missing(spec, rendered)
        {
            return refuse(missing);
        }
        let fits = |judged: &Judged| judged.action().is_of_step(spec, self.position(), &self.input(rendered));
        if spec.is_governed() && !judged.as_ref().is_some_and(fits) {
            return refuse("a decision on what it is about to do");
        }
        Ok(())
    }
}

/// What the step says in a template that was not rendered.
fn missing(spec: &StepSpec, rendered: &Rendered) -> Option<&'static str> {
    let (what, is_there) = match &spec.work {
        Work::Task { with: Some(_), .. }
        | Work::Transform { .. }
        | Work::Connector { with: Some(_), .. }
        | Work::Model { with: Some(_), .. } => ("its input", rendered.input.is_some()),
        Work::Wait { until: WaitFor::Until(_), .. } => ("the instant that it waits for", rendered.wait_until.is_some()),
        Work::Wait { until: WaitFor::Signal { key: Some(key), .. }, .. } if is_template(key) => {
            ("the key that it waits for", rendered.wait_key.is_some())
        }
        Work::Approval(Gate { message: Some(message), .. }) if is_template(message) => {
            ("what people are asked", rendered.message.is_some())
        }
        _ => return None,
    };
    (!is_there).then_some(what)
}
