//! What reads answer with: one plain struct per kind of row.

use interlock_core::approval::{Purpose, Vote};
use interlock_core::caps::Caps;
use interlock_core::change::Context;
use interlock_core::ids::{ApprovalId, OutboxId, RunId, SessionId, SignalId, TenantId};
use interlock_core::json::{Hash, Json};
use interlock_core::receipt::Receipt;
use interlock_core::state::{
    Admission, ApprovalState, Control, Detail, IdempotencyState, Reason, RunState, StepState, WorkerState,
};
use interlock_core::tenant::TenantSettings;
use interlock_core::time::Timestamp;
use interlock_core::work::AttemptRef;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A tenant with its limits.
#[derive(Debug, Clone, PartialEq)]
pub struct Tenant {
    pub id: TenantId,
    pub name: String,
    pub caps: Caps,
    /// Starts past this many pending runs are refused.
    pub pending_runs_max: Option<u32>,
    /// The share of capacity in the round robin.
    pub weight: u32,
    pub created_at: Timestamp,
    pub settings: TenantSettings,
    /// No credential of the tenant counts from then on; what is running goes on.
    pub disabled_at: Option<Timestamp>,
}

impl Tenant {
    /// A tenant without limits.
    pub fn new(id: TenantId, name: impl Into<String>, created_at: Timestamp) -> Self {
        Self {
            id,
            name: name.into(),
            caps: Caps::default(),
            pending_runs_max: None,
            weight: 1,
            created_at,
            settings: TenantSettings::default(),
            disabled_at: None,
        }
    }
}

/// A workflow as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowRow {
    pub name: String,
    /// Rises with every change.
    pub revision: u64,
    pub latest_version: u32,
    /// Takes no starts.
    pub disabled: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Of the latest version, like the two that follow.
    pub source_hash: Hash,
    pub plan_hash: Hash,
    pub created_by: Option<String>,
}

/// One version of a workflow, which never changes.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowVersionRow {
    pub name: String,
    pub version: u32,
    /// The file as it was applied.
    pub source: String,
    pub source_hash: Hash,
    /// What the file says, as JSON.
    pub definition: Json,
    pub plan_hash: Hash,
    pub created_at: Timestamp,
    pub created_by: Option<String>,
}

/// A version without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowVersionSummary {
    pub name: String,
    pub version: u32,
    pub source_hash: Hash,
    pub plan_hash: Hash,
    pub created_at: Timestamp,
    pub created_by: Option<String>,
}

/// One registration of a worker process.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRow {
    pub id: SessionId,
    /// `None` serves all tenants: the embedded worker.
    pub tenant: Option<TenantId>,
    pub worker: String,
    pub build_id: Option<String>,
    pub queues: Vec<String>,
    pub slots: u32,
    pub state: WorkerState,
    pub registered_at: Timestamp,
    pub lease_expires_at: Timestamp,
    pub heartbeat_at: Timestamp,
    /// The tasks and capabilities that the worker named; `None` where it did not say.
    pub tasks: Option<Vec<String>>,
    pub capabilities: Option<Vec<String>>,
    /// Claims that its last heartbeat did not list.
    pub unlisted: Vec<Unlisted>,
}

/// A claim that the heartbeats of its session have not listed since an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unlisted {
    #[serde(flatten)]
    pub at: AttemptRef,
    pub since: Timestamp,
}

/// Runs that share one place in the round robin.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReadyGroup {
    pub tenant: TenantId,
    pub workspace: String,
    pub queue: String,
}

/// A run whose current step can be claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyRun {
    pub tenant: TenantId,
    pub run: RunId,
    pub workspace: String,
    pub queue: String,
    pub priority: i32,
    pub eligible_at: Timestamp,
}

/// A running step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    pub tenant: TenantId,
    pub run: RunId,
    pub position: u32,
    pub attempt: u32,
    pub session: SessionId,
    pub control: Control,
}

impl Claimed {
    pub const fn at(&self) -> AttemptRef {
        AttemptRef { tenant: self.tenant, run: self.run, position: self.position, attempt: self.attempt }
    }
}

/// What makes a repeated request one request.
#[derive(Debug, Clone, PartialEq)]
pub struct IdempotencyRecord {
    pub source: String,
    pub request_hash: Hash,
    pub state: IdempotencyState,
    pub run: Option<RunId>,
    pub response: Option<Json>,
    pub error: Option<String>,
    pub attempts: u32,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub expires_at: Timestamp,
    pub lock_expires_at: Option<Timestamp>,
}

