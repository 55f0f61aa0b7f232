//! What `decide` answers: a [`ChangeSet`], the rows to write, all or none, guarded by the run's version. The store
//! writes them and knows no rules; [`Run::apply`] brings the state in memory to where the rows are.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use utoipa::ToSchema;

use crate::ids::{ApprovalId, KeyId, OutboxId, ReceiptId, RunId, SessionId, SignalId, TenantId};
use crate::json::{Hash, HashHex, Json};
use crate::plan::StepSpec;
use crate::plan::retry::StepError;
use crate::run::approval::{AccountRights, Approval, Vote};
use crate::run::assignment::{AssignmentRecord, RunAssignment};
use crate::run::decision::DecisionRecord;
use crate::run::receipt::{EffectHold, Receipt};
use crate::run::{Awaited, Header, Notes, Phase, Run, Step, Wait, Wake};
use crate::state::{ApprovalState, Control, Detail, Initiator, Reason, RunState, StepKind, StepState};
use crate::tenant::caps::WorkflowCaps;
use crate::time::Timestamp;

/// Everything one command changes about one run.
#[derive(Debug, Clone)]
pub struct ChangeSet {
    pub tenant: TenantId,
    pub run: RunId,
    /// The version that must stand in the store; `None` for a run that is being made.
    pub expected: Option<u64>,
    pub at: Timestamp,
    pub start: Option<Box<Start>>,
    pub live: LiveChange,
    pub end: Option<Box<End>>,
    /// At least one row; the last row's `seq` is the new version.
    pub journal: SmallVec<[JournalRow; 1]>,
    pub claim: ClaimChange,
    /// The workflow's own limits, where it has some and the change takes a claim.
    pub workflow_caps: Option<Box<WorkflowCaps>>,
    pub side: Vec<SideWrite>,
    pub delta: Delta,
}

/// The rows of a run that is being made.
#[derive(Debug, Clone)]
pub struct Start {
    pub header: Arc<Header>,
    pub plan_hash: Hash,
    /// The canonical plan text; the store writes it once per hash.
    pub plan: Json,
    pub workflow: String,
    pub workflow_version: u32,
}

/// What happens to the `run_live` row.
#[derive(Debug, Clone)]
pub enum LiveChange {
    /// A new row, or one whose control or indexed columns change.
    Put(Box<LiveRow>),
    /// Neither the control nor a column that an index sees has changed: the hot path of a worker that goes on to the
    /// next step.
    Advance(Box<LiveRow>),
    /// The run has ended.
    Gone,
}

/// The one row of a run that is not terminal: all that claims, timers and the reaper look for.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveRow {
    pub version: u64,
    pub control: Control,
    pub state: RunState,
    pub detail: Option<Detail>,
    pub reason: Option<Reason>,
    pub position: u32,
    pub step_state: StepState,
    pub attempt: u32,
    pub failures: u32,
    pub iteration: u32,
    pub workspace: String,
    pub queue: String,
    pub priority: i32,
    /// Set while the current step is claimable: `ready` and the run active.
    pub eligible_at: Option<Timestamp>,
    /// Set while the current step is running.
    pub session: Option<SessionId>,
    pub claimed_at: Option<Timestamp>,
    /// When a running step times out. Not indexed: running rows are few and found by their session.
    pub step_timeout_at: Option<Timestamp>,
    /// The next instant at which a timer must look at the run: deadline, wait, approval clocks.
    pub wake_at: Option<Timestamp>,
    pub step_data: Option<StepData>,
    pub notes: Option<Notes>,
}

/// The data of the current step that is rare enough to live in one JSON column.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepData {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake: Option<Wake>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_intent: Option<ReceiptId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<StepError>,
    /// Where the step is ready but the run is paused, the instant that `eligible_at` will be again; of a doubt, from
    /// when on it can be known that the effect did not happen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_at: Option<Timestamp>,
}

