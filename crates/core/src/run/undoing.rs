//! What a rollback that an operator orders would undo: for people who are about to order one.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Run, input};
use crate::json::Json;
use crate::plan::rules::{Requires, StepRules};
use crate::plan::{RollbackCondition, StepSpec, Undo, Work};
use crate::state::{EffectClass, StepKind, StepState};

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
    /// As it stands now. What failed or is in doubt may have done nothing: its rollback step finds out.
    pub state: StepState,
    /// The task, command or operation that undoes it.
    pub by: String,
    /// What that is given beside what the step was given and said; a template, rendered when it happens. Without it a connector
    /// does the exact inverse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<Json>,
    /// The task or command that looks afterwards whether it has taken effect. Without one, only a connector that can read its target back
    /// does so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_by: Option<String>,
    /// What the policy in force says to it now. It is asked again when it happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<UndoRuling>,
}

/// What the policy says to the undoing of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UndoRuling {
    /// `allow`, `deny`, `needs_approval`, or `undecided` where the policy has no answer: then nothing is undone.
    pub verdict: String,
    /// The rules that speak, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// How many people would have to agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<u32>,
    /// Of which groups; every person with the role where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
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
            if self.has_left_it_to_others(position) && now.attempt > 0 {
                let why = "another run has done it: this one did nothing".to_owned();
                left.push(LeftStep { step, position, state, why });
            } else if now.is_undoable(spec, &self.header, RollbackCondition::Manual) {
                let Some(rollback) = &spec.rollback else { continue };
                let (by, with) = (rollback.by.in_words(), rollback.with.clone());
                let verified_by = rollback.verify.as_ref().map(Undo::in_words);
                undone.push(UndoneStep { step, position, state, by, with, verified_by, policy: None });
            } else if now.was_not_started(spec, &self.header) {
                left.push(LeftStep { step, position, state, why: "its command was never started".to_owned() });
            } else if let Some(why) = why_left(spec, state, now.attempt) {
                left.push(LeftStep { step, position, state, why: why.to_owned() });
            }
        }
        let asks =
            "whom the policy names: the run has ended, and what undoes it is judged like anything new".to_owned();
        let mut preview = RollbackPreview { undone, left, asks };
        if !self.state.is_terminal() {
            preview.say_who_is_asked();
        }
        preview
    }

    /// The step that would undo one, and what it would be given; nothing where the workflow does not say how.
    pub fn undoing_of(&self, position: u32) -> Option<(StepSpec, Json)> {
        let spec = undo_spec(self.plan.step(position)?, position)?;
        let undoes = Some((self.input(position), self.steps[position as usize].output.as_ref()));
        let given = input(&self.header, &spec, None, undoes);
        Some((spec, given))
    }
}

impl RollbackPreview {
    /// Says who would be asked, by what the policy says to each step.
    pub fn say_who_is_asked(&mut self) {
        let of = |verdicts: &[&str]| {
            let is_one = |step: &&UndoneStep| {
                step.policy.as_ref().is_some_and(|policy| verdicts.contains(&policy.verdict.as_str()))
            };
            let keys: Vec<String> = self.undone.iter().filter(is_one).map(|step| format!("`{}`", step.step)).collect();
            keys.join(", ")
        };
        let (denied, gated) = (of(&["deny", "undecided"]), of(&["needs_approval"]));
        self.asks = match (denied.is_empty(), gated.is_empty()) {
            (true, true) => {
                "nobody: what was done may always be undone as the workflow says; the policy may still forbid it".into()
            }
            (true, false) => format!("people, before {gated} is undone"),
            (false, true) => {
                format!("nobody: the policy does not let {denied} be undone, and the rollback stops there")
            }
            (false, false) => format!(
                "people, before {gated} is undone; the policy does not let {denied} be undone, and the rollback stops there"
            ),
        };
    }
}

