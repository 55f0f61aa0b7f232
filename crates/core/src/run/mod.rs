//! The run: the consistency boundary. [`Run`] is everything `decide` may look at; a [`Step`] holds its [`Phase`], the
//! state together with the data that exists only in that state.

pub mod approval;
pub mod assignment;
pub mod card;
pub mod change;
pub mod decision;
pub mod event;
pub mod labels;
pub mod metrics;
pub mod no_retry;
pub mod origin;
pub mod project;
pub mod receipt;
pub mod refused_worker;
pub mod skipped_worker;
pub mod told;
pub mod undoing;
pub mod why;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::cost::Cost;
use crate::ids::{ReceiptId, RunId, SessionId, SignalId, TenantId};
use crate::json::{HashHex, Json};
use crate::limits;
use crate::plan::retry::StepError;
use crate::plan::{Plan, RollbackCondition, StepSpec, Work};
use crate::run::approval::{Approval, Met};
use crate::run::assignment::RunAssignment;
use crate::run::change::key_in_words;
use crate::run::metrics::{ApprovalTally, RunMetrics};
use crate::run::refused_worker::StepRefusals;
use crate::state::{Control, Detail, EffectClass, Reason, RunState, StepKind, StepState, TaskType};
use crate::time::Timestamp;

/// What is fixed when a run is made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub workspace: String,
    pub plan_hash: HashHex,
    pub inputs: Json,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    pub trigger: Trigger,
    pub priority: i32,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage: Option<Lineage>,
    /// The person who started it, or owns the key that did; excluded from approving it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<String>,
}

/// The kind of the trigger of a run that undoes another one, whose id is its reference.
pub const UNDO_TRIGGER: &str = "rollback";

impl Header {
    /// Who started the run, for people to read; what did, where it was no person and no key.
    pub fn starter(&self) -> String {
        self.trigger.starter(self.started_by.as_deref()).unwrap_or_else(|| self.trigger.to_string())
    }

    /// Whether the run was made to undo one that had ended: none of its own steps run, only what undoes them.
    pub fn is_undo(&self) -> bool {
        self.trigger.kind == UNDO_TRIGGER
    }
}

/// An action to which enough people have agreed. It is used up by the intent that it permits, and lapses where it is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreed {
    pub step: u32,
    pub iteration: u32,
    pub action: HashHex,
    /// When they have agreed. What was agreed to before this was kept has lapsed.
    #[serde(default)]
    pub at: Timestamp,
    /// What was asked of them.
    #[serde(default)]
    pub met: Met,
    /// What was done on it, or may have been: attempts of workers that do not say what they do, and effects of the others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub acted: u32,
    /// The last of it is the claim of the present attempt, which has named no effect since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_claimed: bool,
}

impl Agreed {
    /// When they would have agreed to what is over by all means.
    pub const OVER: Timestamp = Timestamp(i64::MIN);

    /// Whether it is leave for what another one is about, at this instant.
    pub fn permits(&self, wanted: &Self, now: Timestamp) -> bool {
        let is_same = (self.step, self.iteration, self.action) == (wanted.step, wanted.iteration, wanted.action);
        is_same && !self.has_lapsed(now)
    }

    pub fn has_lapsed(&self, now: Timestamp) -> bool {
        now >= self.at + limits::GRANT_TTL
    }
}

/// What a step behind a gate was about to do when people let the run pass. If it is about to do something else by then, they are
/// asked anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foreseen {
    pub step: u32,
    pub iteration: u32,
    pub action: HashHex,
    /// What it was to be done with; a long one is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
}

/// Another input for a step, which people were asked about: unless the step has run since, they have refused it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    pub step: u32,
    /// The last attempt before they were asked.
    pub attempt: u32,
    /// What the step was given then.
    pub before: Json,
}

/// What caused a run: `trigger_type` and `trigger_ref` of its row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Trigger {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

impl Trigger {
    /// The kind of a run that a request over HTTP has started.
    pub const API: &'static str = "api";

    /// A request over HTTP, with the name of its key where it came with one.
    pub fn api(key: Option<&str>) -> Self {
        Self { kind: Self::API.to_owned(), reference: key.map(|key| key_in_words(key, None)) }
    }

