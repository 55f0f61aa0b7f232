//! From a run and what it is about to do, to the input document.

use std::collections::BTreeSet;

use interlock_argv::last_part;
use interlock_core::governance::action::Action;
use interlock_core::json::Json;
use interlock_core::plan::command::commanded_profile;
use interlock_core::plan::rules::ValidationMode;
use interlock_core::plan::{BlastRadius, BoundCommand, Gate, Plan, StepSpec, Undo, Work};
use interlock_core::run::{Agreed, Run};
use interlock_core::state::{EffectClass, StepKind};
use interlock_core::time::Millis;
use interlock_core::work::Skills;
use interlock_core::work::terms::ANY;

use crate::command::CommandFacts;
use crate::input::{ActionFacts, Confidence, GateFacts, PolicyInput, RunFacts, StepFacts, WorkerFacts, WorkflowFacts};

/// What `workflow.mode` is where nothing is promised.
pub const NO_MODE: &str = "none";
/// Where a confidence comes from that stands in the workflow's definition.
pub const SOURCE_WORKFLOW: &str = "workflow";

impl PolicyInput {
    /// All that is known about an action of a run before a worker is found. The step comes along: what undoes something
    /// is judged before it is a part of the run.
    pub fn of(action: &Action, spec: &StepSpec, run: &Run) -> Self {
        Self {
            workflow: WorkflowFacts::of(&run.plan),
            step: StepFacts::of(&run.plan, spec, action.step),
            action: ActionFacts::of(action, spec, run),
            run: RunFacts::of(run, action),
            worker: None,
            fields: action.input.clone(),
        }
    }

    /// The same with what the step is given as a whole, where the action has only a reference to it.
    pub fn with_whole_input(self, action: &Action, spec: &StepSpec, run: &Run, whole: Json) -> Self {
        let rollback = self.action.rollback.clone();
        let action = Action { input: whole, ..action.clone() };
        let facts = ActionFacts { rollback, ..ActionFacts::of(&action, spec, run) };
        Self { action: facts, fields: action.input, ..self }
    }

    /// The same for the worker that is about to act.
    #[must_use]
    pub fn with_worker(self, worker: WorkerFacts) -> Self {
        Self { worker: Some(worker), ..self }
    }
}

impl WorkerFacts {
    /// What is known of a worker by what it can do, and by its certificate.
    pub fn of(skills: &Skills) -> Self {
        let proven = skills.capabilities.iter().flatten().filter_map(|name| commanded_profile(name));
        let names = |names: &BTreeSet<String>| names.iter().cloned().collect();
        let terms = skills.terms.as_ref();
        // Without a certificate nothing confines it to an environment.
        Self {
            environments: terms.map_or_else(|| vec![ANY.to_owned()], |terms| names(&terms.environments)),
            segments: terms.map(|terms| names(&terms.segments)).unwrap_or_default(),
            profiles: proven.map(str::to_owned).collect(),
            enrolled: skills.enrolled,
        }
    }
}

impl WorkflowFacts {
    fn of(plan: &Plan) -> Self {
        let approval = plan.rules.approval.clone().unwrap_or_default();
        let seconds = |time: Option<Millis>| time.map(|time| time.0.div_ceil(1_000).max(1));
        Self {
            name: plan.workflow.clone(),
            version: plan.version,
            profile: plan.rules.profile.clone(),
            mode: plan.promised_mode().map_or(NO_MODE, ValidationMode::as_str).to_owned(),
            blast_radius: plan.blast_radius(),
            approvers: approval.approvers,
            quorum: approval.quorum,
            escalate_after_s: seconds(approval.escalate_after),
            expires_after_s: seconds(approval.expires_after),
            writes_max: plan.writes_max,
            spend_max_micros: plan.rules.spend_max_micros,
        }
    }
}

impl StepFacts {
    fn of(plan: &Plan, spec: &StepSpec, position: u32) -> Self {
        let index = position as usize;
        let is_asked = |mode| plan.asked_in(mode).get(index).copied().unwrap_or(false);
        let confidence = spec.rules.confidence_score.map(|score| Confidence {
            score,
            threshold: spec.rules.auto_approve_threshold,
            source: SOURCE_WORKFLOW.to_owned(),
        });
        Self {
            key: spec.key.clone(),
            position,
            kind: spec.kind(),
            phase: spec.rules.phase,
            critical: spec.rules.critical,
            begins_phase: is_asked(ValidationMode::PerPhase),
            phase_gate: phase_gate(plan, index).map(GateFacts::of),
            // A step that was declared to change nothing, and does, was never counted when the last one was looked for.
            last: is_asked(ValidationMode::FinalOnly) || !spec.is_governed(),
            gate: gate_before(plan, index).map(GateFacts::of),
            confidence,
            credentials: spec.rules.credentials.clone(),
        }
    }
}

impl GateFacts {
    fn of(gate: &Gate) -> Self {
        Self { quorum: gate.quorum, approvers: gate.approvers.clone() }
    }
}

