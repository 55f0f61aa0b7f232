//! Small writes that belong to no run. They go through the same lanes and groups as change sets.

use interlock_core::change::IdempotencyRow;
use interlock_core::ids::{OutboxId, RunId, ServerId, SessionId, TenantId};
use interlock_core::json::{Hash, Json};
use interlock_core::receipt::Receipt;
use interlock_core::state::{IdempotencyState, WorkerState};
use interlock_core::time::{Millis, Timestamp};

use crate::bulk_jobs::BulkOp;
use crate::identity::IdentityOp;
use crate::inbound::DeliveryRow;
use crate::payloads::PayloadOp;
use crate::signals::SignalRow;
use crate::tenants::Tenant;
use crate::triggers::TriggerOp;
use crate::workers::{SessionRow, Unlisted};
use crate::workflows::WorkflowVersionRow;

#[derive(Debug, Clone)]
pub enum Op {
    /// Makes a tenant, or changes the limits of the one with this id.
    PutTenant(Tenant),
    /// Keys, people and their sessions.
    Identity(IdentityOp),
    /// Adds a version to a workflow; its number follows the latest one. Answers [`OpAnswer::Stored`], or
    /// [`OpAnswer::Gone`] if another version has come first.
    PutWorkflow {
        tenant: TenantId,
        version: Box<WorkflowVersionRow>,
    },
    /// Answers [`OpAnswer::Done`] or [`OpAnswer::Gone`].
    SetWorkflowDisabled {
        tenant: TenantId,
        name: String,
        disabled: bool,
        at: Timestamp,
    },
    /// What became of an effect that an ended run left open. Answers [`OpAnswer::Done`], or [`OpAnswer::Gone`] if it
    /// was settled before, or belongs to another run by now.
    SettleReceipt {
        tenant: TenantId,
        run: RunId,
        receipt: Box<Receipt>,
    },
    RegisterSession(SessionRow),
    /// Answers [`OpAnswer::Renewed`] or [`OpAnswer::Gone`].
    RenewSession {
        session: SessionId,
        lease_expires_at: Timestamp,
        heartbeat_at: Timestamp,
        /// The claims that the heartbeat did not list.
        unlisted: Vec<Unlisted>,
    },
    /// `draining` takes no new work; `online` again; a closed one is `offline`.
    SetSessionState {
        session: SessionId,
        state: WorkerState,
    },
    CloseSession {
        session: SessionId,
        at: Timestamp,
    },
    /// Marks sessions whose lease is over as offline. Answers [`OpAnswer::Count`].
    ExpireSessions {
        now: Timestamp,
    },
    /// Answers [`OpAnswer::Stored`], [`OpAnswer::Duplicate`] or [`OpAnswer::UnknownTenant`].
    StoreSignal(SignalRow),
    /// A signal that workflows take: stored with the delivery under which their runs are started, so that whoever
    /// finds it unfinished starts them. Answers like [`Op::StoreSignal`].
    AnnounceSignal(Box<SignalAnnouncement>),
    /// A start whose subject is busy becomes a signal. Answers [`OpAnswer::Stored`], [`OpAnswer::Duplicate`] if the
    /// request's key is on record, or [`OpAnswer::Gone`] if the subject is free by now.
    SignalSubject(Box<SubjectSignal>),
    OutboxDelivered {
        tenant: TenantId,
        id: OutboxId,
        at: Timestamp,
    },
    OutboxFailed {
        tenant: TenantId,
        id: OutboxId,
        error: String,
        retry: OutboxRetry,
    },
    /// Takes a key before work that is not one commit, or takes over one whose work was given up. Answers
    /// [`OpAnswer::Stored`] or [`OpAnswer::Duplicate`].
    BeginIdempotency(Box<BeginIdempotency>),
    /// The request is still being worked on: nobody else begins it until then.
    RenewIdempotency {
        tenant: TenantId,
        client: String,
        key: String,
        lock_until: Timestamp,
    },
    /// The answer to a request whose key was recorded, for its repeats.
    FinishIdempotency {
        tenant: TenantId,
        client: String,
        key: String,
        state: IdempotencyState,
        response: Option<Json>,
        error: Option<String>,
        at: Timestamp,
        expires_at: Timestamp,
    },
    Bulk(BulkOp),
    /// Schedules and webhooks.
    Trigger(Box<TriggerOp>),
    /// References to payloads beside the database.
    Payload(PayloadOp),
    /// Records that an approval's card has been sent.
    ApprovalNotified {
        tenant: TenantId,
        approval: interlock_core::ids::ApprovalId,
        at: Timestamp,
    },
    /// Brings committed groups into the tenants' feeds. Answers [`OpAnswer::Count`]: the events sealed.
    Seal {
        now: Timestamp,
        limit: usize,
    },
    /// Removes what is past its time, a bounded batch of each. Answers [`OpAnswer::Count`]: the rows removed.
    Sweep(Sweep),
    /// The server that commits through these lanes lives.
    KeepLanes {
        server: ServerId,
        lanes: Vec<i64>,
        now: Timestamp,
    },
    /// PostgreSQL: makes the journal's weeks ahead of time. SQLite: nothing.
    EnsurePartitions {
        now: Timestamp,
    },
    /// After a restore: fences every attempt made before it, and marks the store as not yet in order, in one commit. Nothing
    /// is dispatched until [`Op::FinishRestore`]. Answers [`OpAnswer::Epoch`].
    RaiseEpoch,
    /// The runs of a restored store are parked: takes the mark of this epoch away. Answers [`OpAnswer::Done`], or
    /// [`OpAnswer::Gone`] where it was restored once more meanwhile.
    FinishRestore {
        epoch: u64,
        now: Timestamp,
    },
}

