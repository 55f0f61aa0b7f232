//! Events: append-only facts about a run, dense by `seq`. One catalogue of names for the API, the live streams, webhooks
//! and the command line.

use serde::{Deserialize, Serialize};

use crate::cost::Cost;
use crate::ids::{ApprovalId, DecisionId, ReceiptId, RunId, SessionId, SignalId};
use crate::json::HashHex;
use crate::plan::retry::StepError;
use crate::run::approval::{FallenVote, Purpose};
use crate::state::{ApprovalState, AssignmentState, PreflightCheck, Reason, ReceiptState, RunState, TaskType};
use crate::time::Timestamp;

/// What happened. The `seq` and the instant stand on the journal row that holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event")]
pub enum Event {
    #[serde(rename = "session.created")]
    RunCreated {
        workflow: String,
        version: u32,
        /// The hash of all that the run was made of: its inputs, plan, subject, trigger, starter.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<HashHex>,
    },
    #[serde(rename = "session.assigned")]
    RunAssigned {
        session: SessionId,
        /// The worker's own name.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        worker: String,
        /// The number of the offer that it took.
        #[serde(default)]
        attempt: u32,
    },
    #[serde(rename = "session.offered")]
    RunOffered { session: SessionId, worker: String, attempt: u32, ack_by: Timestamp },
    #[serde(rename = "session.unassigned")]
    RunUnassigned {
        /// Absent where no worker was there to be asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
        attempt: u32,
        /// What became of the offer; absent where there was none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<AssignmentState>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        check: Option<PreflightCheck>,
        why: String,
    },
    #[serde(rename = "session.paused")]
    RunPaused { reason: String },
    #[serde(rename = "session.resumed")]
    RunResumed {},
    #[serde(rename = "session.canceled")]
    RunCanceled { reason: String, done: bool },
    #[serde(rename = "session.completed")]
    RunCompleted {},
    #[serde(rename = "session.failed")]
    RunFailed { state: RunState, reason: Option<Reason> },
    #[serde(rename = "execution.step.started")]
    StepStarted {
        step: u32,
        attempt: u32,
        session: SessionId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task_type: Option<TaskType>,
        /// The policy bundle that allows the step in every run of the workflow version, so that no decision is recorded here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bundle: Option<HashHex>,
        /// The same for the bundle that an earlier event of this kind was the last one to name: most runs name one bundle once.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        same_bundle: bool,
    },
    #[serde(rename = "execution.step.completed")]
    StepCompleted {
        step: u32,
        attempt: u32,
        output_bytes: u64,
        /// Of the worker that did it; absent where none did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Box<Cost>>,
    },
    #[serde(rename = "execution.step.failed")]
    StepFailed {
        step: u32,
        attempt: u32,
        error: StepError,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Box<Cost>>,
    },
    #[serde(rename = "execution.step.retrying")]
    StepRetrying {
        step: u32,
        attempt: u32,
        eligible_at: Timestamp,
        error: StepError,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Box<Cost>>,
    },
    #[serde(rename = "execution.step.ready")]
    StepReady {
        step: u32,
        why: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<SignalId>,
    },
    #[serde(rename = "execution.step.waiting")]
    StepWaiting { step: u32, signal: Option<String>, key: Option<String>, deadline_at: Option<Timestamp> },
    #[serde(rename = "execution.step.in_doubt")]
    StepInDoubt {
        step: u32,
        attempt: u32,
        receipt: ReceiptId,
        /// What has ended the attempt; absent in events of earlier releases.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<StepError>,
    },
    #[serde(rename = "execution.step.skipped")]
    StepSkipped { step: u32, why: String },
    #[serde(rename = "execution.step.canceled")]
    StepCanceled { step: u32 },
    #[serde(rename = "execution.rollback.started")]
    RollbackStarted { steps: Vec<u32> },
    #[serde(rename = "execution.rollback.completed")]
    RollbackCompleted {},
    #[serde(rename = "approval.requested")]
    ApprovalRequested {
        step: u32,
        approval: ApprovalId,
        expires_at: Timestamp,
        /// What is asked for, where it is not to pass a gate.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        purpose: Option<Purpose>,
    },
    #[serde(rename = "approval.voted")]
    ApprovalVoted {
        step: u32,
        approval: ApprovalId,
        person: String,
        /// Whose right to decide the person used, where it was not their own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on_behalf_of: Option<String>,
        approve: bool,
        /// Earlier votes that count no more: their people have lost the right to decide since.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fell: Vec<FallenVote>,
    },
    #[serde(rename = "approval.expired")]
    ApprovalEscalated { step: u32, approval: ApprovalId },
    #[serde(rename = "approval.resolved")]
    ApprovalResolved { step: u32, approval: ApprovalId, status: ApprovalState },
    #[serde(rename = "receipt.recorded")]
    ReceiptRecorded {
        step: u32,
        attempt: u32,
        receipt: ReceiptId,
        state: ReceiptState,
        /// Of an intent: the policy bundle that allows the effect.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bundle: Option<HashHex>,
    },
    /// Another run of the tenant has had the effect within the step's window, so that it was not performed again.
    #[serde(rename = "receipt.deduplicated")]
    EffectDeduplicated { step: u32, attempt: u32, receipt: ReceiptId, run: RunId },
    #[serde(rename = "policy.decided")]
    PolicyDecided {
        step: u32,
        decision: DecisionId,
        verdict: String,
        tier: String,
        bundle: HashHex,
        /// The worker that came to take the step, where the decision denies it to this worker alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
    },
}