/// What is written once when a run ends.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    pub state: RunState,
    pub reason: Option<Reason>,
    pub position: u32,
    pub finished_at: Timestamp,
    pub duration_ms: u64,
    pub output: Option<Json>,
    pub error: Option<StepError>,
    pub notes: Option<Notes>,
}

/// One row of the journal: some events, dense, and at most one step that finished with them.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalRow {
    /// The `seq` of the first and of the last event in it.
    pub first_seq: u64,
    pub seq: u64,
    /// A JSON array of [`crate::run::event::Event`].
    pub events: Json,
    pub context: Context,
    pub done: Option<Box<Done>>,
}

/// A step that finished, written once. The state of a step that is not the current one is read from here: the latest
/// record of a position counts. A step that a restart went back over has a record that says `pending`; what it
/// answered before stands in an earlier one. A step that was never activated has none: it is `pending`, or `canceled`
/// in a run that has been canceled or is rolling back on request.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    pub position: u32,
    pub state: StepState,
    pub attempt: u32,
    pub failures: u32,
    pub iteration: u32,
    pub claimed_at: Option<Timestamp>,
    pub input: Option<Json>,
    pub output: Option<Json>,
    pub error: Option<StepError>,
    pub why: Option<String>,
}

/// The field of a context's metadata that has the name of a key.
pub const KEY_NAME: &str = "key_name";

/// The name of the key that the metadata of a [`Context`] tell of.
pub fn key_name(metadata: &Json) -> Option<String> {
    let noted: serde_json::Map<String, serde_json::Value> = metadata.decode().ok()?;
    noted.get(KEY_NAME).and_then(serde_json::Value::as_str).map(str::to_owned)
}

/// A key, for people to read. No person's name has a blank in it, so that none can be taken for one.
pub fn key_in_words(name: &str, owner: Option<&str>) -> String {
    // A name with blanks in it could say that it is of somebody.
    let is_word = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '@' | ':' | '+'));
    let name = if is_word { Cow::Borrowed(name) } else { Cow::Owned(format!("{name:?}")) };
    match owner {
        Some(owner) => format!("key {name} of {owner}"),
        None => format!("key {name}"),
    }
}

/// Who caused a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Context {
    pub initiator: Initiator,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// Who else has held what it was done with: the maker of the key, of the webhook's secret. It may have been them, so
    /// they decide nothing that `person` may not. The history names the key.
    #[serde(skip)]
    pub makers: Vec<String>,
}

impl Context {
    pub const SYSTEM: Self = Self::by(Initiator::System);
    pub const TIMEOUT: Self = Self::by(Initiator::Timeout);

    /// By no person in particular.
    pub const fn by(initiator: Initiator) -> Self {
        Self { initiator, person: None, metadata: None, makers: Vec::new() }
    }

    /// With the API key that it was done with, beside what was noted before: its id and its name, nothing that opens
    /// anything.
    #[must_use]
    pub fn with_key(self, id: KeyId, name: &str) -> Self {
        self.telling("key", &id.to_string()).telling(KEY_NAME, name)
    }

    /// The name of the key that it was done with.
    pub fn key_name(&self) -> Option<String> {
        key_name(self.metadata.as_ref()?)
    }

    /// Who did it, for people to read: the person, or `key deploy-bot`, with the key's owner where it has one.
    pub fn who(&self) -> Option<String> {
        match (self.key_name(), &self.person) {
            (Some(key), person) => Some(key_in_words(&key, person.as_deref())),
            (None, person) => person.clone(),
        }
    }

    /// With one more field in its metadata.
    pub fn telling(self, name: &str, what: &str) -> Self {
        let told = self.metadata.as_ref().and_then(|metadata| metadata.to_value().ok());
        let mut told = told.unwrap_or_else(|| serde_json::Value::Object(serde_json::Map::new()));
        if let Some(fields) = told.as_object_mut() {
            fields.insert(name.to_owned(), what.into());
        }
        Self { metadata: Some(Json::trusted(told.to_string())), ..self }
    }

    pub fn of(initiator: Initiator, person: impl Into<String>) -> Self {
        Self { person: Some(person.into()), ..Self::by(initiator) }
    }

