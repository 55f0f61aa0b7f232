use interlock_core::bulk::BulkAction;
use interlock_core::ids::{JobId, RunId};
use interlock_core::json::Json;
use interlock_core::time::Timestamp;

#[derive(Debug, Clone, PartialEq)]
pub struct BulkJob {
    pub id: JobId,
    pub action: BulkAction,
    /// The filter as it was asked for.
    pub filter: Json,
    pub reason: String,
    pub rollback: bool,
    pub person: Option<String>,
    /// The name of the key that it was asked for with, where that belongs to no person.
    pub key: Option<String>,
    /// The other person who has had the key in hand that it was asked for with.
    pub maker: Option<String>,
    /// Fixed when the job is made. Empty where a list leaves them out.
    pub runs: Vec<RunId>,
    pub total: u32,
    /// How many of the runs have been dealt with.
    pub next: u32,
    pub succeeded: u32,
    pub failed: u32,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

/// Why one run of a job was left as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkFailure {
    pub position: u32,
    pub run: RunId,
    pub code: String,
    pub message: String,
}
