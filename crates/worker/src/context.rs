//! What a task knows about the attempt that it is.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use interlock_core::cost::Cost;
use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::keys::{EffectScope, effect_key};
use interlock_core::state::{EffectClass, StepKind, TaskType};
use interlock_core::text::json_words::json_error;
use interlock_core::time::Timestamp;
use interlock_core::work::Assignment;
use interlock_core::work::output::OutputStream;
use interlock_credentials::{CredentialUsed, Credentials, StepScope, UsedCredentials};
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::TaskError;
use crate::output::StepOutput;
use crate::port::Port;
use crate::run_secrets::RunSecrets;

/// Everything an attempt may ask and do. Cheap to clone.
#[derive(Clone)]
pub struct TaskContext(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub assignment: Assignment,
    /// The worker has a certificate.
    pub enrolled: bool,
    pub token: CancellationToken,
    pub timeout_at: Option<Instant>,
    pub port: Arc<dyn Port>,
    pub effects: Effects,
    pub output: Arc<StepOutput>,
    /// What the attempt has cost so far.
    pub cost: Mutex<Option<Cost>>,
    /// The credentials that the attempt was given.
    pub credentials: Mutex<Option<UsedCredentials>>,
}

/// Where the attempt stands with its effects.
#[derive(Default)]
pub(crate) struct Effects {
    pub next: AtomicU32,
    pub performing: AtomicBool,
    /// An unsafe effect was sent, and it is unknown whether it happened.
    pub in_doubt: AtomicBool,
}

impl TaskContext {
    pub fn tenant(&self) -> TenantId {
        self.0.assignment.at.tenant
    }

    /// The environment in which the run acts.
    pub fn environment(&self) -> Option<String> {
        self.0.assignment.environment.clone()
    }

    /// Whose secrets the attempt is given, and of which environment.
    pub(crate) fn secret_scope(&self, credentials: &Credentials) -> StepScope {
        let environment = self.0.assignment.environment.as_deref();
        RunSecrets { tenant: self.tenant(), environment, enrolled: self.0.enrolled }.scope(credentials)
    }

    pub fn run(&self) -> RunId {
        self.0.assignment.at.run
    }

    pub fn workflow(&self) -> &str {
        &self.0.assignment.workflow
    }

    /// The name under which this code was called.
    pub fn task(&self) -> &str {
        &self.0.assignment.handler
    }

    pub(crate) fn kind(&self) -> StepKind {
        self.0.assignment.kind
    }

    /// The run at the root of a chain of resumed runs.
    pub fn root_run(&self) -> RunId {
        self.0.assignment.root_run
    }

    /// Whether there is enough left of the lease for a call to another system that starts now.
    pub(crate) fn may_send(&self) -> bool {
        self.still_mine() && self.0.port.lease().covers_a_send()
    }

    /// How long the session's lease is: after that without a renewal, the attempt may be another worker's.
    pub(crate) fn lease(&self) -> Duration {
        self.0.port.lease().span()
    }

    /// Says what something in this attempt has cost. It is reported with the attempt, whatever becomes of it, adds up on the
    /// run, and counts against the workflow's `limits.spend`.
    pub fn spend(&self, cost: Cost) {
        let mut so_far = self.0.cost.lock().unwrap_or_else(PoisonError::into_inner);
        *so_far = Some(match so_far.take() {
            Some(before) => before.plus(cost),
            None => cost,
        });
    }

