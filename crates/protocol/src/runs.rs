//! What is asked and answered about runs. Instants are Unix milliseconds, spans are milliseconds.

use std::collections::BTreeMap;

use interlock_core::cost::Cost;
use interlock_core::ids::{ApprovalId, ReceiptId, RunId, SessionId, SignalId, TenantId};
use interlock_core::json::Json;
use interlock_core::machine::step::Resolution;
use interlock_core::plan::Plan;
use interlock_core::plan::retry::StepError;
use interlock_core::plan::rules::{OnConflict, StepPhase};
use interlock_core::run::Trigger;
use interlock_core::run::assignment::AssignmentFailure;
use interlock_core::run::metrics::RunMetrics;
use interlock_core::run::receipt::Receipt;
use interlock_core::run::told::EventView;
use interlock_core::state::{Admission, AssignmentState, Control, Detail, Reason, RunState, StepState};
use interlock_core::time::Timestamp;
use interlock_core::work::credential::CredentialUsed;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where the calls live.
pub mod path {
    pub const RUNS: &str = "/api/v1/runs";
    pub const RUN: &str = "/api/v1/runs/{run}";
    pub const STEPS: &str = "/api/v1/runs/{run}/steps";
    pub const ATTEMPTS: &str = "/api/v1/runs/{run}/attempts";
    pub const RECEIPTS: &str = "/api/v1/runs/{run}/receipts";
    /// A payload too long for its row.
    pub const PAYLOAD: &str = "/api/v1/runs/{run}/payloads/{sha256}";
    pub const EVENTS: &str = "/api/v1/runs/{run}/events";
    pub const WHY: &str = "/api/v1/runs/{run}/why";
    pub const CANCEL: &str = "/api/v1/runs/{run}/cancel";
    pub const PAUSE: &str = "/api/v1/runs/{run}/pause";
    pub const RESUME: &str = "/api/v1/runs/{run}/resume";
    pub const RETRY: &str = "/api/v1/runs/{run}/retry";
    pub const REASSIGN: &str = "/api/v1/runs/{run}/reassign";
    pub const SKIP: &str = "/api/v1/runs/{run}/skip";
    pub const RESTART: &str = "/api/v1/runs/{run}/restart";
    pub const ROLLBACK: &str = "/api/v1/runs/{run}/rollback";
    pub const LABELS: &str = "/api/v1/runs/{run}/labels";
    pub const RESOLVE: &str = "/api/v1/runs/{run}/steps/{step}/resolve";
    pub const OUTPUT: &str = "/api/v1/runs/{run}/steps/{step}/output";
    pub const RUN_SIGNALS: &str = "/api/v1/runs/{run}/signals";
    pub const SIGNALS: &str = "/api/v1/signals";
    pub const WAITS: &str = "/api/v1/waits";
}

/// Bounds of the run calls.
pub mod limits {
    use interlock_core::time::Millis;

    /// Runs, or events, of one answer.
    pub const PAGE_MAX: usize = 500;
    /// How long a read may wait for news.
    pub const WAIT_MAX: Millis = Millis::from_secs(60);
}

/// Starts a run. Sent again under the same `Idempotency-Key`, it names the run that the first one made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartRun {
    /// The workflow's name. A run is made of a workflow or of a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// The workflow's version; the newest one where omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// A plan instead of a workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    #[serde(default = "no_inputs")]
    pub inputs: Json,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// What the run is about, instead of what the workflow says; one active run per subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What becomes of the request while another run holds the subject; `reject` where omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_conflict: Option<OnConflict>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Instead of the workflow's priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
}

fn no_inputs() -> Json {
    Json::trusted("{}")
}

/// A run was made, or (`signaled`) the run that holds the subject got a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Started {
    pub run_id: RunId,
    pub admission: Admission,
}

/// Where a run stands after a directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Standing {
    pub run_id: RunId,
    pub state: RunState,
    /// The `seq` of the run's last event.
    pub version: u64,
    /// The votes that the directive still needs before it is carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<VotesNeeded>,
}

