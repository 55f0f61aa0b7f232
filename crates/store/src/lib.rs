//! SQLite and PostgreSQL behind one type: rows, not rules.
//!
//! A [`Store`] takes [`interlock_core::change::ChangeSet`]s and small [`Op`]s, commits them in groups through its
//! lanes ([`lane`]), and answers each once it is on disk, or with the guard that refused it. Reads answer with the
//! plain structs of [`rows`]; [`Store::load_runs`] gives the [`interlock_core::run::Run`]s that `decide` needs.
//! All SQL stands in [`sql`], named, and is prepared by a test on both databases.

mod apply_identity;
mod apply_op;
mod apply_trigger;
mod backup;
mod bulk;
mod db;
mod entries;
mod error;
mod identity;
mod lane;
mod migrate;
mod op;
mod options;
mod payloads;
mod plans;
mod postgres;
mod read;
mod rows;
pub mod sql;
mod sqlite;
mod stall;
mod store;
mod submit;
mod sweep;
mod triggers;
mod unreadable;
mod value;

pub use backup::{backup_file, restore, unfinished_restore};
pub use bulk::{BulkFailure, BulkJob, BulkOp, BulkProgress};
pub use error::{CorruptRow, OpenError, ReadError, Refusal, Restored, SubmitError};
pub use identity::{
    DelegationPage, DelegationRow, IdentityOp, InviteRow, KeyRow, LoginFailures, UserRow, UserSessionRow,
};
pub use op::{BeginIdempotency, Op, OpAnswer, OutboxRetry, SignalAnnouncement, SubjectSignal, Sweep};
pub use options::{CommitFault, Faults, Mode, NoFaults, Options, StoreUrl};
pub use payloads::{PayloadHolder, PayloadOp, PayloadOwner, PayloadRecord, PayloadRow};
pub use rows::{
    ATTR_FILTERS_MAX, ApprovalRow, CheckProgress, Claimed, EventRecord, FeedPage, Finding, IdempotencyRecord, OpenWait,
    OutboxDestination, OutboxMessage, Page, QueuedRun, ReadyGroup, ReadyRun, ReceiptRow, RunFilter, RunSummary,
    SessionRow, SignalRow, StartAnswer, Stats, StepRow, StoredSignal, SubjectLine, Tenant, TenantEvent, Unlisted,
    Unmatched, WaitFilter, WaitRow, WorkflowRow, WorkflowVersionRow, WorkflowVersionSummary,
};
pub use sqlite::memory::{change as change_memory, copy as copy_memory, forget as forget_memory};
pub use store::Store;
pub use triggers::{
    AttemptRow, DeadLetter, DeliveryRecord, DeliveryRef, DeliveryRow, InboundRow, MessageRow, NewMessage, OutboundRow,
    ScheduleRow, ScheduleSpec, Secrets, SlotRow, TriggerOp, destination as webhook_destination,
};
