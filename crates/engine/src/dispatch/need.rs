//! What a step asks of the worker that takes it.

use std::collections::BTreeSet;
use std::sync::Arc;

use interlock_core::plan::StepSpec;
use interlock_core::run::Run;
use interlock_core::state::StepKind;
use interlock_core::work::Skills;

use super::ready::GroupKey;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// The scan has found the run, and nobody has looked at its step yet.
    Unknown,
    Task(Arc<str>),
    /// A task that has named effects: only a worker that names them too knows which have happened.
    NamedTask(Arc<str>),
    /// A step that is no task.
    Kind(StepKind),
    /// What it is, and the environment that keeps some workers from it.
    In {
        environment: &'static str,
        need: Box<Need>,
    },
    /// A command, with all that its worker must have said of itself.
    Command(BTreeSet<String>),
}

impl Need {
    /// As far as the step alone tells.
    pub fn of(spec: &StepSpec) -> Self {
        if spec.is_command() {
            return Self::Unknown;
        }
        spec.task_name().map_or_else(|| Self::Kind(spec.kind()), |task| Self::Task(task.into()))
    }

    /// What the step asks for that a run stands at.
    pub fn of_run(run: &Run) -> Self {
        let spec = run.spec(run.position);
        if let Some(needs) = run.plan.command_needs(spec) {
            return Self::Command(needs);
        }
        match Self::of(spec) {
            Self::Task(task) if run.has_named_effects() => Self::NamedTask(task),
            need => need,
        }
    }

    /// Whether it is what the step asks for, as far as is known.
    pub fn may_be(&self, spec: &StepSpec) -> bool {
        match self {
            Self::Unknown => true,
            Self::Task(task) | Self::NamedTask(task) => spec.task_name() == Some(task),
            Self::Kind(kind) => spec.task_name().is_none() && spec.kind() == *kind && !spec.is_command(),
            Self::Command(_) => spec.is_command(),
            Self::In { need, .. } => need.may_be(spec),
        }
    }

    /// Whether a worker with these skills can take the step, as far as is known.
    pub fn is_met_by(&self, skills: &Skills) -> bool {
        match self {
            Self::Unknown => true,
            Self::Task(task) => skills.has_task(task),
            Self::NamedTask(task) => skills.has_task(task) && skills.names_effects,
            Self::Kind(kind) => skills.has_kind(*kind),
            Self::Command(needs) => skills.has_all(needs),
            Self::In { environment, need } => skills.allows_environment(environment) && need.is_met_by(skills),
        }
    }
}

/// What a run needs that a session was given and cannot do.
pub struct Mismatch {
    pub key: GroupKey,
    pub need: Need,
    pub workflow: String,
}

impl Mismatch {
    pub fn of(run: &Run, skills: &Skills) -> Self {
        let (need, environment) = (Need::of_run(run), run.plan.environment());
        let need =
            if skills.allows_environment(environment) { need } else { Need::In { environment, need: Box::new(need) } };
        Self { key: GroupKey::of(run), need, workflow: run.plan.workflow.clone() }
    }
}
