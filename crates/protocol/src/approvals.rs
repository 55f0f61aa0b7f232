//! What is asked and answered about approvals.

use interlock_core::ids::{ApprovalId, RunId};
use interlock_core::plan::OnDenial;
use interlock_core::plan::tier::Tier;
use interlock_core::run::approval::{FallenVote, Others, Purpose, Vote};
use interlock_core::run::card::{ActionCard, PresentState};
use interlock_core::state::{ApprovalState, RunState};
use interlock_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where the calls live.
pub mod path {
    pub const APPROVALS: &str = "/api/v1/approvals";
    pub const APPROVAL: &str = "/api/v1/approvals/{approval}";
    pub const DECISION: &str = "/api/v1/approvals/{approval}/decision";
    /// The older name of the same.
    pub const VOTE: &str = "/api/v1/approvals/{approval}/vote";
    pub const APPROVE: &str = "/api/v1/runs/{run}/approve";
}

/// One request for an approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalView {
    pub approval: ApprovalId,
    pub run_id: RunId,
    pub workflow: String,
    /// What the run is about, such as a ticket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The step that waits for it.
    pub position: u32,
    /// The step's key. Lists say it of open approvals only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    pub state: ApprovalState,
    /// What it permits: to pass the gate, to run the step again, or to go on without it.
    pub purpose: Purpose,
    /// What exactly is being approved: a vote names it, and counts for nothing else.
    pub digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What exactly would be done, whole; a gate of the workflow itself is about none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionCard>,
    /// What would change, beside what was there when people were asked, for actions whose connector can read it. It is shown
    /// and is no part of the digest. Absent until it is read, a moment after the question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub present_state: Vec<PresentState>,
    /// How many different people must say yes.
    pub quorum: u32,
    /// The groups whose members may vote; every person with the role may where empty.
    pub approvers: Vec<String>,
    /// Further lists of groups: of each, so many people must agree as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub and_from: Vec<Others>,
    /// People who started or directed the run, and may not vote.
    pub excluded: Vec<String>,
    /// They may vote all the same: the tenant lets people approve their own runs. Said while it is open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub self_approval: bool,
    /// Who started the run that asks: a person, else what did, such as `api` or `schedule`. Said while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<String>,
    /// How much hangs on it. Said while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// Whether the caller could approve it now. Said to people, while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_decide: Option<bool>,
    /// What becomes of the run when an approver rejects it: `fail` or `pause`. Said while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_reject: Option<OnDenial>,
    /// The same when the approval expires undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_expiry: Option<OnDenial>,
    /// The votes that count.
    pub votes: Vec<Vote>,
    /// Votes that were cast and count no more, because their people have lost the right to decide since: others are needed.
    /// Said while it is open; the run's events keep it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallen: Vec<FallenVote>,
    pub requested_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate_at: Option<Timestamp>,
    pub expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalList {
    pub approvals: Vec<ApprovalView>,
    /// Pass it as `after` for the next page; absent on the last one. A page may be short and others follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<String>,
}

/// How a list of approvals is ordered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalOrder {
    /// As they were asked.
    #[default]
    Oldest,
    /// Those that the caller may decide first, and of these what is due first.
    Due,
}

/// What a person decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    Approve,
    Reject,
}

/// One person's decision on an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecideApproval {
    pub decision: ApprovalDecision,
    /// Why. Needed to reject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// The digest of what was looked at. Needed where the tier is high, or where it is not about passing a gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The person whose delegated right to decide is used, where it is not the caller's own. Where omitted, the
    /// caller's own if it is enough, else a delegated one that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<String>,
}

/// One person's vote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CastVote {
    pub approve: bool,
    /// The digest of what was looked at.
    pub digest: String,
    /// Why. Needed to reject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// The person whose delegated right to decide is used, where it is not the caller's own. Where omitted, the
    /// caller's own if it is enough, else a delegated one that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<String>,
}

/// A vote on what a run waits for. Where one approval is open and its tier is not high, nothing else has to be said;
/// otherwise `digest` says what was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Approve {
    pub approve: bool,
    /// Why. Needed to reject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The person whose delegated right to decide is used, where it is not the caller's own. Where omitted, the
    /// caller's own if it is enough, else a delegated one that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<String>,
}

/// Where approval and run stand after a vote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Voted {
    #[serde(flatten)]
    pub approval: ApprovalView,
    /// What was decided, in a sentence.
    pub summary: String,
    pub run_state: RunState,
    /// The `seq` of the run's last event.
    pub run_version: u64,
}
