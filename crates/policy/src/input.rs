//! The input document: all that a policy can know about an action. `docs/reference/policy.md` describes every field.
//!
//! The first three parts are fixed by the workflow version, except for the arguments and variables of a command. The others belong to
//! one run: they are *bound*, and an answer that cannot depend on them holds for every run of the version.

use std::collections::BTreeMap;

use interlock_core::json::{Hash, Json};
use interlock_core::plan::BlastRadius;
use interlock_core::plan::rules::StepPhase;
use interlock_core::state::{EffectClass, StepKind};
use serde::{Deserialize, Serialize};

use crate::command::CommandFacts;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyInput {
    pub workflow: WorkflowFacts,
    pub step: StepFacts,
    pub action: ActionFacts,
    pub run: RunFacts,
    /// The worker that is about to act; none where the engine asks before one is found.
    pub worker: Option<WorkerFacts>,
    /// What the action is done with: the step's bound input, or the request of a running task.
    pub fields: Json,
}

/// The parts of the document that belong to one run.
pub const BOUND: &[&str] = &["run", "worker", "fields"];
/// The parts of `action` that belong to one run where the step is a command: its arguments may hold expressions, and an operator may
/// give it others.
pub(crate) const BOUND_IN_COMMANDS: &[&str] = &["argv", "names", "env", "command"];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowFacts {
    pub name: String,
    pub version: u32,
    pub profile: Option<String>,
    /// The validation mode that is declared, or that the profile means; `none` where nothing is promised.
    pub mode: String,
    /// The furthest that any of its steps reaches.
    pub blast_radius: BlastRadius,
    pub approvers: Vec<String>,
    pub quorum: Option<u32>,
    pub escalate_after_s: Option<u64>,
    pub expires_after_s: Option<u64>,
    pub writes_max: Option<u32>,
    pub spend_max_micros: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepFacts {
    pub key: String,
    pub position: u32,
    pub kind: StepKind,
    pub phase: Option<StepPhase>,
    pub critical: bool,
    /// The first step of its phase that changes something.
    pub begins_phase: bool,
    /// An `approval` step of the workflow stands before its phase.
    #[serde(default)]
    pub phase_gate: Option<GateFacts>,
    /// The last step of the workflow that changes something.
    pub last: bool,
    /// The `approval` step before it that asks about this step.
    pub gate: Option<GateFacts>,
    pub confidence: Option<Confidence>,
    /// Names of credentials, never their values.
    pub credentials: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateFacts {
    pub quorum: u32,
    pub approvers: Vec<String>,
}

/// How sure the proposer of the step is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confidence {
    pub score: f64,
    pub threshold: Option<f64>,
    /// Who says so: `workflow`, where the definition does.
    pub source: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionFacts {
    /// The task, the command, the connector's operation, the model, or what a running task calls its effect.
    pub operation: String,
    /// The command as it is executed; none for other kinds.
    pub argv: Option<Vec<String>>,
    /// The last part of each of `argv`, as of a path: of `/usr/bin/rm` it is `rm`.
    pub names: Vec<String>,
    /// Names of the environment variables that a command sets.
    pub env: Vec<String>,
    /// What the command runs. None for other kinds, and in documents of releases that did not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandFacts>,
    pub effect: EffectClass,
    pub blast_radius: BlastRadius,
    pub destructive: bool,
    pub reversible: bool,
    /// `automatic` or `manual` where the action undoes a step.
    pub rollback: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunFacts {
    pub id: String,
    pub workspace: String,
    pub started_by: Option<String>,
    pub trigger: String,
    pub subject: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// Raised by operator retry, restart and rollback.
    pub iteration: u32,
    pub attempt: u32,
    /// Effects of the run so far that were not reads.
    pub writes: u32,
    /// What the run's model calls have cost so far.
    pub spend_micros: u64,
    /// The price of something that the run has used is not known: it has spent more than that.
    #[serde(default)]
    pub unpriced: bool,
    /// People have agreed to this very action already, when its phase began.
    #[serde(default)]
    pub agreed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerFacts {
    /// The environments that it may act in; `*` for all.
    pub environments: Vec<String>,
    /// The network segments that its certificate places it in.
    #[serde(default)]
    pub segments: Vec<String>,
    /// The profiles whose sandbox it has proven to have.
    #[serde(default)]
    pub profiles: Vec<String>,
    /// It has a certificate, which says all of this; of one without, only what it says of itself is known.
    #[serde(default)]
    pub enrolled: bool,
}

/// The document without its bound parts.
#[derive(Serialize)]
struct Fixed<'a> {
    workflow: &'a WorkflowFacts,
    step: &'a StepFacts,
    action: &'a ActionFacts,
}

/// The field that stands for what is left out.
const OMITTED: &str = "$omitted";

impl PolicyInput {
    /// The same with what is known of its command, where the document leaves that out.
    #[must_use]
    pub fn with_command(mut self) -> Self {
        let action = &mut self.action;
        if let (Some(argv), None) = (&action.argv, &action.command) {
            action.command = Some(CommandFacts::of(argv, &action.env));
        }
        self
    }

    /// The same without long fields, for rules that do not look at them.
    #[must_use]
    pub fn without_long_fields(mut self, bytes_max: usize) -> Self {
        let bytes = self.fields.len();
        if bytes > bytes_max {
            let sha256 = Hash::of(self.fields.as_str().as_bytes()).to_string();
            let omitted = serde_json::json!({ OMITTED: { "bytes": bytes, "sha256": sha256 } });
            self.fields = Json::trusted(omitted.to_string());
        }
        self
    }

    /// Whether its fields were left out.
    pub fn is_without_fields(&self) -> bool {
        self.fields.to_value().is_ok_and(|fields| fields.get(OMITTED).is_some())
    }

    /// The text of the part that the workflow version fixes: inputs with the same one differ in bound parts only.
    pub fn fixed_text(&self) -> String {
        let Self { workflow, step, action, .. } = self;
        serde_json::to_string(&Fixed { workflow, step, action }).expect("plain data has a JSON text")
    }

    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("plain data has a JSON text")
    }
}

/// Every path that the document has. Below a path that ends in `*` anything may stand.
pub const PATHS: &[&str] = &[
    "workflow.name",
    "workflow.version",
    "workflow.profile",
    "workflow.mode",
    "workflow.blast_radius",
    "workflow.approvers.*",
    "workflow.quorum",
    "workflow.escalate_after_s",
    "workflow.expires_after_s",
    "workflow.writes_max",
    "workflow.spend_max_micros",
    "step.key",
    "step.position",
    "step.kind",
    "step.phase",
    "step.critical",
    "step.begins_phase",
    "step.phase_gate",
    "step.last",
    "step.gate.quorum",
    "step.gate.approvers.*",
    "step.confidence.score",
    "step.confidence.threshold",
    "step.confidence.source",
    "step.credentials.*",
    "action.operation",
    "action.argv.*",
    "action.names.*",
    "action.env.*",
    "action.command.code",
    "action.command.programs.*",
    "action.command.starts_others",
    "action.command.words.*",
    "action.command.variables.*",
    "action.command.code_variables.*",
    "action.effect",
    "action.blast_radius",
    "action.destructive",
    "action.reversible",
    "action.rollback",
    "run.id",
    "run.workspace",
    "run.started_by",
    "run.trigger",
    "run.subject",
    "run.labels.*",
    "run.iteration",
    "run.attempt",
    "run.writes",
    "run.spend_micros",
    "run.unpriced",
    "run.agreed",
    "worker.environments.*",
    "worker.segments.*",
    "worker.profiles.*",
    "worker.enrolled",
    "fields.*",
];

/// Whether the document can have something at this path.
pub(crate) fn has_path(path: &[&str]) -> bool {
    PATHS.iter().any(|known| {
        let parts: Vec<&str> = known.split('.').collect();
        match parts.split_last() {
            Some((&"*", fixed)) if path.len() >= fixed.len() => path.starts_with(fixed),
            _ => parts.starts_with(path),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../docs/reference/policy.md");

    #[test]
    fn the_reference_describes_every_field() {
        for path in PATHS {
            let named: Vec<&str> = path.split('.').filter(|part| *part != "*").take(2).collect();
            assert!(PAGE.contains(&format!("`{}`", named.join("."))), "{path}");
        }
    }

    #[test]
    fn paths_are_those_of_the_document() {
        assert!(has_path(&[]) && has_path(&["step"]) && has_path(&["step", "gate", "quorum"]));
        assert!(has_path(&["fields", "a", "b"]) && has_path(&["run", "labels", "team"]));
        assert!(!has_path(&["steps"]) && !has_path(&["step", "critical", "x"]) && !has_path(&["run", "label"]));
    }
}