/// The step that undoes another one, where that says how.
pub(crate) fn undo_spec(undone: &StepSpec, position: u32) -> Option<StepSpec> {
    let rollback = undone.rollback.as_ref()?;
    let (by, with) = (rollback.by.clone(), rollback.with.clone());
    let requires = required_by(undone, &by);
    let work = Work::Rollback { undoes: position, by, with, verifies: false };
    let mut spec = StepSpec::new(format!("rollback:{}", undone.key), work);
    spec.queue.clone_from(&undone.queue);
    spec.timeout = undone.timeout;
    spec.retry.clone_from(&undone.retry);
    spec.effect = undone.effect;
    // What counts where people are asked about it after all, and what its worker must have.
    spec.blast_radius = undone.blast_radius;
    let StepRules { critical, destructive, credentials, .. } = undone.rules.clone();
    spec.rules = StepRules { critical, destructive, credentials, requires, ..StepRules::default() };
    Some(spec)
}

/// What the worker must have that undoes a step, or looks whether it is undone: what the step's own must, where both are commands or
/// both are tasks. Workers for the one seldom do the other.
fn required_by(undone: &StepSpec, by: &Undo) -> Option<Requires> {
    let is_alike = match by {
        Undo::Argv(_) => undone.is_command(),
        Undo::Handler(_) => undone.kind() == StepKind::Task,
        Undo::Operation(_) => false,
    };
    undone.rules.requires.clone().filter(|_| is_alike)
}

/// The step that looks whether the rollback of another one has taken effect, where that names one. It is given what the rollback is given, and
/// only reads.
pub(crate) fn verify_spec(undone: &StepSpec, position: u32) -> Option<StepSpec> {
    let rollback = undone.rollback.as_ref()?;
    let (by, with) = (rollback.verify.clone()?, rollback.with.clone());
    let requires = required_by(undone, &by);
    let work = Work::Rollback { undoes: position, by, with, verifies: true };
    let mut spec = StepSpec::new(format!("verify:{}", undone.key), work);
    spec.queue.clone_from(&undone.queue);
    spec.timeout = undone.timeout;
    spec.effect = Some(EffectClass::Read);
    let credentials = undone.rules.credentials.clone();
    spec.rules = StepRules { credentials, requires, ..StepRules::default() };
    Some(spec)
}

/// Why a step that may have changed something stays as it is.
fn why_left(spec: &StepSpec, state: StepState, attempt: u32) -> Option<&'static str> {
    if !spec.is_governed() || spec.effect_class() == EffectClass::Read {
        return None;
    }
    match state {
        StepState::RolledBack => Some("it is undone already"),
        StepState::Running => Some("it is still running: it is judged once it has ended"),
        // What another run of the chain has done has no attempt here.
        _ if attempt == 0 && state != StepState::Succeeded => None,
        _ if spec.rollback.is_none() => {
            Some("the workflow does not say how to undo it, and nothing undoes it by itself")
        }
        _ => Some("its rollback is for failures only (`conditions`), not for a rollback that an operator orders"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::plan::RollbackSpec;

    #[test]
    fn what_undoes_a_step_asks_for_what_the_step_does_where_both_are_alike() {
        let argv = || vec!["/bin/undo".to_owned()];
        let task = StepSpec::task("a", "t");
        let command = StepSpec::new("a", Work::Command { argv: argv(), env: BTreeMap::new() });
        let asks = |step: &StepSpec, by: Undo| {
            let mut step = step.clone();
            step.rules.requires = Some(Requires { capabilities: vec!["gpu".into()], ..Requires::default() });
            step.rollback = Some(RollbackSpec { verify: Some(by.clone()), ..RollbackSpec::by(by) });
            [undo_spec(&step, 0), verify_spec(&step, 0)].map(|spec| spec.unwrap().rules.requires.is_some())
        };
        assert_eq!(asks(&task, Undo::Handler("undo".into())), [true; 2]);
        assert_eq!(asks(&command, Undo::Argv(argv())), [true; 2]);
        assert_eq!(asks(&task, Undo::Argv(argv())), [false; 2]);
        for by in [Undo::Handler("undo".into()), Undo::Operation("mail.send".into())] {
            assert_eq!(asks(&command, by), [false; 2]);
        }
    }
}
