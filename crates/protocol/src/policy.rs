//! What is asked and answered about policy: the rules that actions are held against, and what they have decided.

use std::collections::BTreeMap;

use interlock_core::ids::{DecisionId, RunId};
use interlock_core::json::{HashHex, Json};
use interlock_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where the calls live.
pub mod path {
    pub const POLICY: &str = "/api/v1/policy";
    pub const VERSIONS: &str = "/api/v1/policy/versions";
    pub const FILES: &str = "/api/v1/policy/files";
    pub const EVAL: &str = "/api/v1/policy/eval";
    pub const REPLAY: &str = "/api/v1/policy/replay";
    pub const TESTS: &str = "/api/v1/policy/tests";
    pub const DECISIONS: &str = "/api/v1/runs/{run}/decisions";
}

/// Bounds of these calls.
pub mod limits {
    /// How far back a replay looks.
    pub const REPLAY_DAYS_MAX: u32 = 366;
    pub const PAGE_MAX: usize = 100;
}

/// What actions are held against.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyView {
    /// The version in force; absent for the policy that comes with the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<u32>,
    /// The SHA-256 of the rules in force.
    #[schema(value_type = String)]
    pub active_hash: HashHex,
    /// The version that is tried beside it and decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub shadow_hash: Option<HashHex>,
    /// The newest version that was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<u32>,
    /// Rises with every change; give it with a change to make sure that no other change came first.
    pub revision: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<String>,
}

/// Changes what is in force. What is left out stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangePolicy {
    /// The version to put in force; `0` for the policy that comes with the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<u32>,
    /// The version to try beside it; `0` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow: Option<u32>,
    /// Refuse the change if the policy has another revision by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

/// One version of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyVersion {
    pub version: u32,
    #[schema(value_type = String)]
    pub hash: HashHex,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyVersionList {
    pub versions: Vec<PolicyVersion>,
    /// Pass it as `before` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<u32>,
}

/// A new version: Rego files, `data.json`, and tests (`*_test.rego`), which must pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPolicyVersion {
    pub files: BTreeMap<String, String>,
    /// Why it is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Whose tests are run: those of files that are no version yet, else those of a version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TestPolicy {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<BTreeMap<String, String>>,
    /// The version; the policy that comes with the server where neither is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
}

/// What became of each test, in the order of the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyTests {
    pub passed: usize,
    pub failed: usize,
    pub tests: Vec<PolicyTest>,
}

/// A rule whose name begins with `test_`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyTest {
    pub name: String,
    pub file: String,
    pub line: u32,
    /// `passed`, `failed` (it is false, or one of its lines does not hold) or `error` (it could not be evaluated).
    pub outcome: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The files of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyFiles {
    pub files: BTreeMap<String, String>,
}

/// Asks a policy about an input document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EvalPolicy {
    /// Of this version, `0` for the policy that comes with the server; of the one in force where omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    #[schema(value_type = Object)]
    pub input: Json,
}

/// What a policy says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PolicyAnswer {
    /// `allow`, `deny`, `needs_approval`, or `undecided`, which performs nothing.
    pub verdict: String,
    /// The whole answer; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub answer: Option<Json>,
    /// The answer in words.
    pub explained: String,
}

/// Holds a version against what was decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayPolicy {
    /// Of this version, `0` for the policy that comes with the server; of the one in force where omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// How far back, in days.
    pub days: u32,
}

/// What another policy would have decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyReplay {
    /// Decisions that were looked at.
    pub decisions: usize,
    pub same: usize,
    pub newly_allowed: usize,
    pub newly_gated: usize,
    pub newly_denied: usize,
    pub newly_undecided: usize,
    /// The same verdict, for other reasons or with other obligations.
    pub otherwise: usize,
    /// Decisions whose input this release cannot read, or was not kept whole where these rules look at the fields.
    pub unreadable: usize,
    /// The first differences.
    pub differences: Vec<PolicyDifference>,
    /// There are more decisions than were looked at.
    pub more: bool,
    /// Steps that the rules in force allow in every run. No decision is kept of those.
    #[serde(default)]
    pub standing: StandingReplay,
}

/// What another policy would say to steps that the rules in force allow in every run, of the newest version of each workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StandingReplay {
    /// Steps that were looked at.
    pub steps: usize,
    pub same: usize,
    /// Allowed as far as the workflow says; what a run is, or is given, may change that.
    pub may_change: usize,
    pub newly_gated: usize,
    pub newly_denied: usize,
    pub newly_undecided: usize,
    /// The first steps that would not be allowed in every run.
    pub differences: Vec<StandingDifference>,
    /// There are more workflows than were looked at, or some that cannot be read.
    pub more: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StandingDifference {
    pub workflow: String,
    pub version: u32,
    pub step: String,
    /// `needs_approval`, `deny` or `undecided`.
    pub after: String,
    pub reasons: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyDifference {
    pub decision: DecisionId,
    pub run_id: RunId,
    /// The position of the step.
    pub step: u32,
    pub operation: String,
    pub before: String,
    pub after: String,
    pub reasons: Vec<String>,
}

/// What was decided on an action of a run, and what that rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DecisionView {
    pub decision: DecisionId,
    pub at: Timestamp,
    /// The position of the step.
    pub position: u32,
    pub step: String,
    pub iteration: u32,
    pub attempt: u32,
    pub operation: String,
    /// `allow`, `deny`, `needs_approval` or `undecided`.
    pub verdict: String,
    pub tier: String,
    /// The digest of the action.
    #[schema(value_type = String)]
    pub action: HashHex,
    /// The SHA-256 of the rules that were asked.
    #[schema(value_type = String)]
    pub bundle: HashHex,
    pub evaluator: String,
    /// The document that they were asked about.
    #[schema(value_type = Object)]
    pub input: Json,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub answer: Option<Json>,
    /// What the version that is tried beside it would have answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub shadow: Option<Json>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DecisionList {
    pub decisions: Vec<DecisionView>,
}
