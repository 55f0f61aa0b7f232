//! What an operator looks at: workers, queues, and how everything stands on one screen.

use std::collections::BTreeMap;

use interlock_core::ids::{ApprovalId, OutboundId, RunId, SessionId};
use interlock_core::run::why::Cause;
use interlock_core::state::{AssignmentState, Detail, FaultCheck, Reason, RunState, WorkerState};
use interlock_core::time::{Millis, Timestamp};
use interlock_core::trigger::EndpointState;
use interlock_core::work::WorkerTerms;
use interlock_core::work::fault::WorkerMaintenance;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where the calls live.
pub mod path {
    pub const STATUS: &str = "/api/v1/status";
    pub const WORKERS: &str = "/api/v1/workers";
    pub const WORKER: &str = "/api/v1/workers/{session}";
    pub const WORKER_DRAIN: &str = "/api/v1/workers/{session}/drain";
    pub const WORKER_MAINTENANCE: &str = "/api/v1/workers/{session}/maintenance";
    pub const QUEUES: &str = "/api/v1/queues";
    pub const STATS: &str = "/api/v1/stats";
}

/// Bounds of what one answer holds.
pub mod limits {
    use interlock_core::time::Millis;

    /// Workers of one answer, the ones last heard of first.
    pub const WORKERS_MAX: usize = 500;
    /// Steps that are listed of one worker, and those of them that are named by their key.
    pub const HELD_MAX: usize = 500;
    pub const HELD_NAMED_MAX: usize = 100;
    /// The oldest runs that wait for a person, each with why; and the oldest open approvals.
    pub const OLDEST_MAX: usize = 5;
    pub const APPROVALS_MAX: usize = 10;
    /// Events that wait longer than this for their place in the feed are a problem.
    pub const FEED_LAG_MAX: Millis = Millis::from_secs(60);
    /// And so are those that are not in the audit log after this time.
    pub const AUDIT_LAG_MAX: Millis = Millis::from_secs(60);
    /// Spans of one answer about runs over time, and the shortest and the longest of them.
    pub const SPANS_MAX: u64 = 200;
    pub const SPAN_MIN: Millis = Millis::from_secs(1);
    pub const SPAN_MAX: Millis = Millis::from_hours(24 * 366);
}

/// A worker session: one registration of a worker process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerView {
    pub session_id: SessionId,
    /// The name that the worker gave itself.
    pub worker: String,
    /// `offline` once its lease is over or it has signed off.
    pub state: WorkerState,
    /// Its heartbeats have stopped, though its lease is not over yet.
    #[serde(default)]
    pub silent: bool,
    pub last_heartbeat_at: Timestamp,
    pub lease_expires_at: Timestamp,
    pub registered_at: Timestamp,
    pub queues: Vec<String>,
    /// The tasks that it named; absent where it did not, and takes any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// How many steps it can have at a time, and how many of this tenant it has.
    pub slots: u32,
    pub running: u64,
    /// It is inside a server, and serves all tenants.
    #[serde(default)]
    pub shared: bool,
    /// The environments, network segments and profiles that it works in, by its certificate and by what it named when it
    /// registered; absent for one with an API key that named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<WorkerTerms>,
    /// Why it is `errored`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<WorkerFaultView>,
    /// Who keeps new work from it, why and until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<WorkerMaintenance>,
    /// What people tell it apart by, as it registered.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// What has failed on a worker. It is given no command and no run for a minute, unless it shows before that it is well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerFaultView {
    pub check: FaultCheck,
    /// The run that showed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    pub why: String,
    /// When it was last seen.
    pub since: Timestamp,
}

/// Keeps new work from a worker for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginMaintenance {
    /// Why: it is shown with the worker.
    pub reason: String,
    /// When it ends by itself; only an operator ends it where omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerList {
    /// Those with the newest heartbeat first.
    pub workers: Vec<WorkerView>,
}

/// A worker, and the steps that it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerDetail {
    #[serde(flatten)]
    pub worker: WorkerView,
    /// The oldest first.
    pub holds: Vec<HeldStepView>,
    /// Runs of this tenant that it has as a whole, or is asked to take; the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assigned: Vec<AssignedRunView>,
}