    /// Who started the run, for people to read: a person, or `key deploy-bot` with the key's owner where it has one.
    pub fn starter(&self, person: Option<&str>) -> Option<String> {
        let key = self.reference.as_deref().filter(|_| self.kind == Self::API).and_then(|key| key.strip_prefix("key "));
        match key {
            Some(key) => Some(key_in_words(key, person)),
            None => person.map(str::to_owned),
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reference {
            Some(reference) => write!(f, "{} {reference}", self.kind),
            None => f.write_str(&self.kind),
        }
    }
}

/// Where a run that continues a terminal one comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineage {
    pub root_run_id: RunId,
    pub resumed_from: RunId,
    pub resume_count: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub tenant: TenantId,
    pub id: RunId,
    pub header: Arc<Header>,
    pub plan: Arc<Plan>,
    /// Rollback steps, appended behind the plan's when a rollback is triggered.
    pub added: Arc<Vec<StepSpec>>,
    /// The `seq` of the last event; the guard of every change.
    pub version: u64,
    pub control: Control,
    pub state: RunState,
    pub detail: Option<Detail>,
    pub reason: Option<Reason>,
    /// The step that the run stands at.
    pub position: u32,
    pub steps: Vec<Step>,
    pub notes: Notes,
    pub finished_at: Option<Timestamp>,
    /// The bundle that an `execution.step.started` of the run was the last one to name, as far as this process knows. It is not
    /// stored: where it is not known, the next one names its bundle again.
    pub named_bundle: Option<HashHex>,
}

/// What is rarely there and never hot: who canceled or paused, what was undone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Notes {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancellation: Option<Cancellation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compensation_log: Vec<Compensation>,
    /// The receipts of the rollback step that the run stands at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone_by: Vec<ReceiptId>,
    /// What the run will end as once its rollback is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_rollback: Option<Reason>,
    /// A restore has brought the run back, and no operator has looked yet at what it did since the backup: nothing of
    /// it may begin by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restored: bool,
    /// Effects that were not reads, and steps that change something without naming an effect, counted against `writes_max`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub writes: u32,
    /// The last step that was counted when a worker took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_write: Option<ClaimWrite>,
    /// What its attempts have cost, counted against the workflow's `limits.spend`: in millionths.
    #[serde(default, skip_serializing_if = "is_none_spent")]
    pub spent_micros: u64,
    /// The unit of that, where the workflow names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent_unit: Option<String>,
    /// Something of it has no known price: what was really spent is more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unpriced: bool,
    /// Tokens that its attempts have reported.
    #[serde(default, skip_serializing_if = "Tokens::is_none")]
    pub tokens: Tokens,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refused>,
    /// From when on it could be believed that the effect did not happen which the step was in doubt about that a cancel has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt_known_at: Option<Timestamp>,
    /// From when on nothing can arrive any more that attempts have sent whose workers have not said how they ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_at: Option<Timestamp>,
    /// From when on nothing can arrive any more that lost attempts at a rollback have sent, here or in an earlier run of the chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_at: Option<Timestamp>,
    /// Who started or resumed an earlier run of the chain that this run continues, and who directed this one so that
    /// people were asked; excluded from approving it, as the one who started it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starters: Vec<String>,
    /// Effects of running steps to which people have agreed, until they are performed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agreed: Vec<Agreed>,
    /// What steps behind passed gates are about to do, until they are done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreseen: Vec<Foreseen>,
    /// Steps that have named an effect which must not be repeated, in this run or an earlier one of its chain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<StepIteration>,
    /// How often people were asked, and for how long.
    #[serde(default, skip_serializing_if = "ApprovalTally::is_none")]
    pub approvals: ApprovalTally,
    /// Its worker, where its commands share a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Box<RunAssignment>>,
    /// Workers that the policy has kept from a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_workers: Option<Box<StepRefusals>>,
    /// The run in numbers, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Box<RunMetrics>>,
}

/// What models were given and have answered, over all attempts of a run and of those that it continues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    #[serde(default)]
    pub input: u64,
    #[serde(default)]
    pub output: u64,
}