/// The `approval` step that asks about the step at `index`: it stands before it, and no other step that is asked about
/// stands between. One with a condition counts for none, because it may be skipped.
fn gate_before(plan: &Plan, index: usize) -> Option<&Gate> {
    let mode = plan.promised_mode().unwrap_or(ValidationMode::CriticalOnly);
    let asked = plan.asked_in(mode);
    let takes_gate = |step: &StepSpec, asked: bool| {
        let risky = step.rules.critical || step.rules.destructive || step.blast_radius() == BlastRadius::High;
        step.is_governed() && (asked || risky)
    };
    let mut gate = None;
    for (at, (step, asked)) in plan.steps.iter().zip(asked).enumerate() {
        if at == index {
            return gate;
        }
        match &step.work {
            Work::Approval(found) if step.condition.is_none() => gate = Some(found),
            _ if takes_gate(step, asked) => gate = None,
            _ => {}
        }
    }
    None
}

/// The `approval` step that asks about the phase of the step at `index`: the one before the phase's first step.
fn phase_gate(plan: &Plan, index: usize) -> Option<&Gate> {
    let begins = plan.asked_in(ValidationMode::PerPhase);
    // What undoes something is behind the plan, and was never a part of a phase.
    plan.steps.get(index)?;
    let first = (0..=index).rev().find(|at| begins.get(*at).copied().unwrap_or(false))?;
    gate_before(plan, first)
}

/// What undoes something changes something, also where the step itself has declared that it only reads. What looks whether that has
/// taken effect reads, as any step that says so.
fn effect_of(action: &Action, spec: &StepSpec) -> EffectClass {
    match (action.kind, action.effect) {
        (StepKind::Rollback, EffectClass::Read) if !spec.verifies_rollback() => EffectClass::Unsafe,
        (_, effect) => effect,
    }
}

/// What undoes a step is covered by the step's own permission, as the workflow has it. Of a step that needed none, because
/// it only reads, there is none that could cover it, and none covers an input that a person gives instead: then it is
/// judged like anything else that a person orders.
fn covered(action: &Action, spec: &StepSpec, run: &Run) -> &'static str {
    match &spec.work {
        // What looks at a rollback was let through as something that reads: an effect of it that changes something was not.
        Work::Rollback { verifies: true, .. } if action.effect != EffectClass::Read => "manual",
        Work::Rollback { undoes, .. } => {
            // No step has failed: to undo what has succeeded is a new action. So is to let a run undo what it has not
            // done itself, but taken over from one that has ended.
            let inherited = run.steps.get(*undoes as usize).is_some_and(|step| step.attempt == 0);
            if run.header.is_undo() || run.state.is_terminal() || (run.header.lineage.is_some() && inherited) {
                return "manual";
            }
            let is_governed = run.plan.step(*undoes).is_some_and(StepSpec::is_governed);
            // An effect of it is done with something else than the step.
            let is_as_planned = run.is_as_planned(action.step, (!action.is_effect).then_some(&action.input));
            if is_governed && is_as_planned { "automatic" } else { "manual" }
        }
        _ => "manual",
    }
}

impl ActionFacts {
    fn of(action: &Action, spec: &StepSpec, run: &Run) -> Self {
        let (argv, env) = match &spec.work {
            // As it will be run. What cannot be read counts as an unknown command.
            Work::Command { .. } => {
                let bound: Option<BoundCommand> = action.input.decode().ok();
                bound
                    .map_or((Some(Vec::new()), Vec::new()), |bound| (Some(bound.argv), bound.env.into_keys().collect()))
            }
            Work::Rollback { by: Undo::Argv(argv), .. } => (Some(argv.clone()), Vec::new()),
            _ => (None, Vec::new()),
        };
        Self {
            operation: action.operation.clone(),
            names: argv.iter().flatten().map(|word| last_part(word).to_owned()).collect(),
            command: argv.as_ref().map(|argv| CommandFacts::of(argv, &env)),
            argv,
            env,
            effect: effect_of(action, spec),
            blast_radius: action.blast_radius,
            destructive: action.destructive,
            reversible: action.reversible,
            rollback: (action.kind == StepKind::Rollback).then(|| covered(action, spec, run).to_owned()),
        }
    }
}

impl RunFacts {
    fn of(run: &Run, action: &Action) -> Self {
        let wanted = Agreed::to(action, run);
        let is_it =
            |kept: &Agreed| (kept.step, kept.iteration, kept.action) == (wanted.step, wanted.iteration, wanted.action);
        let (iteration, attempt) =
            run.steps.get(action.step as usize).map_or((0, 0), |step| (step.iteration, step.attempt));
        Self {
            id: run.id.to_string(),
            workspace: run.header.workspace.clone(),
            started_by: run.header.started_by.clone(),
            trigger: run.header.trigger.kind.clone(),
            subject: run.header.subject.clone(),
            labels: run.header.labels.clone(),
            iteration,
            attempt,
            writes: run.notes.writes_besides(action.step, iteration),
            spend_micros: run.notes.spent_micros,
            unpriced: run.notes.unpriced,
            agreed: run.notes.agreed.iter().any(is_it),
        }
    }
}

#[cfg(test)]
mod tests {
    use interlock_core::work::terms::WorkerTerms;

    use super::*;

    #[test]
    fn a_worker_that_names_environments_is_not_enrolled_by_that() {
        let named = WorkerTerms::narrowed(None, Some(["prod".to_owned()].into()));
        let without = Skills::within(Skills::new(None, None), named.clone(), false);
        assert_eq!(
            (WorkerFacts::of(&without).enrolled, WorkerFacts::of(&without).environments),
            (false, vec!["prod".into()])
        );
        assert!(WorkerFacts::of(&Skills::within(Skills::new(None, None), named, true)).enrolled);
    }
}
