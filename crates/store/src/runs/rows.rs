use std::collections::BTreeMap;

use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::state::{Control, Detail, Reason, RunState, StepState};
use interlock_core::time::Timestamp;

/// Which runs a list shows. Everything that is set must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// The run is in one of these; in any, where there are none.
    pub states: Vec<RunState>,
    pub workflow: Option<String>,
    pub workspace: Option<String>,
    pub subject: Option<String>,
    /// What caused the run: `api`, `schedule`, `webhook` …
    pub trigger: Option<String>,
    /// Names and values of labels and searchable inputs that the run has, at most [`ATTR_FILTERS_MAX`].
    pub attrs: Vec<(String, String)>,
    pub created_from: Option<Timestamp>,
    pub created_before: Option<Timestamp>,
}

/// How many attributes one list can be narrowed by.
pub const ATTR_FILTERS_MAX: usize = 3;

impl RunFilter {
    /// Matches every run that the caller may see.
    pub fn is_empty(&self) -> bool {
        Self { workspace: None, ..self.clone() } == Self::default()
    }
}

/// Newest first; `after` is the last run of the page before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    pub limit: usize,
    pub after: Option<RunId>,
}

/// A run as lists and pages show it, without loading its plan and steps.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSummary {
    pub tenant: TenantId,
    pub run: RunId,
    pub workspace: String,
    pub workflow: String,
    pub workflow_version: u32,
    pub subject: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub trigger_type: String,
    pub trigger_ref: Option<String>,
    pub priority: i32,
    pub started_by: Option<String>,
    pub root_run_id: Option<RunId>,
    pub resumed_from: Option<RunId>,
    pub resume_count: u32,
    pub state: RunState,
    pub detail: Option<Detail>,
    pub reason: Option<Reason>,
    pub position: u32,
    pub control: Option<Control>,
    pub version: u64,
    pub created_at: Timestamp,
    pub deadline_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub duration_ms: Option<u64>,
    pub inputs: Json,
    pub output: Option<Json>,
    pub error: Option<Json>,
    /// When the current step can be claimed, while no worker has claimed it.
    pub eligible_at: Option<Timestamp>,
    /// The run that was made from this one.
    pub continued_by: Option<RunId>,
}

/// How many runs of a tenant stand alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveCount {
    pub state: RunState,
    pub detail: Option<Detail>,
    pub reason: Option<Reason>,
    pub runs: u64,
}

/// A step as a row.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRow {
    pub position: u32,
    pub key: String,
    pub kind: String,
    pub state: StepState,
    pub attempt: u32,
    pub failures: u32,
    pub iteration: u32,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub output: Option<Json>,
    pub error: Option<Json>,
}

/// What an attempt of a step has answered.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptOutput {
    pub output: Option<Json>,
    /// A person or a probe has said that the step is done, and not the worker that had the attempt.
    pub is_resolved: bool,
}