impl Tokens {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// With what one more attempt has used.
    #[must_use]
    pub fn plus(self, cost: &Cost) -> Self {
        Self {
            input: self.input.saturating_add(cost.input_tokens.unwrap_or_default()),
            output: self.output.saturating_add(cost.output_tokens.unwrap_or_default()),
        }
    }
}

/// A step in one of its iterations.
///
/// Of those that are `named` the worker asked before an unsafe effect. What it did is known by the keys of its effects, which a
/// worker that asks for nothing does not name: it would do everything again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepIteration {
    pub step: u32,
    pub iteration: u32,
}

/// A step that was counted as a write when a worker took it, in one of its iterations: once, however often it is tried. The first
/// effect that it names is that write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimWrite {
    pub step: u32,
    pub iteration: u32,
    /// It has named an effect since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named: bool,
}

impl ClaimWrite {
    pub fn is_of(&self, step: u32, iteration: u32) -> bool {
        (self.step, self.iteration) == (step, iteration)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
const fn is_none_spent(value: &u64) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
const fn is_zero(value: &u32) -> bool {
    *value == 0
}

impl Notes {
    /// The writes of the run besides the claim of this step, which an effect of the step takes the place of.
    pub fn writes_besides(&self, step: u32, iteration: u32) -> u32 {
        let is_claim = self.claim_write.is_some_and(|claim| claim.is_of(step, iteration) && !claim.named);
        self.writes.saturating_sub(u32::from(is_claim))
    }

    /// Whether a step has done nothing itself, though it may have succeeded: workers ask before each effect of a step that counts as the
    /// same in the whole tenant, and nothing of it has begun.
    pub(crate) fn has_left_it_to_others(&self, spec: &StepSpec, position: u32) -> bool {
        spec.rules.dedupe_window().is_some() && self.named.iter().all(|named| named.step != position)
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cancellation {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    pub reason: String,
    pub at: Timestamp,
    #[serde(default)]
    pub rollback: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pause {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    pub reason: String,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compensation {
    /// The position that was undone.
    pub step: u32,
    /// The rollback step that did it.
    pub by_step: u32,
    /// The receipts of what it did, in order; the first ones where there are very many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receipts: Vec<ReceiptId>,
    pub outcome: StepState,
    /// Whether something has shown that it took effect: a read of the target, or what the workflow names for it. Of a rollback that
    /// was carried out; not known of those of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    pub at: Timestamp,
}

/// One step as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The last attempt that was claimed; strictly rising, never reused.
    pub attempt: u32,
    /// Attempts charged to the retry budget.
    pub failures: u32,
    /// Raised by operator retry, restart and rollback; part of every effect key.
    pub iteration: u32,
    /// The bound input, where it is not the run's inputs or the plan's own text.
    pub input: Option<Json>,
    /// What it answered when it last succeeded. A step that runs again keeps it until it has a new one, because a
    /// rollback must be told what was done; others ask for [`Step::result`].
    pub output: Option<Json>,
    pub last_error: Option<StepError>,
    /// An effect whose intent is committed and whose outcome is not known yet.
    pub open_intent: Option<ReceiptId>,
    /// What had woken the attempt that is in doubt: another attempt gets it too.
    pub interrupted: Option<Wake>,
    /// When the current attempt, or the last one, was claimed.
    pub claimed_at: Option<Timestamp>,
    pub phase: Phase,
}

impl Default for Step {
    fn default() -> Self {
        Self {
            attempt: 0,
            failures: 0,
            iteration: 0,
            input: None,
            output: None,
            last_error: None,
            open_intent: None,
            interrupted: None,
            claimed_at: None,
            phase: Phase::Pending,
        }
    }
}

/// A step's state, with the data that exists only in it.
#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    Pending,
    Ready {
        eligible_at: Timestamp,
        wake: Option<Wake>,
    },
    Running {
        session: SessionId,
        timeout_at: Option<Timestamp>,
        wake: Option<Wake>,
    },
    WaitingApproval(Box<Approval>),
    WaitingSignal(Box<Wait>),
    /// That it did not happen can be known from an instant on: the worker has lost its lease by then.
    InDoubt {
        receipt: ReceiptId,
        known_at: Timestamp,
    },
    Succeeded,
    Skipped {
        why: String,
    },
    Failed,
    Canceled,
    RolledBack,
}

impl Phase {
    pub const fn state(&self) -> StepState {
        match self {
            Self::Pending => StepState::Pending,
            Self::Ready { .. } => StepState::Ready,
            Self::Running { .. } => StepState::Running,
            Self::WaitingApproval(_) => StepState::WaitingApproval,
            Self::WaitingSignal(_) => StepState::WaitingSignal,
            Self::InDoubt { .. } => StepState::InDoubt,
            Self::Succeeded => StepState::Succeeded,
            Self::Skipped { .. } => StepState::Skipped,
            Self::Failed => StepState::Failed,
            Self::Canceled => StepState::Canceled,
            Self::RolledBack => StepState::RolledBack,
        }
    }
}

/// Why a step that was waiting runs again, and what woke it. A first execution has none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wake {
    pub task_type: TaskType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<SignalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
}

/// An open wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// What is waited for; a timer has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Awaited>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Timestamp>,
    pub opened_at: Timestamp,
}

/// The signal that a wait is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Awaited {
    #[serde(rename = "type")]
    pub signal: String,
    pub key: String,
    /// Only signals received at or after this instant count.
    pub accept_from: Timestamp,
}

impl Step {
    /// Whether a rollback under this condition has something to undo here.
    pub(crate) fn is_undoable(&self, spec: &StepSpec, header: &Header, condition: RollbackCondition) -> bool {
        let declared = spec.rollback.as_ref().is_some_and(|rollback| rollback.conditions.contains(&condition));
        // A step that a restart went back over has an output as long as what it did stands.
        let may_have_acted = self.output.is_some()
            || match self.state() {
                StepState::Succeeded | StepState::InDoubt => true,
                // One that waits for leave to run again has run before, and so has one that a restart went back over.
                StepState::Failed | StepState::Canceled | StepState::WaitingApproval | StepState::Pending => {
                    self.attempt > 0 && spec.effect_class() != EffectClass::Read
                }
                _ => false,
            };
        declared && may_have_acted && self.state() != StepState::RolledBack && !self.was_not_started(spec, header)
    }

