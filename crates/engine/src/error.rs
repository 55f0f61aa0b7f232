//! What the engine answers when it cannot do what was asked, split by what the caller can do about it.

use crate::evaluator::Refused;
use crate::payloads::PayloadError;
use interlock_core::ids::RunId;
use interlock_core::rejection::Rejection;
use interlock_store::{ReadError, Refusal, SubmitError};

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The request is wrong, or does not apply: do not repeat it.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    #[error("there is no workflow `{workflow}`{}", .version.map(|version| format!(" in version {version}")).unwrap_or_default())]
    UnknownWorkflow { workflow: String, version: Option<u32> },
    #[error("there is no version {version} of the policy")]
    UnknownPolicy { version: u32 },
    #[error("the policy cannot be taken: {}", .problems.join("; "))]
    PolicyInvalid { problems: Vec<String> },
    #[error("the policy was changed meanwhile; look at it again")]
    PolicyChanged,
    #[error(
        "{} takes ticket `{ticket}`; name one as `runbook_id`: {}",
        if *.matched { "more than one workflow" } else { "no workflow's `on.ticket`" },
        if .candidates.is_empty() { "none has `on.ticket`".to_owned() } else { .candidates.join(", ") },
    )]
    RunbookUnclear { ticket: String, matched: bool, candidates: Vec<String> },
    #[error("the workflow `{workflow}` is disabled and takes no starts; enable it first")]
    WorkflowDisabled { workflow: String },
    #[error("a run for subject `{subject}` is active already: {run}")]
    SubjectBusy { subject: String, run: RunId },
    #[error(
        "a run of another workspace holds the subject `{subject}`; wait for its end, or queue (`on_conflict: queue`)"
    )]
    SubjectElsewhere { subject: String },
    #[error("the tenant is disabled: nothing starts until an administrator of the installation enables it")]
    TenantDisabled,
    #[error("as many runs wait for subject `{subject}` as may; try again later")]
    SubjectQueueFull { subject: String },
    #[error("the idempotency key was used with another request; use a new key for a new request")]
    IdempotencyMismatch,
    #[error("the idempotency key's record has expired; it belongs to run {run}")]
    IdempotencyExpired { run: RunId },
    #[error("the same request is being worked on; ask again in a moment, or send `Prefer: wait`")]
    IdempotencyConflict,
    #[error("the request under this idempotency key has failed too often; use a new key")]
    IdempotencySpent,
    #[error("the filter matches {found} runs, not {expected}: look at the preview again")]
    BulkCount { expected: u64, found: u64 },
    #[error("there is no schedule `{name}`")]
    UnknownSchedule { name: String },
    #[error("there is no webhook endpoint or delivery `{name}`")]
    UnknownEndpoint { name: String },
    #[error(
        "there is {} `{name}` already; take another name, or change that one",
        interlock_core::text::article::with_article(what)
    )]
    NameTaken { what: &'static str, name: String },
    #[error(
        "another signal has come under the source id `{name}`, with another type, key, run or payload; give this one an id of \
         its own"
    )]
    SourceIdTaken { name: String },
    #[error("this server cannot open the store's secrets; start it with the secret file of the server that made them")]
    SecretsClosed,
    #[error("this server makes no calls to the outside")]
    OutboundClosed,
    #[error("the tenant has too many pending runs; try again later")]
    TooManyPending,
    #[error("this worker session is gone; register again")]
    SessionGone,
    #[error("the claim was made before the store was restored; drop it")]
    StaleEpoch,
    /// Another writer came first too many times; trying again is safe.
    #[error("run {run} changed under this request again and again; try again")]
    Contended { run: RunId },
    /// The queues are full: trying again later is safe.
    #[error("the server is overloaded; try again in a moment")]
    Overloaded,
    #[error("the server is shutting down")]
    Closed,
    #[error("this server keeps no audit log: it was started without a secret to sign it with")]
    AuditClosed,
    #[error("run {run} has not ended: its evidence is bundled when it has")]
    EvidenceNotDue { run: RunId },
    /// What the run did last is not in the audit log yet: asking again in a second is safe.
    #[error("the end of run {run} is not in the audit log yet; ask again in a second")]
    EvidenceNotSealed { run: RunId },
    /// The run has done more than one bundle holds: asking again does not help.
    #[error(
        "the evidence of run {run} would be longer than {max} bytes, and one bundle may not be; the tenant's audit log has \
         every entry of the run: take it away with `interlock audit export`, and verify it with `interlock audit verify`"
    )]
    EvidenceTooLarge { run: RunId, max: usize },
    #[error("run {run} has no bundle {number}")]
    UnknownBundle { run: RunId, number: u32 },
    #[error("the tenant has no audit log {number}")]
    UnknownAuditLog { number: u64 },
    #[error("the audit log contradicts itself ({what}); run `interlock audit verify`")]
    AuditBroken { what: String },
    #[error(transparent)]
    Payload(#[from] PayloadError),
    #[error("the store cannot be read: {0}")]
    Read(#[from] ReadError),
    #[error("the store refused the change: {0}")]
    Refused(Refusal),
    /// The store takes no commits for a while: trying again later is safe.
    #[error("{0}")]
    Stalled(String),
    /// The same, because its disk is full.
    #[error("{0}")]
    DiskFull(String),
    #[error("the store failed: {0}")]
    Store(String),
}

impl From<Refused> for EngineError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Busy => Self::Overloaded,
            Refused::Failed(error) => Rejection::InvalidInput { what: error.message }.into(),
        }
    }
}