/// What a request to start a run was answered, kept as the `response` under its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartAnswer {
    pub admission: Admission,
}

/// Who holds a subject and who waits for it, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubjectLine {
    pub holder: Option<RunId>,
    pub queue: Vec<QueuedRun>,
}

/// A run that waits for its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedRun {
    pub run: RunId,
    /// Whoever stands before it is to be canceled.
    pub cancels: bool,
}

/// A wait, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitRow {
    pub run: RunId,
    pub position: u32,
    pub signal_type: String,
    pub key: String,
    /// Signals received before this instant do not count.
    pub accept_from: Timestamp,
    pub opened_at: Timestamp,
}

/// Which waits to list. A key needs a type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitFilter {
    pub workspace: Option<String>,
    pub signal_type: Option<String>,
    pub key: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenWait {
    pub run: RunId,
    pub position: u32,
    pub accept_from: Timestamp,
    pub opened_at: Timestamp,
}

/// A signal that came in.
#[derive(Debug, Clone, PartialEq)]
pub struct SignalRow {
    pub tenant: TenantId,
    pub id: SignalId,
    pub signal_type: String,
    pub key: String,
    pub received_at: Timestamp,
    pub expires_at: Timestamp,
    pub payload: Json,
    /// The sender's own id: the same one again is dropped.
    pub source_id: Option<String>,
    /// For everybody who waits for it, each once.
    pub broadcast: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredSignal {
    pub id: SignalId,
    pub received_at: Timestamp,
    pub payload: Json,
    pub broadcast: bool,
}

/// A (type, key) that has both a signal and a wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    pub tenant: TenantId,
    pub signal_type: String,
    pub key: String,
}

/// One event of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRecord {
    pub seq: u64,
    pub at: Timestamp,
    pub event: Json,
    pub context: Context,
}

/// One event in the tenant's own order.
#[derive(Debug, Clone, PartialEq)]
pub struct TenantEvent {
    pub cursor: u64,
    pub run: RunId,
    pub seq: u64,
    pub at: Timestamp,
    pub event: Json,
}

/// A part of a tenant's feed.
#[derive(Debug, Clone, PartialEq)]
pub struct FeedPage {
    pub events: Vec<TenantEvent>,
    /// Where the next page begins: behind the last event, and behind events that retention has removed.
    pub cursor: u64,
}

/// Which runs a list shows. Everything that is set must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    pub state: Option<RunState>,
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
    /// When the current step can be claimed, while nobody has claimed it.
    pub eligible_at: Option<Timestamp>,
    /// The run that was made from this one.
    pub continued_by: Option<RunId>,
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
    pub votes: Vec<Vote>,
}

/// A receipt with the run it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceiptRow {
    pub run: RunId,
    pub receipt: Receipt,
}

/// A message that is due, the first of its run and destination.
#[derive(Debug, Clone, PartialEq)]
pub struct OutboxMessage {
    pub tenant: TenantId,
    pub id: OutboxId,
    pub run: RunId,
    pub destination: String,
    pub payload: Json,
    pub created_at: Timestamp,
    pub attempts: u32,
}

/// Where the store stands, for metrics and `doctor`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Change sets and ops that were committed, and the groups they went in, since this store was opened.
    pub committed: u64,
    pub refused: u64,
    pub groups: u64,
    /// How many submissions wait now.
    pub queued: u64,
    pub live_runs: u64,
    pub live_claims: u64,
}

/// A setting of the database that decides whether a commit survives a crash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurableSetting {
    pub name: String,
    pub value: String,
    /// The value with which nothing is lost.
    pub wanted: &'static str,
    pub durable: bool,
}

impl DurableSetting {
    pub(crate) fn new(name: String, value: String, wanted: &'static str) -> Self {
        let durable = value == wanted;
        Self { name, value, wanted, durable }
    }
}

/// One thing that `check` found to be wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub check: &'static str,
    pub tenant: Option<TenantId>,
    pub row: String,
    pub what: String,
}

/// How far a check has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckProgress {
    /// Of those that look for rows that contradict each other.
    pub statements: u64,
    pub runs: u64,
}