/// A directive that other people have to agree to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VotesNeeded {
    /// The approval that they vote on; the same directive counts as a vote too.
    pub approval: ApprovalId,
    pub approved: u32,
    pub needed: u32,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunView {
    pub run_id: RunId,
    pub tenant: TenantId,
    pub workspace: String,
    pub workflow: String,
    pub workflow_version: u32,
    pub state: RunState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Detail>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
    /// The step that the run stands at.
    pub position: u32,
    pub version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Inputs that the workflow declares searchable, as texts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub searchable: BTreeMap<String, String>,
    /// The W3C trace context that the run was started in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// What tracing systems have added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracestate: Option<String>,
    pub trigger: Trigger,
    pub priority: i32,
    /// A person, or `key deploy-bot`, with `of` its owner where the key has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_run_id: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<RunId>,
    /// The run that `retry` or `restart` made from this one. There is one at most; the next is made from that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continued_by: Option<RunId>,
    pub resume_count: u32,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// When the worker that has the step was last heard of; only where a single run is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_heartbeat_at: Option<Timestamp>,
    /// What its attempts have cost so far, in millionths; only where a single run is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent_micros: Option<u64>,
    /// The unit of that, where the workflow names one (`limits.unit`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent_unit: Option<String>,
    /// The run in numbers, once it has ended; only where a single run is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<RunMetrics>,
    /// Tokens that its attempts have reported so far; only where a single run is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// The worker that has the run as a whole, or is asked to take it; only where a single run is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<AssignmentView>,
    /// Who has canceled it, and why; only where a single run is asked for, like the next two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancellation: Option<DirectiveView>,
    /// Who has paused it, and why, or the rule that did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<DirectiveView>,
    /// What was undone, in that order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<UndoneView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    pub inputs: Json,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Json>,
}

/// The worker of a run whose commands share a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AssignmentView {
    /// The number of the last offer.
    pub attempt: u32,
    /// `offered` or `acked`; absent while no worker is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<AssignmentState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Attempts to find a worker that came to nothing, with the reason of each worker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<AssignmentFailure>,
    /// The worker was lost while it ran a step: `reassign` has another one looked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
}

/// What a person, or a rule of the workflow, has asked of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DirectiveView {
    /// A person, or `key deploy-bot`, with `of` its owner where the key has one; absent where a rule did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    pub reason: String,
    pub at: Timestamp,
}

/// A step that was undone, or could not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UndoneView {
    /// The position of the step, and that of the rollback step which undid it.
    pub position: u32,
    pub by_position: u32,
    pub outcome: StepState,
    /// Whether something has shown that the rollback took effect: the target, read back, or what the workflow names for it. `false` where
    /// nothing has looked, or what looked has failed; left out of what is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    pub at: Timestamp,
    /// The receipts of what the rollback step did, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receipts: Vec<ReceiptId>,
}

/// What stands in the place of an input or output that is too long to come along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PayloadView {
    #[serde(rename = "$payload")]
    pub payload: PayloadAt,
}

/// Which payload, how long it is, and where to get it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PayloadAt {
    pub sha256: String,
    pub bytes: u64,
    pub url: String,
}

/// A page of runs, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    pub runs: Vec<RunView>,
    /// Pass it as `after` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<RunId>,
}

/// States of runs, any of which will do: one, or a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct States(pub Vec<RunState>);

impl States {
    /// A run in one of these waits for a person: it stopped and needs a directive, or its approval is open.
    pub const NEED_A_PERSON: &'static [RunState] = &[RunState::Paused, RunState::WaitingApproval];

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for States {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [one] => one.serialize(serializer),
            more => more.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for States {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // By hand, because an untagged choice says nothing about a state that there is none of.
        match serde_json::Value::deserialize(deserializer)? {
            one @ serde_json::Value::String(_) => RunState::deserialize(one).map(|state| Self(vec![state])),
            more => Vec::deserialize(more).map(Self),
        }
        .map_err(serde::de::Error::custom)
    }
}

impl utoipa::PartialSchema for States {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        let state = || utoipa::openapi::Ref::from_schema_name("RunState");
        utoipa::openapi::schema::OneOfBuilder::new()
            .item(state())
            .item(utoipa::openapi::schema::ArrayBuilder::new().items(state()))
            .into()
    }
}

impl ToSchema for States {
    fn schemas(schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>) {
        schemas.push(("RunState".to_owned(), <RunState as utoipa::PartialSchema>::schema()));
    }
}

/// Which runs: those that have all of this in common. At most three labels and inputs together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunQuery {
    /// The run is in this state, or in one of these.
    #[serde(default, skip_serializing_if = "States::is_empty")]
    pub state: States,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What caused the run: `api`, `schedule`, `webhook` …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Inputs that the workflow declares searchable.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, String>,
    /// Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_from: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_before: Option<Timestamp>,
}