    /// Whether the attempt has said what something has cost.
    pub(crate) fn has_spent(&self) -> bool {
        self.0.cost.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// What was spent since this was asked last.
    pub(crate) fn spent(&self) -> Option<Box<Cost>> {
        self.0.cost.lock().unwrap_or_else(PoisonError::into_inner).take().map(Box::new)
    }

    /// Shows a text beside the step while it runs: people see it live, and it is kept with the run up to a limit. Waits where
    /// more is written than the server takes.
    pub async fn write_stdout(&self, text: impl AsRef<[u8]>) {
        self.0.output.push(OutputStream::Stdout, text.as_ref());
        self.0.output.room().await;
    }

    /// The same for what went wrong. The end of it stands in the message of a timeout.
    pub async fn write_stderr(&self, text: impl AsRef<[u8]>) {
        self.0.output.push(OutputStream::Stderr, text.as_ref());
        self.0.output.room().await;
    }

    pub(crate) fn output(&self) -> &Arc<StepOutput> {
        &self.0.output
    }

    /// What the attempt uses is reported with it, also where it is dropped.
    pub(crate) fn uses(&self, credentials: UsedCredentials) {
        *self.0.credentials.lock().unwrap_or_else(PoisonError::into_inner) = Some(credentials);
    }

    pub(crate) fn credentials_used(&self) -> Vec<CredentialUsed> {
        let used = self.0.credentials.lock().unwrap_or_else(PoisonError::into_inner);
        used.as_ref().map(UsedCredentials::all).unwrap_or_default()
    }

    /// The W3C trace context that the run was started in.
    pub fn traceparent(&self) -> Option<&str> {
        self.0.assignment.traceparent.as_deref()
    }

    /// What tracing systems have added to it.
    pub fn tracestate(&self) -> Option<&str> {
        self.0.assignment.tracestate.as_deref()
    }

    /// The step's key: its stable name in the workflow.
    pub fn step(&self) -> &str {
        &self.0.assignment.step
    }

    pub fn position(&self) -> u32 {
        self.0.assignment.at.position
    }

    /// 1, 2, … over all claims of the step.
    pub fn attempt(&self) -> u32 {
        self.0.assignment.at.attempt
    }

    /// Raised when an operator has the step done again.
    pub fn iteration(&self) -> u32 {
        self.0.assignment.iteration
    }

    /// Why the step runs: for the first time, because a signal came, or because none came in time.
    pub fn task_type(&self) -> TaskType {
        self.0.assignment.task_type
    }

    /// How safe it is to repeat the step, as its workflow declares.
    pub fn effect_class(&self) -> EffectClass {
        self.0.assignment.effect
    }

    /// The payload of the signal that woke the step.
    pub fn payload(&self) -> Option<&Json> {
        self.0.assignment.payload.as_ref()
    }

    /// The signal that woke the step, if one did, with its payload read as a `T`.
    pub fn signal<T: DeserializeOwned>(&self) -> Result<Option<T>, TaskError> {
        if self.task_type() != TaskType::Signal {
            return Ok(None);
        }
        // A payload of `null` may arrive as none at all.
        let payload = self.payload().map_or("null", Json::as_str);
        serde_json::from_str(payload).map(Some).map_err(|error| {
            let what = format!("the task does not understand the signal's payload: {}", json_error(&error));
            TaskError::terminal("SIGNAL_INVALID", what)
        })
    }

    /// The run's own deadline, by the server's clock.
    pub fn deadline_at(&self) -> Option<Timestamp> {
        self.0.assignment.deadline_at
    }

    /// When the attempt times out, by this process's clock.
    pub fn timeout_at(&self) -> Option<Instant> {
        self.0.timeout_at
    }

    /// Fires when the attempt is no longer wanted: its run is being canceled, its lease is lost, the worker shuts
    /// down, or its time is up. The task may clean up for a short while; then it is dropped where it stands.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.0.token
    }

    /// Whether the attempt surely still belongs to this worker. Heartbeats are sent by themselves; code that acts
    /// on other systems without [`TaskContext::effect`] asks here right before.
    pub fn still_mine(&self) -> bool {
        !self.0.token.is_cancelled() && !self.0.port.is_gone() && self.0.port.lease().holds()
    }

    /// A key for other systems that drop repeats: the same for every automatic retry of this step, another after
    /// an operator's retry.
    pub fn effect_key(&self, template: &str) -> Result<String, TaskError> {
        let assignment = &self.0.assignment;
        let scope = EffectScope {
            root: assignment.root_run,
            step_path: &assignment.step,
            iteration: assignment.iteration,
            number: 0,
        };
        effect_key(template, scope).map_err(|rejection| TaskError::terminal(rejection.code(), rejection.to_string()))
    }
}

impl fmt::Debug for TaskContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskContext")
            .field("at", &self.0.assignment.at)
            .field("step", &self.0.assignment.step)
            .finish_non_exhaustive()
    }
}
