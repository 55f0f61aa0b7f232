use interlock_core::ids::{ApprovalId, RunId};
use interlock_core::json::Json;
use interlock_core::run::approval::{Purpose, Vote};
use interlock_core::state::ApprovalState;
use interlock_core::time::Timestamp;

/// An approval as a list shows it, with the votes cast.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalRow {
    pub id: ApprovalId,
    pub run: RunId,
    pub position: u32,
    pub state: ApprovalState,
    pub quorum: u32,
    pub approvers: Vec<String>,
    pub message: Option<String>,
    pub requested_at: Timestamp,
    pub escalate_at: Option<Timestamp>,
    pub expires_at: Timestamp,
    pub resolved_at: Option<Timestamp>,
    pub excluded: Vec<String>,
    pub purpose: Purpose,
    /// What exactly is approved, where it is an action.
    pub action: Option<Json>,
    pub votes: Vec<Vote>,
}