    pub fn operator(person: impl Into<String>) -> Self {
        Self::of(Initiator::Operator, person)
    }
}

/// What a change does to the number of live claims of its tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimChange {
    /// Nothing, or a claim handed on from one step of the run to the next.
    None,
    /// A new live claim, which the caps of the tenant and of the workflow must admit. `first`: nothing of the run was
    /// claimed before, so it also counts against the runs per minute.
    Take {
        first: bool,
    },
    Release,
}

/// Rows beside the run's own, written in the same commit. Those marked as guards can refuse the whole set.
#[derive(Debug, Clone)]
pub enum SideWrite {
    /// Guard: the (client, key) pair must be new.
    Idempotency(Box<IdempotencyRow>),
    /// Guard: no other active run may hold the subject, and none may wait for it that came earlier.
    TakeSubject {
        subject: String,
    },
    FreeSubject {
        subject: String,
    },
    /// The run waits until it is the first in the subject's queue and no other run holds the subject. Guard: there is
    /// room in the queue. `cancels`: the run before it is to be canceled.
    QueueSubject {
        subject: String,
        cancels: bool,
    },
    LeaveQueue {
        subject: String,
    },
    /// The run continues an earlier one that has ended. Guard: no other run does.
    ContinueRun {
        earlier: RunId,
    },
    AddStep {
        position: u32,
        spec: Box<StepSpec>,
    },
    OpenWait {
        position: u32,
        awaited: Awaited,
        opened_at: Timestamp,
    },
    CloseWait {
        position: u32,
    },
    /// Guard: the signal must not have been consumed; a broadcast, not by this run.
    ConsumeSignal {
        signal: SignalId,
        position: u32,
        broadcast: bool,
    },
    PutApproval {
        position: u32,
        approval: Box<Approval>,
    },
    /// Guard: a person has one vote.
    Vote {
        approval: ApprovalId,
        vote: Vote,
    },
    /// A vote counts no more. The history keeps it.
    DropVote {
        approval: ApprovalId,
        person: String,
    },
    /// Guard: the account that a vote rests on is not disabled, and has these roles and groups.
    CheckAccount(Box<AccountRights>),
    /// Inserts, or moves the state of, a receipt. Guard: a new one's key must be new, and one that moves on stands where
    /// it can: an outcome needs an open intent of the same run, a new intent one that is known to have failed, or one
    /// that may be repeated.
    PutReceipt(Box<Receipt>),
    /// Refused where another run has it.
    HoldEffect(Box<EffectHold>),
    PutDecision(Box<DecisionRecord>),
    /// Inserts, or moves the state of, an offer of the run to a worker session.
    PutAssignment(Box<AssignmentRecord>),
    Outbox(Box<OutboxRow>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct IdempotencyRow {
    pub client: String,
    pub key: String,
    pub source: String,
    pub request_hash: Hash,
    pub expires_at: Timestamp,
}

/// A message to the outside.
#[derive(Debug, Clone, PartialEq)]
pub struct OutboxRow {
    pub id: OutboxId,
    /// Where it goes: relays keep the order per run and destination.
    pub destination: String,
    pub payload: Json,
}

/// The new values of the state in memory.
#[derive(Debug, Clone)]
pub struct Delta {
    pub control: Control,
    pub state: RunState,
    pub detail: Option<Detail>,
    pub reason: Option<Reason>,
    pub position: u32,
    pub steps: SmallVec<[(u32, Step); 2]>,
    pub added: Option<Arc<Vec<StepSpec>>>,
    pub notes: Option<Notes>,
    pub finished_at: Option<Timestamp>,
    /// The bundle that an event of the change names.
    pub named_bundle: Option<HashHex>,
}

impl ChangeSet {
    pub fn version(&self) -> u64 {
        self.journal.last().map_or(0, |row| row.seq)
    }
}

impl ChangeSet {
    /// Inputs, outputs and what signals brought, wherever they stand in it; some stand in several places.
    pub fn payloads(&self) -> impl Iterator<Item = &Json> {
        let inputs = self.start.iter().map(|start| &start.header.inputs);
        let data = match &self.live {
            LiveChange::Put(row) | LiveChange::Advance(row) => row.step_data.as_ref(),
            LiveChange::Gone => None,
        };
        let data = data.into_iter().flat_map(|data| data.input.iter().chain(woken_by(data.wake.as_ref())));
        let done = self.journal.iter().filter_map(|row| row.done.as_ref());
        let done = done.flat_map(|done| done.input.iter().chain(&done.output));
        let end = self.end.iter().filter_map(|end| end.output.as_ref());
        let steps = self.delta.steps.iter().flat_map(|(_, step)| step.payloads());
        inputs.chain(data).chain(done).chain(end).chain(steps)
    }

    /// Puts something else in the place of some payloads, everywhere they stand.
    pub fn replace_payloads(&mut self, replacement: impl Fn(&Json) -> Option<Json>) {
        let replace = |json: &mut Json| {
            if let Some(other) = replacement(json) {
                *json = other;
            }
        };
        if let Some(start) = &mut self.start
            && let Some(inputs) = replacement(&start.header.inputs)
        {
            Arc::make_mut(&mut start.header).inputs = inputs;
        }
        if let LiveChange::Put(row) | LiveChange::Advance(row) = &mut self.live
            && let Some(data) = &mut row.step_data
        {
            let wake = data.wake.as_mut().and_then(|wake| wake.payload.as_mut());
            data.input.iter_mut().chain(wake).for_each(replace);
        }
        for done in self.journal.iter_mut().filter_map(|row| row.done.as_mut()) {
            done.input.iter_mut().chain(&mut done.output).for_each(replace);
        }
        self.end.iter_mut().filter_map(|end| end.output.as_mut()).for_each(replace);
        for (_, step) in &mut self.delta.steps {
            step.replace_payloads(&replacement);
        }
    }
}

fn woken_by(wake: Option<&Wake>) -> Option<&Json> {
    wake.and_then(|wake| wake.payload.as_ref())
}

impl Run {
    /// Brings the state to where the change set's rows are, once they are committed.
    pub fn apply(&mut self, change: &ChangeSet) {
        let delta = &change.delta;
        self.version = change.version();
        self.control = delta.control;
        self.state = delta.state;
        self.detail = delta.detail;
        self.reason = delta.reason;
        self.position = delta.position;
        self.finished_at = delta.finished_at;
        self.named_bundle = delta.named_bundle.or(self.named_bundle);
        if let Some(added) = &delta.added {
            self.added = Arc::clone(added);
            self.steps.resize_with(self.plan.steps.len() + added.len(), Step::default);
        }
        for (position, step) in &delta.steps {
            self.steps[*position as usize] = step.clone();
        }
        if let Some(notes) = &delta.notes {
            self.notes = notes.clone();
        }
    }
}

/// The values a live row is made of, borrowed from a run or from a draft of its next state.
pub struct LiveParts<'a> {
    pub version: u64,
    pub control: Control,
    pub state: RunState,
    pub detail: Option<Detail>,
    pub reason: Option<Reason>,
    pub position: u32,
    pub header: &'a Header,
    pub spec: &'a StepSpec,
    pub step: &'a Step,
    pub notes: &'a Notes,
}

/// The values of the columns that some index of `run_live` sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexedColumns<'a> {
    pub eligible_at: Option<Timestamp>,
    pub session: Option<SessionId>,
    pub wake_at: Option<Timestamp>,
    pub queue: &'a str,
}