impl Event {
    /// The catalogue's names, in the order of the enum.
    pub const NAMES: &'static [&'static str] = &[
        "session.created",
        "session.assigned",
        "session.offered",
        "session.unassigned",
        "session.paused",
        "session.resumed",
        "session.canceled",
        "session.completed",
        "session.failed",
        "execution.step.started",
        "execution.step.completed",
        "execution.step.failed",
        "execution.step.retrying",
        "execution.step.ready",
        "execution.step.waiting",
        "execution.step.in_doubt",
        "execution.step.skipped",
        "execution.step.canceled",
        "execution.rollback.started",
        "execution.rollback.completed",
        "approval.requested",
        "approval.voted",
        "approval.expired",
        "approval.resolved",
        "receipt.recorded",
        "receipt.deduplicated",
        "policy.decided",
    ];

    pub const fn name(&self) -> &'static str {
        match self {
            Self::RunCreated { .. } => "session.created",
            Self::RunAssigned { .. } => "session.assigned",
            Self::RunOffered { .. } => "session.offered",
            Self::RunUnassigned { .. } => "session.unassigned",
            Self::RunPaused { .. } => "session.paused",
            Self::RunResumed { .. } => "session.resumed",
            Self::RunCanceled { .. } => "session.canceled",
            Self::RunCompleted { .. } => "session.completed",
            Self::RunFailed { .. } => "session.failed",
            Self::StepStarted { .. } => "execution.step.started",
            Self::StepCompleted { .. } => "execution.step.completed",
            Self::StepFailed { .. } => "execution.step.failed",
            Self::StepRetrying { .. } => "execution.step.retrying",
            Self::StepReady { .. } => "execution.step.ready",
            Self::StepWaiting { .. } => "execution.step.waiting",
            Self::StepInDoubt { .. } => "execution.step.in_doubt",
            Self::StepSkipped { .. } => "execution.step.skipped",
            Self::StepCanceled { .. } => "execution.step.canceled",
            Self::RollbackStarted { .. } => "execution.rollback.started",
            Self::RollbackCompleted { .. } => "execution.rollback.completed",
            Self::ApprovalRequested { .. } => "approval.requested",
            Self::ApprovalVoted { .. } => "approval.voted",
            Self::ApprovalEscalated { .. } => "approval.expired",
            Self::ApprovalResolved { .. } => "approval.resolved",
            Self::ReceiptRecorded { .. } => "receipt.recorded",
            Self::EffectDeduplicated { .. } => "receipt.deduplicated",
            Self::PolicyDecided { .. } => "policy.decided",
        }
    }

    /// The step it is about, if any.
    pub const fn step(&self) -> Option<u32> {
        match self {
            Self::StepStarted { step, .. }
            | Self::StepCompleted { step, .. }
            | Self::StepFailed { step, .. }
            | Self::StepRetrying { step, .. }
            | Self::StepReady { step, .. }
            | Self::StepWaiting { step, .. }
            | Self::StepInDoubt { step, .. }
            | Self::StepSkipped { step, .. }
            | Self::StepCanceled { step }
            | Self::ApprovalRequested { step, .. }
            | Self::ApprovalVoted { step, .. }
            | Self::ApprovalEscalated { step, .. }
            | Self::ApprovalResolved { step, .. }
            | Self::ReceiptRecorded { step, .. }
            | Self::EffectDeduplicated { step, .. }
            | Self::PolicyDecided { step, .. } => Some(*step),
            _ => None,
        }
    }

    /// The attempt of the step that it is about, or of an offer of the run.
    pub const fn attempt(&self) -> Option<u32> {
        match self {
            Self::RunAssigned { attempt, .. }
            | Self::RunOffered { attempt, .. }
            | Self::RunUnassigned { attempt, .. }
            | Self::StepStarted { attempt, .. }
            | Self::StepCompleted { attempt, .. }
            | Self::StepFailed { attempt, .. }
            | Self::StepRetrying { attempt, .. }
            | Self::StepInDoubt { attempt, .. }
            | Self::ReceiptRecorded { attempt, .. }
            | Self::EffectDeduplicated { attempt, .. } => Some(*attempt),
            _ => None,
        }
    }

    /// The approval that it is about, if any.
    pub const fn approval(&self) -> Option<ApprovalId> {
        match self {
            Self::ApprovalRequested { approval, .. }
            | Self::ApprovalVoted { approval, .. }
            | Self::ApprovalEscalated { approval, .. }
            | Self::ApprovalResolved { approval, .. } => Some(*approval),
            _ => None,
        }
    }
}
