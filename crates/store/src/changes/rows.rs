use std::str::FromStr;

use interlock_core::ids::{ChangeId, TenantId};
use interlock_core::json::{Hash, Json};
use interlock_core::time::Timestamp;

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeState {
    /// It waits for a second person.
    Requested,
    /// A second admin has agreed; the person who asked carries it out, once.
    Approved,
    Rejected,
    Used,
}

impl ChangeState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Used => "used",
        }
    }
}

impl FromStr for ChangeState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Requested, Self::Approved, Self::Rejected, Self::Used];
        all.into_iter().find(|state| state.as_str() == text).ok_or_else(|| format!("`{text}` is no state of a change"))
    }
}

/// One change, as it was asked for and decided on.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeRow {
    pub tenant: TenantId,
    pub id: ChangeId,
    /// `policy` or `access`.
    pub subject: String,
    pub method: String,
    pub path: String,
    /// What was asked for.
    pub body: Json,
    pub request_hash: Hash,
    pub state: ChangeState,
    pub asked_by: String,
    /// The person who asked, and others who may be behind the request: none of them may decide on it.
    pub excluded: Vec<String>,
    pub asked_at: Timestamp,
    /// Until when it can be decided on; once it is agreed to, until when it can be carried out.
    pub expires_at: Timestamp,
    pub decided_by: Option<String>,
    pub decided_at: Option<Timestamp>,
    pub notes: Option<String>,
    pub used_at: Option<Timestamp>,
}

/// Which changes to list, newest first; `after` is the last one of the page before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangePage {
    /// Only those in this state.
    pub state: Option<ChangeState>,
    pub after: Option<ChangeId>,
    pub limit: usize,
}