fn sooner(at: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    match (at, other) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

impl<'a> LiveParts<'a> {
    pub fn of(run: &'a Run) -> Self {
        Self {
            version: run.version,
            control: run.control,
            state: run.state,
            detail: run.detail,
            reason: run.reason,
            position: run.position,
            header: &run.header,
            spec: run.spec(run.position),
            step: run.current(),
            notes: &run.notes,
        }
    }

    pub fn indexed(&self) -> IndexedColumns<'a> {
        let mut columns = IndexedColumns {
            eligible_at: None,
            session: self.step.session(),
            wake_at: self.header.deadline_at.filter(|_| self.deadline_applies()),
            queue: &self.spec.queue,
        };
        columns.wake_at = sooner(columns.wake_at, self.assignment().and_then(RunAssignment::wake_at));
        match &self.step.phase {
            Phase::Ready { eligible_at, .. } if self.is_to_be_had() => {
                columns.eligible_at = Some(*eligible_at);
            }
            Phase::WaitingApproval(approval) if approval.state == ApprovalState::Requested => {
                columns.wake_at = sooner(columns.wake_at, sooner(Some(approval.expires_at), approval.escalate_at));
            }
            Phase::WaitingSignal(wait) => columns.wake_at = sooner(columns.wake_at, wait.deadline_at),
            _ => {}
        }
        columns
    }

    fn assignment(&self) -> Option<&'a RunAssignment> {
        self.notes.assignment.as_deref()
    }

    /// Whether a step that is ready can be claimed: the run goes on, and no worker is being asked to have the step.
    fn is_to_be_had(&self) -> bool {
        let is_asked = |assignment: &RunAssignment| assignment.offered().is_some();
        let is_offered = self.spec.rules.workdir.is_some() && self.assignment().is_some_and(is_asked);
        self.control == Control::Active && !is_offered
    }

    /// A paused run's clocks go on. A doubt, a cancel or a rollback under way is not ended by the deadline.
    fn deadline_applies(&self) -> bool {
        self.control != Control::Canceling
            && self.spec.kind() != StepKind::Rollback
            && !matches!(self.step.phase, Phase::InDoubt { .. })
            // What it did since the backup is not known, so nothing must begin by itself.
            && !self.notes.restored
    }

    fn step_data(&self) -> Option<StepData> {
        let step = self.step;
        let mut data = StepData {
            input: step.input.clone(),
            open_intent: step.open_intent,
            last_error: step.last_error.clone(),
            ..StepData::default()
        };
        match &step.phase {
            Phase::Ready { eligible_at, wake } => {
                data.wake.clone_from(wake);
                data.ready_at = (!self.is_to_be_had()).then_some(*eligible_at);
            }
            Phase::Running { wake, .. } => data.wake.clone_from(wake),
            Phase::WaitingApproval(approval) => {
                data.approval = Some((**approval).clone());
                data.wake.clone_from(&step.interrupted);
            }
            Phase::WaitingSignal(wait) => data.wait = Some((**wait).clone()),
            Phase::InDoubt { receipt, known_at } => {
                data.open_intent = Some(*receipt);
                data.ready_at = Some(*known_at);
                data.wake.clone_from(&step.interrupted);
            }
            Phase::Pending
            | Phase::Succeeded
            | Phase::Skipped { .. }
            | Phase::Failed
            | Phase::Canceled
            | Phase::RolledBack => {}
        }
        (data != StepData::default()).then_some(data)
    }

    pub fn row(&self) -> LiveRow {
        let indexed = self.indexed();
        let step = self.step;
        LiveRow {
            version: self.version,
            control: self.control,
            state: self.state,
            detail: self.detail,
            reason: self.reason,
            position: self.position,
            step_state: step.state(),
            attempt: step.attempt,
            failures: step.failures,
            iteration: step.iteration,
            workspace: self.header.workspace.clone(),
            queue: indexed.queue.to_owned(),
            priority: self.header.priority,
            eligible_at: indexed.eligible_at,
            session: indexed.session,
            claimed_at: step.claimed_at,
            step_timeout_at: match step.phase {
                Phase::Running { timeout_at, .. } => timeout_at,
                _ => None,
            },
            wake_at: indexed.wake_at,
            step_data: self.step_data(),
            notes: (!self.notes.is_empty()).then(|| self.notes.clone()),
        }
    }
}

impl LiveRow {
    /// The row that stands for the run as it is.
    pub fn of(run: &Run) -> Self {
        LiveParts::of(run).row()
    }
}
