//! The runbook surface: runs under the names that ticket tools use. `session_id` is the run's id, `step_number` its step's position
//! counted from 1, and the profile goes by two names.

use interlock_core::ids::{ApprovalId, RunId};
use interlock_core::json::Json;
use interlock_core::plan::rules::ValidationMode;
use interlock_core::plan::tier::Tier;
use interlock_core::run::approval::Vote;
use interlock_core::time::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::live::Envelope;

/// Where the calls live.
pub mod path {
    pub const EXECUTIONS: &str = "/api/v1/executions";
    pub const EXECUTION: &str = "/api/v1/executions/{session_id}";
    pub const APPROVE: &str = "/api/v1/executions/{session_id}/approve";
    pub const ROLLBACK: &str = "/api/v1/executions/{session_id}/rollback";
    pub const EVENTS: &str = "/api/v1/executions/{session_id}/events";
}

/// Bounds of these calls.
pub mod limits {
    /// How much of a step's output is shown: its end.
    pub const OUTPUT_BYTES_MAX: usize = 64 << 10;
}

/// Works on a ticket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateExecution {
    /// One active execution per ticket.
    pub ticket_id: String,
    /// The workflow's name; the one whose `on.ticket` takes the ticket where omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runbook_id: Option<String>,
    /// When people are asked; the workflow's own where omitted. Only a stricter one is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_mode: Option<ValidationMode>,
    /// The workflow's own where omitted. Only a stricter one is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment_profile: Option<String>,
    /// What else is known of the ticket, for the filters and inputs of `on.ticket`, where it is `event`.
    #[serde(default, skip_serializing_if = "Map::is_empty", deserialize_with = "exact")]
    pub ticket: Map<String, Value>,
    /// Inputs beside those that `on.ticket` gives.
    #[serde(default, skip_serializing_if = "Map::is_empty", deserialize_with = "exact")]
    pub inputs: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

/// An object. A number in it that would be rounded is refused, and not changed.
fn exact<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    let value = Json::deserialize(deserializer)?.to_exact_value().map_err(D::Error::custom)?;
    serde_json::from_value(value).map_err(D::Error::custom)
}

/// The execution was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Created {
    pub session_id: RunId,
}

/// One person's vote on a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApproveStep {
    /// 1, 2, …
    pub step_number: u32,
    pub approved: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// The role or group in which the person decides. It is checked, never believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approver_role: Option<String>,
    /// The `digest` of what was looked at. Needed where much hangs on the step (its tier is high).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The person whose delegated right to decide is used, where it is not the caller's own. Where omitted, the
    /// caller's own if it is enough, else a delegated one that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<String>,
}

/// What was decided, and where that leaves the execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StepApproved {
    pub session_id: RunId,
    /// The session's state, in the words of this surface.
    pub status: String,
    /// The name of the step that was decided on.
    pub step: String,
    /// How much hangs on it.
    pub tier: Tier,
    /// What was decided, in a sentence.
    pub summary: String,
    pub approval: ApprovalTask,
}

/// Undoes a step and all that came after it; the whole execution without `step_number`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollBack {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_number: Option<u32>,
    pub reason: String,
}

/// Where the execution stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecutionStatus {
    pub session_id: RunId,
    /// In the words of this surface: `queued`, `executing`, `rollback`, …
    pub status: String,
    /// The `seq` of the last event.
    pub last_event_seq: u64,
}

/// One execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Execution {
    pub session_id: RunId,
    /// The run's subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket_id: Option<String>,
    pub runbook_id: String,
    pub runbook_version: u32,
    /// In the words of this surface: `queued`, `assigning_worker`, `waiting_for_approval`, `executing`, `paused`, `rollback`,
    /// `completed`, `failed`, or the one that it spells with two l.
    pub status: String,
    /// A finer word on it, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Why it ended, where that needs a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub validation_mode: ValidationMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment_profile: Option<String>,
    /// The same, under its other name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_profile: Option<String>,
    /// The number of the step that it stands at.
    pub current_step: u32,
    pub steps: Vec<ExecutionStep>,
    pub approvals: Vec<ApprovalTask>,
    pub outputs: Vec<StepOutput>,
    pub last_event_seq: u64,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExecutionStep {
    /// 1, 2, …
    pub step_number: u32,
    pub name: String,
    /// In the words of this surface: `pending`, `awaiting_approval`, `approved`, `running`, `succeeded`, `failed`, `rolled_back`.
    pub status: String,
    /// Our own word, where this surface has none for it: `waiting_signal`, `in_doubt`, `skipped`, `canceled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    pub attempt: u32,
    /// What went wrong last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Json>,
}

/// A request for an approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalTask {
    pub approval_id: ApprovalId,
    pub step_number: u32,
    /// `pending`, `approved`, `rejected`, `expired`, or withdrawn with its execution.
    pub status: String,
    /// What exactly is being approved.
    pub digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The groups whose members may decide; every person with the role where empty.
    pub approvers: Vec<String>,
    /// How many different people must say yes.
    pub quorum: u32,
    pub votes: Vec<Vote>,
    pub requested_at: Timestamp,
    pub expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<Timestamp>,
}

/// What a step has answered, as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepOutput {
    pub step_number: u32,
    /// The end of it: 64 KiB at most.
    pub data: String,
    /// How long it is in all.
    pub bytes: u64,
    pub truncated: bool,
}

/// A page of an execution's events, in the envelope of the live stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExecutionEvents {
    pub events: Vec<Envelope>,
    /// Pass it as `since` for what comes next.
    pub next_since: String,
}
