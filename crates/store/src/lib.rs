//! SQLite and PostgreSQL behind one type: rows, not rules.
//!
//! A [`Store`] takes [`interlock_core::run::change::ChangeSet`]s and small [`Write`]s, commits them in groups through its
//! lanes ([`lane`]), and answers each once it is on disk, or with the guard that refused it. Every noun has a folder with
//! its rows (`rows.rs`), its statements (`sql.rs`), its reads (`reads.rs`) and its writes (`writes.rs`); what several nouns share stands
//! beside them: the hot path ([`sql`], [`submit`], [`lane`]) and the two databases ([`sqlite`], [`postgres`]).
//! [`Store::load_runs`] gives the [`interlock_core::run::Run`]s that `decide` needs. Every statement is prepared by a
//! test on both databases.

mod access;
mod approvals;
mod assignments;
mod audit;
mod backup;
mod blocked;
mod bulk_jobs;
mod changes;
mod check;
mod circuit_breaker;
mod claims;
mod copying;
mod db;
mod decisions;
mod delegations;
mod effect_holds;
mod error;
mod evidence;
mod faults;
mod feed;
mod idempotency;
mod inbound;
mod keys;
mod lane;
mod meta;
mod migrate;
mod options;
mod outbound;
mod outbox;
mod output;
mod payloads;
mod people;
mod plans;
mod policies;
mod postgres;
mod readable;
mod receipts;
mod restore;
mod retention;
mod runs;
mod schedules;
mod secrets;
mod signals;
mod slack;
pub mod sql;
mod sqlite;
pub mod statements;
mod store;
mod subjects;
mod submit;
mod tenants;
mod unreadable;
mod value;
mod worker_identities;
mod workers;
mod workflows;
mod write;

pub use access::{Installation, SignIn, StoreHealth, TenantStore};
pub use approvals::{ApprovalFilter, ApprovalRow, DuePlace, RecordPresentState};
pub use assignments::LiveAssignment;
pub use audit::{
    AddAuditNote, AppendAudit, AuditAppended, AuditBlockRow, AuditDetailsRow, AuditLogRow, AuditNote, AuditTileRow,
    EraseAuditDetails, FeedSpan, JournalRow,
};
pub use backup::{StagedBackup, backup_file};
pub use bulk_jobs::{AdvanceBulkJob, BulkFailure, BulkJob, ClaimBulkJob, PutBulkJob};
pub use changes::{AskChange, ChangePage, ChangeRow, ChangeState, DecideChange, UseChange};
pub use check::{CheckProgress, Finding, TABLE_KEY};
pub use claims::{Claimed, HeldStep, QueueLoad, ReadyGroup, ReadyRun};
pub use decisions::DecisionRow;
pub use delegations::{AddDelegation, DelegationPage, DelegationRow, RevokeDelegation};
pub use effect_holds::PastHold;
pub use error::{CorruptRow, OpenError, ReadError, Refusal, Restored, SubmitError};
pub use evidence::{BundleRow, DropEvidenceDue, PutBundle};
pub use faults::{CommitFault, FaultFrom, Faults, NoFaults};
pub use feed::{EventRecord, FeedPage, Seal, TenantEvent};
pub use idempotency::{BeginIdempotency, FinishIdempotency, IdempotencyRecord, RenewIdempotency, StartAnswer};
pub use inbound::{
    AddInbound, BeginDelivery, ChangeInbound, DeliveryBegun, DeliveryRecord, DeliveryRef, DeliveryRow, DeliveryTaken,
    Fingerprint, FinishDelivery, InboundRow, RemoveInbound, RetakeDelivery, SignedBody,
};
pub use keys::{AddFirstKey, AddKey, KeyRotated, KeyRow, RevokeKey, RotateKey, TouchKey};
pub use meta::{DropUnparked, EnsurePartitions, FinishRestore, RaiseEpoch, SetOnce, Stats};
pub use options::{Mode, Options, StoreUrl};
pub use outbound::{
    AddOutbound, AttemptRow, ChangeOutbound, DisableOutbound, LogAttempt, MessageRow, NewMessage, OutboundRow,
    PublishMessages, RemoveOutbound, ReplayMessages, destination as webhook_destination,
};
pub use outbox::{
    DeadLetter, OutboxDelivered, OutboxDestination, OutboxFailed, OutboxMessage, OutboxRetry, ReplayDeadLetters,
    TakeMessage,
};
pub use output::{AppendOutput, OutputAppended, OutputHead, OutputPlace, OutputRow};
pub use payloads::{
    ForgetPayload, KeepPayload, PayloadHolder, PayloadKept, PayloadOwner, PayloadRecord, PayloadReleased, PayloadRow,
    ReleasePayload,
};
pub use people::{
    AcceptInvite, AddInvite, AddUser, ChangeUser, CountLogin, EndUserSession, EndUserSessions, ForgetLoginFailures,
    InviteOutcome, InviteRow, InviteUser, InvitedAccount, LoginFailures, NoteLoginFailure, NoteSignIn, OpenUserSession,
    TouchUserSession, UseInvite, UserRow, UserSessionRow,
};
pub use policies::{PolicyBundleRow, PolicyBundleSummary, PolicyRow, PutPolicyBundle, SetPolicy};
pub use receipts::{ReceiptRow, SettleReceipt};
pub use restore::{RestoreLock, StagedRestore, check_backup, restore};
pub use retention::Sweep;
pub use runs::{
    ATTR_FILTERS_MAX, AttemptOutput, ChangeLabels, LiveCount, Page, RunFilter, RunStats, RunSummary, STATS_ROWS_MAX,
    StatsEnd, StatsGroup, StatsSpans, StepRow,
};
pub use schedules::{AddSchedule, ChangeSchedule, RemoveSchedule, ScheduleRow, ScheduleSpec, SlotRow};
pub use secrets::Secrets;
pub use signals::{
    AnnounceSignal, OpenWait, SignalIdentity, SignalRow, SignalScope, SignalStored, SourceId, StoreSignal,
    StoredSignal, UnmatchedSignal, WaitFilter, WaitRow,
};
pub use slack::{
    AddSlackLinkRequest, ApprovalCardRow, BeginNotice, CardChange, ChangeSlack, ClimbRung, ForgetNotice, LinkSlackUser,
    NoticePosted, NoticeRow, PublishCards, PutSlack, QueuedNotice, RemoveSlack, SlackLinkRequestRow, SlackLinkRow,
    SlackRow, SlackUser, UnlinkSlackUser,
};
pub use sqlite::memory::{change as change_memory, copy as copy_memory, forget as forget_memory};
pub use store::Store;
pub use subjects::{QueuedRun, SignalSubject, SubjectLine, SubjectSignaled};
pub use tenants::{AddTenant, ChangeTenant, PutTenant, Tenant, begin_lock};
pub use worker_identities::{AddWorkerIdentity, EnrolWorker, RenewWorker, RevokeWorkerIdentity, WorkerIdentityRow};
pub use workers::{
    ClearSessionFault, CloseSession, CountLostAssignments, DrainSession, ExpireSessions, ForgetSession,
    RegisterSession, RenewSession, SessionRow, SetSessionFault, SetSessionMaintenance, SetSessionState, UnlistedClaim,
};
pub use workflows::{PutWorkflow, SetWorkflowDisabled, WorkflowRow, WorkflowVersionRow, WorkflowVersionSummary};
pub use write::{AttachedWrites, Changed, Done, Stored, TenantWrite, Write};
