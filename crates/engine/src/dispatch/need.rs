//! What a step asks of the worker that takes it.

use std::collections::BTreeSet;
use std::sync::Arc;

use interlock_core::ids::{SessionId, TenantId};
use interlock_core::json::Hash;
use interlock_core::plan::StepSpec;
use interlock_core::run::Run;
use interlock_core::state::StepKind;
use interlock_core::work::Skills;

use super::ready::GroupKey;
use super::session::SessionInfo;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// The scan has found the run, and its step has not been looked at yet.
    Unknown,
    Task(Arc<str>),
    /// A task that has named effects: only a worker that names them too knows which have happened.
    NamedTask(Arc<str>),
    /// A step that is no task.
    Kind(StepKind),
    /// The same, for a worker that asks before each effect.
    NamedKind(StepKind),
    /// What it is, and the environment that keeps some workers from it.
    In {
        environment: &'static str,
        need: Box<Need>,
    },
    /// A task, with all that its worker must have besides.
    Having {
        needs: BTreeSet<String>,
        need: Box<Need>,
    },
    /// A command, with all that its worker must have said of itself. One that serves all tenants runs those of the only tenant.
    Command {
        tenant: TenantId,
        needs: BTreeSet<String>,
    },
    /// A command of a run that this session has as a whole.
    Only {
        tenant: TenantId,
        session: SessionId,
    },
    /// A run that these sessions were offered, and could not take.
    Except {
        sessions: BTreeSet<SessionId>,
        need: Box<Need>,
    },
    /// A step that the rules of this bundle deny to these sessions' workers, and to no others as far as is known.
    Permitted {
        bundle: Hash,
        denied: BTreeSet<SessionId>,
        need: Box<Need>,
    },
}

impl Need {
    /// As far as the step alone tells.
    pub fn of(spec: &StepSpec) -> Self {
        if spec.is_command() {
            return Self::Unknown;
        }
        match spec.task_name() {
            Some(task) => Self::Task(task.into()).having(spec),
            None if spec.rules.dedupe_window().is_some() => Self::NamedKind(spec.kind()),
            None => Self::Kind(spec.kind()),
        }
    }

    /// The same for a worker that has what the task asks for besides.
    fn having(self, spec: &StepSpec) -> Self {
        if spec.rules.requires.is_none() {
            return self;
        }
        let needs = spec.task_needs();
        if needs.is_empty() { self } else { Self::Having { needs, need: Box::new(self) } }
    }

    /// What the step asks for that a run stands at.
    pub fn of_run(run: &Run) -> Self {
        let spec = run.spec(run.position);
        if let Some(session) = run.assigned_session() {
            return Self::Only { tenant: run.tenant, session };
        }
        if let Some(needs) = run.command_needs() {
            let (sessions, need) = (run.refused_by(), Self::Command { tenant: run.tenant, needs });
            return if sessions.is_empty() { need } else { Self::Except { sessions, need: Box::new(need) } };
        }
        match spec.task_name() {
            Some(task) if run.has_named_effects() => Self::NamedTask(task.into()).having(spec),
            _ => Self::of(spec),
        }
    }

    /// Whether it is what the step asks for, as far as is known.
    pub fn may_be(&self, spec: &StepSpec) -> bool {
        match self {
            Self::Unknown => true,
            Self::Task(task) | Self::NamedTask(task) => spec.task_name() == Some(task),
            Self::Kind(kind) | Self::NamedKind(kind) => {
                spec.task_name().is_none() && spec.kind() == *kind && !spec.is_command()
            }
            Self::Having { needs, need } => need.may_be(spec) && spec.task_needs() == *needs,
            Self::Command { .. } | Self::Only { .. } => spec.is_command(),
            Self::In { need, .. } | Self::Except { need, .. } | Self::Permitted { need, .. } => need.may_be(spec),
        }
    }

    /// Whether a session can take the step, as far as is known.
    pub fn is_met_by(&self, info: &SessionInfo) -> bool {
        let skills = &info.skills;
        // It goes on with the runs that it has, and takes nothing else.
        if info.is_kept_from_new() && !matches!(self, Self::Unknown | Self::Only { .. }) {
            return false;
        }
        match self {
            Self::Unknown => true,
            Self::Task(task) => skills.has_task(task),
            Self::NamedTask(task) => skills.has_task(task) && skills.names_effects,
            Self::Kind(kind) => skills.has_kind(*kind),
            Self::NamedKind(kind) => skills.has_kind(*kind) && skills.names_effects,
            Self::Having { needs, need } => skills.has_required(needs, info.round_trip()) && need.is_met_by(info),
            Self::Command { tenant, needs } => {
                skills.has_all(needs, info.round_trip()) && !info.is_errored() && info.may_run_commands_of(*tenant)
            }
            Self::Only { tenant, session } => {
                info.id == *session && !info.is_errored() && info.may_run_commands_of(*tenant)
            }
            Self::Except { sessions, need } => !sessions.contains(&info.id) && need.is_met_by(info),
            Self::Permitted { denied, need, .. } => !denied.contains(&info.id) && need.is_met_by(info),
            Self::In { environment, need } => skills.allows_environment(environment) && need.is_met_by(info),
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

    /// The rules of this bundle deny the step to the workers of these sessions.
    pub fn denied(run: &Run, denied: BTreeSet<SessionId>, bundle: Hash) -> Self {
        // All that is known of what the run needs: a worker that would only find the rest out must not be sent for it in turns.
        let need = Need::In { environment: run.plan.environment(), need: Box::new(Need::of_run(run)) };
        let need = Need::Permitted { bundle, denied, need: Box::new(need) };
        Self { key: GroupKey::of(run), need, workflow: run.plan.workflow.clone() }
    }
}