/// A run that a worker has as a whole, or is asked to take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AssignedRunView {
    pub run_id: RunId,
    /// `offered` or `acked`.
    pub state: AssignmentState,
    pub since: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeldStepView {
    pub run_id: RunId,
    pub position: u32,
    /// The key of the step; absent for a run that has just ended, and where the worker has very many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// One of the tenant's queues that has something to do, or a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueueView {
    pub queue: String,
    /// Steps that can be claimed now.
    pub ready: u64,
    /// Steps whose next attempt waits for its time.
    pub delayed: u64,
    pub running: u64,
    /// Since when the oldest step can be claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_ready_at: Option<Timestamp>,
    /// Living workers that take from it.
    pub workers: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueueList {
    /// By name.
    pub queues: Vec<QueueView>,
}

/// How a tenant's work stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatusView {
    /// When this was so, by the server's clock.
    pub at: Timestamp,
    /// What is wrong; empty where all is well.
    pub problems: Vec<StatusProblem>,
    /// Runs that have not ended, by state.
    pub runs: Vec<StateCount>,
    /// How many runs wait for a person, and the oldest of them.
    pub need_a_person: u64,
    pub oldest: Vec<NeedyRun>,
    pub queues: Vec<QueueView>,
    /// Those that live, and those that were lost with steps.
    pub workers: Vec<WorkerView>,
    /// The oldest open approvals.
    pub approvals: Vec<OpenApproval>,
    /// Endpoints of webhooks that do not get their messages.
    pub endpoints: Vec<BrokenEndpoint>,
    /// The newest event that listeners can see; absent for a caller that is limited to a workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feed: Option<FeedState>,
    /// How far the audit log is; absent for a caller that is limited to a workspace, and where none is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditLogState>,
}

/// Something that does not get better by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatusProblem {
    /// A later server may tell of other kinds, and says in `text` what they are.
    #[schema(value_type = ProblemKind)]
    pub kind: String,
    /// In a sentence.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// A run has stopped and needs a directive.
    RunStopped,
    /// Steps wait on a queue from which no living worker takes.
    QueueWithoutWorkers,
    /// A worker that has steps is silent.
    WorkerSilent,
    EndpointFailing,
    /// Events reach listeners late.
    FeedBehind,
    /// Events reach the audit log late.
    AuditBehind,
    /// The store takes no commits: its disk is full, its database is away, or it was restored.
    StoreStopped,
}

impl ProblemKind {
    /// Its name in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RunStopped => "run_stopped",
            Self::QueueWithoutWorkers => "queue_without_workers",
            Self::WorkerSilent => "worker_silent",
            Self::EndpointFailing => "endpoint_failing",
            Self::FeedBehind => "feed_behind",
            Self::AuditBehind => "audit_behind",
            Self::StoreStopped => "store_stopped",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StateCount {
    pub state: RunState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Detail>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    pub runs: u64,
}

/// A run that waits for a person, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NeedyRun {
    pub run_id: RunId,
    pub workflow: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    pub state: RunState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    pub created_at: Timestamp,
    pub because: Vec<Cause>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OpenApproval {
    pub approval: ApprovalId,
    pub run_id: RunId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    pub approved: u32,
    pub needed: u32,
    pub requested_at: Timestamp,
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BrokenEndpoint {
    pub endpoint_id: OutboundId,
    pub url: String,
    pub state: EndpointState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Events of the tenant that it has not been sent yet.
    pub behind: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FeedState {
    /// The cursor of the newest event.
    pub cursor: u64,
    /// For how long committed events have waited for their place in the feed; 0 where none waits.
    pub lag_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditLogState {
    /// Entries of the present log.
    pub entries: u64,
    /// How long ago the oldest happened of what is not in the log: an event that has its place in the feed, or something
    /// apart from runs; 0 where all is.
    pub lag_ms: u64,
}

/// Runs over time: what began and ended in equal spans, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatsView {
    /// When it was counted.
    pub at: Timestamp,
    pub from: Timestamp,
    pub before: Timestamp,
    pub span_ms: Millis,
    /// Whether everything since `from` is counted. Where there was too much, the spans begin later.
    pub whole: bool,
    pub spans: Vec<StatsSpan>,
}

/// What happened in one span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatsSpan {
    pub from: Timestamp,
    pub started: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub canceled: u64,
    /// Runs that had begun and not ended when the span was over, or now.
    pub open: u64,
    /// Approvals that were asked for and not decided by then.
    pub approvals_open: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The schema takes the names from the one, and answers take them from the other.
    #[test]
    fn kinds_of_problems_have_one_name() {
        for kind in [
            ProblemKind::RunStopped,
            ProblemKind::QueueWithoutWorkers,
            ProblemKind::WorkerSilent,
            ProblemKind::EndpointFailing,
            ProblemKind::FeedBehind,
            ProblemKind::AuditBehind,
            ProblemKind::StoreStopped,
        ] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }
}
