//! An action: a proposed effect, bound before it happens.

use std::borrow::Cow;

use crate::json::{Hash, HashHex, Json, canonical_hash};
use crate::plan::{BlastRadius, StepSpec, Undo, Work};
use crate::run::card::ActionCard;
use crate::state::{EffectClass, StepKind};

/// A proposed effect, with all that a decision may look at.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// The position of the step that proposes it.
    pub step: u32,
    pub kind: StepKind,
    /// What is done, under its executor's own name: a task, a command, a connector's operation, a model, or what a
    /// running task calls its effect.
    pub operation: String,
    /// What it is done with: the step's bound input, or the request of a running task.
    pub input: Json,
    pub effect: EffectClass,
    pub blast_radius: BlastRadius,
    pub destructive: bool,
    /// Whether the workflow says how to undo it.
    pub reversible: bool,
    /// How to undo it, by its hash: an approver who agrees to an action agrees to its undoing.
    pub undoing: Option<HashHex>,
    /// An effect of a running step, and not the step itself.
    pub is_effect: bool,
}

impl Action {
    /// What a step is about to do with this input. A step that changes nothing proposes none.
    pub fn of_step(spec: &StepSpec, step: u32, input: Json) -> Option<Self> {
        let operation = operation(spec)?.into_owned();
        Some(Self::new(spec, step, operation, input, spec.effect_class()))
    }

    /// Whether this is what the step is about to do with that input.
    pub(crate) fn is_of_step(&self, spec: &StepSpec, step: u32, input: &Json) -> bool {
        let same = operation(spec).is_some_and(|operation| operation == self.operation);
        same && self.step == step && self.input == *input && self.effect == spec.effect_class()
    }

    /// One effect of a step that is running, by the name that its worker gives it. What the workflow says of the step can only
    /// be tightened; a step that acts may read as well.
    pub fn of_effect(spec: &StepSpec, step: u32, named: String, request: Json, effect: EffectClass) -> Self {
        let action = Self::new(spec, step, operation_of_effect(spec, named), request, tightened(spec, effect));
        Self { is_effect: true, ..action }
    }

    fn new(spec: &StepSpec, step: u32, operation: String, input: Json, effect: EffectClass) -> Self {
        Self {
            step,
            kind: spec.kind(),
            operation,
            input,
            effect,
            blast_radius: spec.blast_radius(),
            destructive: spec.rules.destructive,
            reversible: spec.rollback.is_some(),
            undoing: spec.rollback.as_ref().and_then(|rollback| canonical_hash(rollback).ok()).map(HashHex),
            is_effect: false,
        }
    }
}

impl Action {
    /// What people are shown of it who are asked: everything.
    pub fn card(&self, spec: &StepSpec) -> ActionCard {
        let Self { kind, operation, input, effect, blast_radius, destructive, .. } = self;
        let undone_by = spec.rollback.as_ref().map(|rollback| {
            let by = rollback.by.in_words();
            let with = rollback.with.as_ref().map_or_else(String::new, |with| format!(" {}", with.as_str()));
            let verify =
                rollback.verify.as_ref().map_or_else(String::new, |by| format!(", verified by {}", by.in_words()));
            format!("{by}{with}{verify}")
        });
        ActionCard {
            step: spec.key.clone(),
            kind: *kind,
            operation: operation.clone(),
            input: input.clone(),
            effect: *effect,
            blast_radius: *blast_radius,
            destructive: *destructive,
            undone_by,
            only_if: spec.condition.clone(),
            unknown: None,
            then: Vec::new(),
        }
    }

    /// What people approve is this very action and no other.
    pub fn digest(&self) -> Hash {
        // The one effect of a step that does nothing else is what was agreed to with the step.
        let Self { step, kind, operation, input, effect, blast_radius, destructive, reversible, undoing, is_effect: _ } =
            self;
        let text = serde_json::json!({
            "step": step,
            "kind": kind,
            "operation": operation,
            "input": Hash::of(input.as_str().as_bytes()).to_string(),
            "effect": effect,
            "blast_radius": blast_radius,
            "destructive": destructive,
            "reversible": reversible,
            "undoing": undoing,
        });
        canonical_hash(&text).expect("plain texts have a canonical form")
    }
}