/// The effects of a run, in the order of their intents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReceiptList {
    pub receipts: Vec<Receipt>,
    /// The hash of the policy bundle that allowed the effect, by the receipt's id; absent where no policy was asked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bundles: BTreeMap<String, String>,
}

/// A step that waits for a signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WaitView {
    pub run_id: RunId,
    pub position: u32,
    /// The step's key. Absent where the run has ended in the meantime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    #[serde(rename = "type")]
    pub signal: String,
    pub key: String,
    /// Signals received before this instant do not count.
    pub accept_from: Timestamp,
    pub opened_at: Timestamp,
}

/// A page of waits, by type, key and age.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WaitList {
    pub waits: Vec<WaitView>,
    /// Pass it as `after` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<String>,
}

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StepView {
    pub position: u32,
    pub key: String,
    pub kind: String,
    pub state: StepState,
    pub attempt: u32,
    pub failures: u32,
    pub iteration: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// What it was given: what its templates came to when it was activated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Json>,
    /// Why a step that has failed was not tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_retry: Option<String>,
    /// The part of the runbook that it belongs to, where the workflow says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<StepPhase>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StepList {
    pub steps: Vec<StepView>,
}

/// One attempt at a step: a worker had it, and this became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttemptView {
    pub position: u32,
    /// The step's key.
    pub step: String,
    pub attempt: u32,
    pub session_id: SessionId,
    /// The worker's own name, where it is still known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    pub started_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    pub outcome: AttemptOutcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StepError>,
    /// When the next attempt may begin, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Timestamp>,
    /// What it has cost, as its worker reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The credentials that it was given, as its worker reported: ids and times, never a value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials_used: Vec<CredentialUsed>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    Running,
    Completed,
    /// It failed, and the step is tried again.
    Retried,
    /// It failed, and with it the step.
    Failed,
    /// It is not known whether its effect took place.
    InDoubt,
    /// The step waits for a signal or an approval.
    Waiting,
    /// Its worker was lost or gave it back, or an operator stepped in.
    GivenBack,
    Canceled,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttemptList {
    /// The oldest first.
    pub attempts: Vec<AttemptView>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventList {
    pub events: Vec<EventView>,
    /// Pass it as `last_event_id` for what comes next.
    pub last_event_id: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    pub reason: String,
    /// Undo what has been done first.
    #[serde(default)]
    pub rollback: bool,
}

/// Changes the labels of a run that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeRunLabels {
    /// Set what has a value, remove what is null; labels that are not named stay.
    pub labels: BTreeMap<String, Option<String>>,
}

/// A run's labels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunLabels {
    pub run_id: RunId,
    pub labels: BTreeMap<String, String>,
}

/// Undoes a step and all that came after it; everything without `step`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollBackRun {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepRef>,
    pub reason: String,
}

/// A step of the run: its key, or its position as the run's steps say it, counted from 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum StepRef {
    Position(u32),
    Key(String),
}

/// A directive that needs a reason and nothing else: pause, skip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Because {
    pub reason: String,
}

/// A directive that needs nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Another input for the step; only for a run that has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// The key of the step to go back to; the first one where omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// What became of an effect in doubt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Resolve {
    pub outcome: Resolution,
    /// The step's output, if it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    pub reason: String,
}

/// A signal for a wait on its type and key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Signal {
    #[serde(rename = "type")]
    pub signal: String,
    pub key: String,
    #[serde(default = "Json::null")]
    pub payload: Json,
    /// The sender's own id: the same signal again is dropped, another one under it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
    /// All waits on it get it, now and for a day, each once. Else one wait uses it up, the oldest first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub broadcast: bool,
}

/// A signal for one run: its key is the run's subject, else its id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunSignal {
    #[serde(rename = "type")]
    pub signal: String,
    #[serde(default = "Json::null")]
    pub payload: Json,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
}

/// What became of a signal. One that came before has no id of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Signaled {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal_id: Option<SignalId>,
    pub duplicate: bool,
    /// The runs that it started by `on.signal`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<crate::webhooks::DeliveredRun>,
    /// The workflows that take it by `on.signal` and were not started, with the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<crate::webhooks::SkippedRun>,
}
