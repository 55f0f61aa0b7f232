//! One action on many runs. Preview first: the answer's `count` is what the job must expect.

use interlock_core::bulk::BulkAction;
use interlock_core::ids::{JobId, RunId};
use interlock_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::runs::{RunQuery, RunView};

/// Where the calls live.
pub mod path {
    pub const BULK: &str = "/api/v1/bulk";
    pub const PREVIEW: &str = "/api/v1/bulk/preview";
    pub const JOB: &str = "/api/v1/bulk/{job}";
    pub const FAILURES: &str = "/api/v1/bulk/{job}/failures";
}

/// Asks which runs a filter matches now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewBulk {
    /// What the job would do. `retry` leaves out runs that another one continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<BulkAction>,
    pub filter: RunQuery,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BulkPreview {
    pub count: u64,
    /// The newest of the runs, at most ten.
    pub sample: Vec<RunView>,
}

/// Makes a job that acts on every run that the filter matches at this moment, and on no other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartBulk {
    pub action: BulkAction,
    /// An empty one is refused.
    pub filter: RunQuery,
    /// The `count` of the preview. If the filter matches another number by now, nothing is done.
    pub expected_count: u64,
    /// Stands in the history of every run that is canceled.
    pub reason: String,
    /// Cancel only: undo first what each run has done.
    #[serde(default)]
    pub rollback: bool,
}

/// How far a job is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkView {
    pub job_id: JobId,
    pub action: BulkAction,
    pub filter: RunQuery,
    pub reason: String,
    #[serde(default)]
    pub rollback: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// Runs that the job acts on, fixed when it was made.
    pub total: u32,
    /// Runs that it has dealt with: `succeeded + failed`.
    pub done: u32,
    pub succeeded: u32,
    pub failed: u32,
    pub finished: bool,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

/// A page of jobs, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkList {
    pub jobs: Vec<BulkView>,
    /// Pass it as `after` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<JobId>,
}

/// A run that a job left as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkFailureView {
    pub position: u32,
    pub run_id: RunId,
    pub code: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkFailureList {
    pub failures: Vec<BulkFailureView>,
    /// Pass it as `after` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<u32>,
}