/// What a step does, under its executor's own name; nothing where it changes nothing.
fn operation(spec: &StepSpec) -> Option<Cow<'_, str>> {
    Some(match &spec.work {
        _ if !spec.is_governed() => return None,
        Work::Task { handler, .. } => handler.into(),
        // Its arguments are in its input.
        Work::Command { argv, .. } => argv.first()?.into(),
        Work::Rollback { by: Undo::Argv(argv), .. } => argv.join(" ").into(),
        Work::Rollback { by, .. } => by.handler().into(),
        Work::Connector { operation, .. } => operation.into(),
        Work::Model { model, .. } => model.into(),
        Work::Transform { .. } | Work::Wait { .. } | Work::Approval(_) => return None,
    })
}

/// What an effect of a running step does. The own code of a task says so itself; a program is the task, and a step of any other
/// kind performs what its workflow says, whatever its worker calls that: rules see the same words before and at the effect.
fn operation_of_effect(spec: &StepSpec, named: String) -> String {
    match &spec.work {
        Work::Task { handler, .. } | Work::Rollback { by: Undo::Handler(handler), .. }
            if named != effect_of_program(handler) =>
        {
            named
        }
        _ => operation(spec).map_or(named, Cow::into_owned),
    }
}

/// How a worker calls the one effect of a task that is a program.
pub fn effect_of_program(task: &str) -> String {
    format!("exec:{task}")
}

/// The class that an effect of a step has, whatever its worker says.
pub fn tightened(spec: &StepSpec, effect: EffectClass) -> EffectClass {
    match spec.effect {
        Some(declared) if effect != EffectClass::Read => effect.max(declared),
        _ => effect,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(effect: Option<EffectClass>) -> StepSpec {
        StepSpec { effect, ..StepSpec::task("a", "pay") }
    }

    #[test]
    fn an_effect_is_what_the_step_does_unless_a_task_says_more() {
        let of = |spec: &StepSpec, named: &str| {
            Action::of_effect(spec, 0, named.to_owned(), Json::null(), EffectClass::Keyed).operation
        };
        let task = step(Some(EffectClass::Keyed));
        assert_eq!(of(&task, "card:charge"), "card:charge");
        assert_eq!(of(&task, &effect_of_program("pay")), "pay");
        assert_eq!(of(&task, &effect_of_program("other")), "exec:other");
        let command = Work::Command { argv: vec!["psql".into()], env: std::collections::BTreeMap::default() };
        assert_eq!(of(&StepSpec::new("c", command), "command:other"), "psql");
    }

    #[test]
    fn what_changes_nothing_proposes_no_action() {
        let of = |spec: &StepSpec| Action::of_step(spec, 3, Json::null());
        assert!(of(&step(Some(EffectClass::Read))).is_none());
        let action = of(&step(None)).unwrap();
        assert_eq!((action.step, action.operation.as_str(), action.effect), (3, "pay", EffectClass::Idempotent));
        let command = Work::Command { argv: vec!["rm".into(), "-r".into()], env: std::collections::BTreeMap::new() };
        let read = StepSpec { effect: Some(EffectClass::Read), ..StepSpec::new("c", command) };
        assert_eq!(of(&read).unwrap().operation, "rm", "a command is judged whatever it says of itself");
    }

    #[test]
    fn an_effect_is_at_least_what_its_step_declares() {
        let class = |declared, told| Action::of_effect(&step(declared), 0, "x".into(), Json::null(), told).effect;
        assert_eq!(class(Some(EffectClass::Unsafe), EffectClass::Keyed), EffectClass::Unsafe);
        assert_eq!(class(Some(EffectClass::Unsafe), EffectClass::Read), EffectClass::Read);
        assert_eq!(class(None, EffectClass::Keyed), EffectClass::Keyed);
    }
}