    /// Whether it is a command that has certainly not run: its only attempt was refused before the start. What an earlier attempt
    /// has done, or one of an earlier run of the chain, its last error does not tell.
    pub(crate) fn was_not_started(&self, spec: &StepSpec, header: &Header) -> bool {
        let is_only_try = (self.attempt, self.iteration) == (1, 0) && self.output.is_none() && header.lineage.is_none();
        spec.kind() == StepKind::Command
            && self.state() == StepState::Failed
            && is_only_try
            && self.last_error.as_ref().is_some_and(StepError::is_before_start)
    }

    pub const fn state(&self) -> StepState {
        self.phase.state()
    }

    /// The output of a step that has succeeded, as it stands.
    pub fn result(&self) -> Option<&Json> {
        self.output.as_ref().filter(|_| self.state() == StepState::Succeeded)
    }

    pub const fn session(&self) -> Option<SessionId> {
        match self.phase {
            Phase::Running { session, .. } => Some(session),
            _ => None,
        }
    }
}

impl Step {
    /// What it was given, what it answered, and what woke it.
    pub fn payloads(&self) -> impl Iterator<Item = &Json> {
        let wake = match &self.phase {
            Phase::Ready { wake, .. } | Phase::Running { wake, .. } => wake.as_ref(),
            _ => None,
        };
        let wakes = wake.into_iter().chain(&self.interrupted).filter_map(|wake| wake.payload.as_ref());
        self.input.iter().chain(&self.output).chain(wakes)
    }

    /// Puts something else in the place of some of them.
    pub fn replace_payloads(&mut self, replacement: impl Fn(&Json) -> Option<Json>) {
        let wake = match &mut self.phase {
            Phase::Ready { wake, .. } | Phase::Running { wake, .. } => wake.as_mut(),
            _ => None,
        };
        let wakes = wake.into_iter().chain(&mut self.interrupted).filter_map(|wake| wake.payload.as_mut());
        for json in self.input.iter_mut().chain(&mut self.output).chain(wakes) {
            if let Some(other) = replacement(json) {
                *json = other;
            }
        }
    }
}

impl Run {
    /// The spec of any step, the plan's or an appended one.
    pub fn spec(&self, position: u32) -> &StepSpec {
        let index = position as usize;
        self.plan.steps.get(index).unwrap_or_else(|| &self.added[index - self.plan.steps.len()])
    }