/// A signal, and what it starts.
#[derive(Debug, Clone)]
pub struct SignalAnnouncement {
    pub signal: SignalRow,
    pub delivery: DeliveryRow,
    /// Until then the one who stored it is believed to start its runs.
    pub lock_until: Timestamp,
}

/// A signal instead of a run; its key is the subject.
#[derive(Debug, Clone)]
pub struct SubjectSignal {
    pub signal: SignalRow,
    /// The run that is in the way.
    pub run: RunId,
    /// The key of the request, recorded with the signal so that a repeat is one request too.
    pub request: Option<IdempotencyRow>,
}

/// A request whose key is taken before its work begins.
#[derive(Debug, Clone)]
pub struct BeginIdempotency {
    pub tenant: TenantId,
    pub client: String,
    pub key: String,
    pub source: String,
    pub request_hash: Hash,
    pub now: Timestamp,
    /// Until then a repeat is told to wait; after that it takes over.
    pub lock_until: Timestamp,
    pub expires_at: Timestamp,
    /// A request that failed is tried again while it has had fewer attempts than this.
    pub attempts_max: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutboxRetry {
    At(Timestamp),
    /// Given up; it no longer holds back later messages.
    Dead(Timestamp),
}

/// How long things are kept, and how much one sweep removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sweep {
    pub now: Timestamp,
    /// Finished runs, with all their rows, and what else tells of the past; for ever, where nothing is said.
    pub runs_kept: Option<Millis>,
    pub feed_kept: Millis,
    pub groups_kept: Millis,
    pub sessions_kept: Millis,
    pub outbox_kept: Millis,
    /// Lanes of servers that say nothing any more.
    pub lanes_kept: Millis,
    /// At most this many rows of each kind (runs count as one).
    pub batch_max: usize,
}

impl Sweep {
    pub const fn new(now: Timestamp) -> Self {
        Self {
            now,
            runs_kept: Some(Millis::from_hours(24 * 90)),
            feed_kept: Millis::from_hours(24 * 90),
            groups_kept: Millis::from_hours(1),
            sessions_kept: Millis::from_hours(24),
            outbox_kept: Millis::from_hours(24 * 7),
            lanes_kept: Millis::from_hours(24 * 7),
            batch_max: 500,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpAnswer {
    Done,
    Renewed,
    Gone,
    Stored,
    Duplicate,
    UnknownTenant,
    Count(u64),
    Epoch(u64),
    /// A delivery is the caller's to process: its attempt.
    Begun(u32),
    /// It was processed before.
    Finished,
    /// Somebody else processes it.
    InFlight,
    /// It has failed as often as it may.
    Spent,
    /// The key belongs to another request.
    Mismatch,
    /// Another delivery was about the same a moment ago.
    Recent,
}