impl From<SubmitError> for EngineError {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Busy => Self::Overloaded,
            SubmitError::Closed => Self::Closed,
            SubmitError::Refused(Refusal::TooManyPending) => Self::TooManyPending,
            SubmitError::Refused(Refusal::TenantDisabled) => Self::TenantDisabled,
            SubmitError::Refused(refusal) => Self::Refused(refusal),
            SubmitError::Stalled(_)
            | SubmitError::FileGone(_)
            | SubmitError::Restored(_)
            | SubmitError::LanePanicked(_) => Self::Stalled(error.to_string()),
            SubmitError::DiskFull(_) => Self::DiskFull(error.to_string()),
            SubmitError::Corrupt(what) => Self::Store(what),
        }
    }
}

impl EngineError {
    /// The stable code for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Rejected(rejection) => rejection.code(),
            Self::UnknownWorkflow { .. } => "WORKFLOW_NOT_FOUND",
            Self::UnknownPolicy { .. } => "POLICY_NOT_FOUND",
            Self::PolicyInvalid { .. } => "POLICY_INVALID",
            Self::PolicyChanged => "POLICY_CHANGED",
            Self::RunbookUnclear { .. } => "RUNBOOK_UNCLEAR",
            Self::WorkflowDisabled { .. } => "WORKFLOW_DISABLED",
            Self::SubjectBusy { .. } | Self::SubjectElsewhere { .. } => "RUN_SUBJECT_BUSY",
            Self::TenantDisabled => "TENANT_DISABLED",
            Self::SubjectQueueFull { .. } => "RUN_SUBJECT_QUEUE_FULL",
            Self::IdempotencyMismatch => "IDEMPOTENCY_MISMATCH",
            Self::IdempotencyExpired { .. } => "IDEMPOTENCY_EXPIRED",
            Self::IdempotencyConflict => "IDEMPOTENCY_CONFLICT",
            Self::IdempotencySpent => "IDEMPOTENCY_SPENT",
            Self::BulkCount { .. } => "BULK_COUNT_MISMATCH",
            Self::UnknownSchedule { .. } => "SCHEDULE_NOT_FOUND",
            Self::UnknownEndpoint { .. } => "WEBHOOK_NOT_FOUND",
            Self::NameTaken { .. } | Self::SourceIdTaken { .. } => "NAME_TAKEN",
            Self::SecretsClosed => "SECRETS_UNAVAILABLE",
            Self::OutboundClosed => "OUTBOUND_UNAVAILABLE",
            Self::TooManyPending => "TENANT_PENDING_RUNS",
            Self::SessionGone => "SESSION_GONE",
            Self::StaleEpoch => "STORE_EPOCH_STALE",
            Self::Contended { .. } => "RUN_CONTENDED",
            Self::Overloaded => "OVERLOADED",
            Self::Closed => "SHUTTING_DOWN",
            Self::AuditClosed => "AUDIT_UNAVAILABLE",
            Self::AuditBroken { .. } => "AUDIT_BROKEN",
            Self::EvidenceNotDue { .. } => "EVIDENCE_NOT_DUE",
            Self::EvidenceNotSealed { .. } => "EVIDENCE_NOT_SEALED",
            Self::EvidenceTooLarge { .. } => "EVIDENCE_TOO_LARGE",
            Self::UnknownBundle { .. } => "EVIDENCE_NOT_FOUND",
            Self::UnknownAuditLog { .. } => "AUDIT_LOG_NOT_FOUND",
            Self::Payload(error) => error.code(),
            Self::DiskFull(_) => "STORE_FULL",
            Self::Read(ReadError::Corrupt(_)) => "RECORD_UNREADABLE",
            Self::Read(_) | Self::Refused(_) | Self::Stalled(_) | Self::Store(_) => "STORE_UNAVAILABLE",
        }
    }

    /// Whether the store or the server as a whole cannot do it at the moment, whatever it is about.
    pub(crate) const fn is_outage(&self) -> bool {
        matches!(
            self,
            Self::Read(ReadError::Unavailable(_) | ReadError::Closed)
                | Self::Stalled(_)
                | Self::DiskFull(_)
                | Self::Overloaded
                | Self::Closed
                | Self::Payload(PayloadError::Unavailable { .. })
        )
    }

    /// Whether the same request may succeed later.
    pub const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::TooManyPending
                | Self::SubjectQueueFull { .. }
                | Self::SecretsClosed
                | Self::EvidenceNotSealed { .. }
                | Self::OutboundClosed
                | Self::Contended { .. }
                | Self::Overloaded
                | Self::Closed
                | Self::Payload(PayloadError::Unavailable { .. })
                | Self::Read(_)
                | Self::Refused(_)
                | Self::Stalled(_)
                | Self::DiskFull(_)
                | Self::Store(_)
        )
    }
}
