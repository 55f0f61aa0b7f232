//! What is asked and answered about workflows.

use interlock_core::json::Json;
use interlock_core::plan::BlastRadius;
use interlock_core::state::{EffectClass, StepKind};
use interlock_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where the calls live.
pub mod path {
    pub const WORKFLOWS: &str = "/api/v1/workflows";
    pub const WORKFLOW: &str = "/api/v1/workflows/{workflow}";
    pub const VERSIONS: &str = "/api/v1/workflows/{workflow}/versions";
    pub const VERSION: &str = "/api/v1/workflows/{workflow}/versions/{version}";
    pub const DISABLE: &str = "/api/v1/workflows/{workflow}/disable";
    pub const ENABLE: &str = "/api/v1/workflows/{workflow}/enable";
    pub const VALIDATE: &str = "/api/v1/workflows/validate";
    pub const PLAN: &str = "/api/v1/workflows/plan";
    pub const SCHEMA: &str = "/schema/workflow.json";
}

/// Bounds of the workflow calls.
pub mod limits {
    /// Workflows, or versions, of one answer.
    pub const PAGE_MAX: usize = 500;
    /// How long the name of a file may be that messages call it by.
    pub const FILE_BYTES_MAX: usize = 1_024;
}

/// Something that is wrong with a workflow file, and where. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Diagnostic {
    /// `error` or `warning`.
    pub severity: String,
    /// For programs; `docs/reference/workflow.md` has the list.
    pub code: String,
    pub line: usize,
    pub column: usize,
    pub end_line: usize,
    pub end_column: usize,
    pub message: String,
    /// What to write instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// A workflow file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The YAML text.
    pub source: String,
    /// How the file is called in messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// What to walk: a file, or a workflow of the tenant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanRequest {
    /// The YAML text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// How the file is called in messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The name of an applied workflow, instead of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Its version; the newest one where omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    #[serde(default = "no_inputs")]
    pub inputs: Json,
}

fn no_inputs() -> Json {
    Json::trusted("{}")
}

/// What would be done, as far as it can be known beforehand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Walk {
    pub workflow: String,
    /// As a run would have them, with what was left out filled in.
    pub inputs: Json,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The furthest that any step that may run reaches.
    pub blast_radius: BlastRadius,
    pub steps: Vec<WalkedStep>,
}

/// One step of a walk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WalkedStep {
    pub step: String,
    pub kind: StepKind,
    /// `run`, `skip`, `depends` on what an earlier step answers, or `fail`.
    pub would: String,
    /// What it does, in a few words.
    pub does: String,
    #[serde(rename = "if", default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// What it is given; expressions that depend on earlier answers stand as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// The output, where it is known beforehand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<EffectClass>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blast_radius: Option<BlastRadius>,
    /// How it would be undone; null for a step that changes something and cannot be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<String>,
    /// Who has to approve, for a gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Json>,
    /// What the policy would decide, for a step that changes something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PredictedDecision>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<Json>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What the policy would decide on a step, as far as it is known beforehand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PredictedDecision {
    /// `allow`, `needs_approval`, `deny`, or `undecided`: then the run would stop here.
    pub verdict: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// Each rule with its word.
    pub reasons: Vec<String>,
    /// How many people would have to agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<u32>,
    /// Of which groups they are; every person with the role where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    /// The rules look at the run, or at what the step is given: then the answer may be another one.
    #[serde(default)]
    pub may_change: bool,
}

/// A workflow was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Applied {
    pub workflow: String,
    pub version: u32,
    /// False if the file has not changed since this version.
    pub created: bool,
    pub source_hash: String,
    pub plan_hash: String,
    pub warnings: Vec<Diagnostic>,
}

/// What a check of a file found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Validation {
    /// There are no errors: it could be applied.
    pub valid: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    pub diagnostics: Vec<Diagnostic>,
}

/// A workflow as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkflowView {
    pub workflow: String,
    /// The newest version.
    pub version: u32,
    /// It takes no starts.
    pub disabled: bool,
    pub source_hash: String,
    pub plan_hash: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Who applied the newest version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_by: Option<String>,
}

/// A page of workflows, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkflowList {
    pub workflows: Vec<WorkflowView>,
    /// Pass it as `after` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<String>,
}

/// One version of a workflow, which never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VersionView {
    pub workflow: String,
    pub version: u32,
    pub source_hash: String,
    pub plan_hash: String,
    pub applied_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_by: Option<String>,
}

/// One version with everything it says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VersionDetail {
    #[serde(flatten)]
    pub view: VersionView,
    /// It takes no starts; a property of the workflow.
    pub disabled: bool,
    /// The file as it was applied.
    pub source: String,
    /// The same as JSON.
    pub definition: Json,
}

/// A page of versions, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VersionList {
    pub versions: Vec<VersionView>,
    /// Pass it as `before` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<u32>,
}
