//! What passes between the engine and a worker, wherever the worker runs: an [`Assignment`] out, a [`Report`] back.
//! Every message names the run, the step and the attempt; the attempt fences, and repeating a message is harmless.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::{ReceiptId, RunId, SignalId, TenantId};
use crate::json::Json;
use crate::retry::StepError;
use crate::state::{EffectClass, StepKind, TaskType};
use crate::time::{Millis, Timestamp};

/// Names one attempt of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub struct AttemptRef {
    pub tenant: TenantId,
    pub run: RunId,
    pub position: u32,
    pub attempt: u32,
}

/// A claimed step, handed to a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Assignment {
    #[serde(flatten)]
    pub at: AttemptRef,
    /// The store's epoch: a claim made before a restore is worthless after it.
    pub epoch: u64,
    /// The run at the root of a chain of resumed runs; part of every effect key.
    pub root_run: RunId,
    pub workflow: String,
    pub step: String,
    pub kind: StepKind,
    /// The name of the task that is to run.
    pub handler: String,
    pub iteration: u32,
    pub effect: EffectClass,
    pub input: Json,
    pub task_type: TaskType,
    /// The payload of the signal that woke the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<SignalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Timestamp>,
    /// The W3C trace context that the run was started in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// What tracing systems have added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracestate: Option<String>,
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Report {
    #[serde(flatten)]
    pub at: AttemptRef,
    pub epoch: u64,
    pub outcome: ReportedOutcome,
    /// Take the run's next step too, if it may be had.
    #[serde(default)]
    pub claim_next: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ReportedOutcome {
    Completed {
        output: Json,
    },
    Waiting {
        signal: String,
        /// The run's subject, else its id, where omitted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<Millis>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        outbound: Vec<OutboundMessage>,
    },
    Retry {
        error: StepError,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        backoff: Option<Millis>,
    },
    Dead {
        error: StepError,
    },
    /// Given back uncharged: the worker drains.
    Released,
    /// Given back uncharged: the worker has no such task. It is offered again after a pause.
    UnknownTask,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutboundMessage {
    pub destination: String,
    pub payload: Json,
}

/// A worker asks to perform an effect. The intent is durable when the answer arrives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EffectIntent {
    #[serde(flatten)]
    pub at: AttemptRef,
    pub epoch: u64,
    /// What the effect is, in the words of the system it acts on: `stripe:charge:{order}`.
    pub template: String,
    /// 0, 1, … in the order the attempt performs its effects.
    pub number: u32,
    pub effect: EffectClass,
    pub request: Json,
}

/// The answer to an [`EffectIntent`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum EffectAnswer {
    /// Perform it now, under this key.
    Perform { receipt: ReceiptId, key: String },
    /// It was performed before, in this scope; this is what it answered. Do not perform it again.
    Performed { receipt: ReceiptId, response: Option<Json> },
}

/// What became of an effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EffectOutcome {
    #[serde(flatten)]
    pub at: AttemptRef,
    pub epoch: u64,
    pub receipt: ReceiptId,
    /// True if it happened; false only if it certainly did not.
    pub happened: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Json>,
}

/// Who a worker is, when it registers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkerHello {
    /// A readable name: host and process.
    pub worker: String,
    /// The tenant it serves; none for a worker inside the server, which serves all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantId>,
    pub queues: Vec<String>,
    pub slots: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
}
