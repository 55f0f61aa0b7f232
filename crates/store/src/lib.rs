//! SQLite and PostgreSQL behind one type: rows, not rules.
//!
//! A [`Store`] takes [`interlock_core::change::ChangeSet`]s and small [`Op`]s, commits them in groups through its
//! lanes ([`lane`]), and answers each once it is on disk, or with the guard that refused it. Every noun has a folder with
//! its rows (`rows.rs`), its statements (`sql.rs`), its reads (`reads.rs`) and its writes; what several nouns share stands
//! beside them: the hot path ([`sql`], [`submit`], [`lane`]) and the two databases ([`sqlite`], [`postgres`]).
//! [`Store::load_runs`] gives the [`interlock_core::run::Run`]s that `decide` needs. Every statement is prepared by a
//! test on both databases.

mod apply_identity;
mod apply_op;
mod apply_trigger;
mod approvals;
mod backup;
mod bulk_jobs;
mod check;
mod claims;
mod db;
mod delegations;
mod error;
mod feed;
mod idempotency;
mod identity;
mod inbound;
mod keys;
mod lane;
mod meta;
mod migrate;
mod op;
mod options;
mod outbound;
mod outbox;
mod payloads;
mod people;
mod plans;
mod postgres;
mod receipts;
mod retention;
mod runs;
mod schedules;
mod secrets;
mod signals;
pub mod sql;
mod sqlite;
mod stall;
mod store;
mod subjects;
mod submit;
mod tenants;
mod triggers;
mod unreadable;
mod value;
mod workers;
mod workflows;

pub use approvals::ApprovalRow;
pub use backup::{backup_file, restore, unfinished_restore};
pub use bulk_jobs::{BulkFailure, BulkJob, BulkOp, BulkProgress};
pub use check::{CheckProgress, Finding};
pub use claims::{Claimed, ReadyGroup, ReadyRun};
pub use delegations::{DelegationPage, DelegationRow};
pub use error::{CorruptRow, OpenError, ReadError, Refusal, Restored, SubmitError};
pub use feed::{EventRecord, FeedPage, TenantEvent};
pub use idempotency::{IdempotencyRecord, StartAnswer};
pub use identity::IdentityOp;
pub use inbound::{DeliveryRecord, DeliveryRef, DeliveryRow, InboundRow};
pub use keys::KeyRow;
pub use meta::Stats;
pub use op::{BeginIdempotency, Op, OpAnswer, OutboxRetry, SignalAnnouncement, SubjectSignal, Sweep};
pub use options::{CommitFault, Faults, Mode, NoFaults, Options, StoreUrl};
pub use outbound::{AttemptRow, MessageRow, NewMessage, OutboundRow, destination as webhook_destination};
pub use outbox::{DeadLetter, OutboxDestination, OutboxMessage};
pub use payloads::{PayloadHolder, PayloadOp, PayloadOwner, PayloadRecord, PayloadRow};
pub use people::{InviteRow, LoginFailures, UserRow, UserSessionRow};
pub use receipts::ReceiptRow;
pub use runs::{ATTR_FILTERS_MAX, Page, RunFilter, RunSummary, StepRow};
pub use schedules::{ScheduleRow, ScheduleSpec, SlotRow};
pub use secrets::Secrets;
pub use signals::{OpenWait, SignalRow, StoredSignal, Unmatched, WaitFilter, WaitRow};
pub use sqlite::memory::{copy as copy_memory, forget as forget_memory};
pub use store::Store;
pub use subjects::{QueuedRun, SubjectLine};
pub use tenants::Tenant;
pub use triggers::TriggerOp;
pub use workers::{SessionRow, Unlisted};
pub use workflows::{WorkflowRow, WorkflowVersionRow, WorkflowVersionSummary};
