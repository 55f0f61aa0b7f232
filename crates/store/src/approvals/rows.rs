use interlock_core::ids::{ApprovalId, RunId};
use interlock_core::json::Json;
use interlock_core::run::approval::{Others, Purpose, Vote};
use interlock_core::state::ApprovalState;
use interlock_core::time::Timestamp;

/// An approval as a list shows it, with the votes cast.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalRow {
    pub id: ApprovalId,
    pub run: RunId,
    pub workflow: String,
    pub subject: Option<String>,
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
    /// What was there when people were asked: a list of `PresentState`.
    pub present_state: Option<Json>,
    /// The lists of people who must agree as well as the first one.
    pub and_from: Vec<Others>,
    pub votes: Vec<Vote>,
}

impl ApprovalRow {
    /// When an answer is due. One that is overdue has no such instant any more, and is due since it was asked: so it comes
    /// first. The statements say the same.
    pub fn due_at(&self) -> Timestamp {
        self.escalate_at.unwrap_or(self.requested_at)
    }
}

/// Which approvals of a tenant are listed. What is left out does not matter.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalFilter {
    pub state: ApprovalState,
    pub workflow: Option<String>,
    pub subject: Option<String>,
    pub workspace: Option<String>,
    /// Asked then or later.
    pub since: Option<Timestamp>,
    /// Due before then.
    pub due_before: Option<Timestamp>,
    /// At least so many people are needed.
    pub quorum: u32,
}

impl ApprovalFilter {
    pub const fn in_state(state: ApprovalState) -> Self {
        Self { state, workflow: None, subject: None, workspace: None, since: None, due_before: None, quorum: 0 }
    }
}

/// A place in the list that is ordered by when approvals are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DuePlace {
    pub due_at: Timestamp,
    pub approval: ApprovalId,
}