    pub fn forward_len(&self) -> usize {
        self.plan.steps.len()
    }

    pub fn current(&self) -> &Step {
        &self.steps[self.position as usize]
    }

    pub fn position_of(&self, key: &str) -> Option<u32> {
        self.plan.steps.iter().position(|step| step.key == key).map(|index| index as u32)
    }

    /// Admitted, but another run holds the subject: nothing of it is activated yet.
    pub fn is_queued(&self) -> bool {
        self.version > 0 && !self.state.is_terminal() && matches!(self.current().phase, Phase::Pending)
    }

    /// From when on no worker can be sending the call any more that the current step is in doubt about; nothing where it is not in
    /// doubt.
    pub fn doubt_settles_at(&self) -> Option<Timestamp> {
        match self.current().phase {
            Phase::InDoubt { known_at, .. } if !self.state.is_terminal() => Some(known_at),
            _ => None,
        }
    }

    /// Whether a worker could take the current step now.
    pub fn is_claimable(&self, now: Timestamp) -> bool {
        self.control == Control::Active
            && !self.is_offered()
            && matches!(self.current().phase, Phase::Ready { eligible_at, .. } if eligible_at <= now)
    }

    /// Whether the step it stands at has named an effect that must not be repeated.
    pub fn has_named_effects(&self) -> bool {
        let iteration = self.current().iteration;
        self.notes.named.contains(&StepIteration { step: self.position, iteration })
    }

    /// Whether another run has had the effect of the step, or may have it, so that there is nothing of this one to undo.
    pub fn has_left_it_to_others(&self, position: u32) -> bool {
        self.notes.has_left_it_to_others(self.spec(position), position)
    }

    /// Whether no step of it was ever claimed.
    pub fn is_unclaimed(&self) -> bool {
        self.steps.iter().all(|step| step.attempt == 0)
    }

    pub fn root(&self) -> RunId {
        self.header.lineage.as_ref().map_or(self.id, |lineage| lineage.root_run_id)
    }

    /// The input that an attempt of the step gets.
    pub fn input(&self, position: u32) -> Json {
        let given = self.steps[position as usize].input.as_ref();
        let undoes = match &self.spec(position).work {
            Work::Rollback { undoes, .. } if given.is_none() => {
                Some((self.input(*undoes), self.steps[*undoes as usize].output.as_ref()))
            }
            _ => None,
        };
        input(&self.header, self.spec(position), given, undoes)
    }
}

impl Run {
    /// Whether a rollback is given what the workflow says, and nothing that a person put in its place. `given` is what
    /// it is about to be given; of one that runs, the run itself knows.
    pub fn is_as_planned(&self, position: u32, given: Option<&Json>) -> bool {
        let known = (position as usize) < self.steps.len();
        let Some(Work::Rollback { undoes, .. }) = known.then(|| &self.spec(position).work) else { return true };
        let Some(given) = given else { return self.steps[position as usize].input.is_none() };
        let undoes = Some((self.input(*undoes), self.steps[*undoes as usize].output.as_ref()));
        *given == input(&self.header, self.spec(position), None, undoes)
    }
}

/// What a step is given: its own input, else the run's. A rollback gets what the step it undoes was given, what that
/// answered, and its own `with`.
pub(crate) fn input(
    header: &Header,
    spec: &StepSpec,
    given: Option<&Json>,
    undoes: Option<(Json, Option<&Json>)>,
) -> Json {
    match (given, undoes, &spec.work) {
        (None, Some((input, output)), Work::Rollback { with, .. }) => {
            let text = |json: Option<&Json>| json.map_or("null", Json::as_str).to_owned();
            let (output, with) = (text(output), text(with.as_ref()));
            Json::trusted(format!(r#"{{"input":{},"output":{output},"with":{with}}}"#, input.as_str()))
        }
        (given, ..) => given.unwrap_or(&header.inputs).clone(),
    }
}
