//! Approvals and votes. A decision is made by people only; one eligible reject rejects; a quorum of different
//! people approves. The function [`Approval::vote`] is the only way a vote counts, whatever path it came by.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::ApprovalId;
use crate::json::Json;
use crate::limits;
use crate::machine::approval::{ApprovalEvent, next};
use crate::plan::OnDenial;
use crate::rejection::Rejection;
use crate::state::ApprovalState;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    pub id: ApprovalId,
    pub state: ApprovalState,
    pub quorum: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    pub on_reject: OnDenial,
    pub on_expiry: OnDenial,
    pub requested_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate_at: Option<Timestamp>,
    pub expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<Vote>,
    /// People who may not decide: whoever started the run or owns the key that did, and whoever directed it to ask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<String>,
}

/// One person's word on an approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Vote {
    pub person: String,
    pub approve: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    pub at: Timestamp,
}

/// Who is voting, with what the server knows about the person.
#[derive(Debug, Clone)]
pub struct Voter {
    pub person: String,
    pub groups: Vec<String>,
    /// The tenant lets people approve what they started (`approval.self`).
    pub self_approval: bool,
    /// Wrote the version of the workflow that the run has pinned.
    pub author: bool,
}

impl Approval {
    /// The approval after this vote, with its new state. The same person's same word again changes nothing.
    pub fn vote(&self, voter: &Voter, vote: Vote) -> Result<Self, Rejection> {
        let refuse = |why: String| Err(Rejection::VoteRefused { approval: self.id, why });
        if self.state != ApprovalState::Requested {
            return refuse(format!("it is {} already", self.state));
        }
        if let Some(earlier) = self.votes.iter().find(|earlier| earlier.person == voter.person) {
            let word = if earlier.approve { "approved" } else { "rejected" };
            return refuse(format!("{} has {word} it already; a person has one vote", voter.person));
        }
        if self.excluded.contains(&voter.person) && (!voter.self_approval || self.quorum > 1) {
            return refuse(format!("{} started or directed this run and may not decide on it", voter.person));
        }
        if voter.author && self.quorum > 1 {
            return refuse(format!("{} wrote this version of the workflow, and two keys need others", voter.person));
        }
        if !self.approvers.is_empty() && !self.approvers.iter().any(|group| voter.groups.contains(group)) {
            return refuse(format!("{} is in none of the groups {}", voter.person, self.approvers.join(", ")));
        }
        if self.votes.len() >= limits::VOTES_PER_APPROVAL_MAX {
            return refuse("it has reached the limit of votes".into());
        }
        let mut after = self.clone();
        let event = if vote.approve {
            let approvals = 1 + after.votes.iter().filter(|earlier| earlier.approve).count();
            (approvals >= after.quorum as usize).then_some(ApprovalEvent::QuorumReached)
        } else {
            Some(ApprovalEvent::Rejected)
        };
        after.votes.push(vote);
        if let Some(event) = event {
            after.state = next(after.state, event).expect("a requested approval takes every event");
        }
        Ok(after)
    }

    /// What an approved gate leaves behind for later steps: who approved.
    pub fn output(&self) -> Json {
        let people: Vec<&str> =
            self.votes.iter().filter(|vote| vote.approve).map(|vote| vote.person.as_str()).collect();
        Json::trusted(serde_json::json!({ "approval": self.id, "approved_by": people }).to_string())
    }

    /// Moves along an arrow of the machine; staying where it is if the arrow does not exist.
    pub fn closed_by(&self, event: ApprovalEvent) -> Self {
        let mut after = self.clone();
        after.state = next(after.state, event).unwrap_or(after.state);
        after
    }
}
