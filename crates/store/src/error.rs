//! What can go wrong, split by what the caller can do about it.

use interlock_core::ids::RunId;
use interlock_core::tenant::caps::ReachedCap;

/// The store could not be opened. Every message says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("`{url}` is not a store: expected `sqlite:PATH`, `postgres://…` or `postgresql://…`")]
    InvalidUrl { url: String },
    #[error("{path} is in use by another Interlock process{}; stop that one first: one SQLite file has one server",
        .pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Locked { path: String, pid: Option<u32> },
    #[error(
        "the schema of this store is version {found}, this binary knows version {known}: it was written by a newer release; upgrade this binary, or restore a backup made before the upgrade"
    )]
    NewerSchema { found: i64, known: i64 },
    #[error(
        "the store has no schema yet, or an older one (version {found}, needed {known}): run `interlock db migrate`"
    )]
    NeedsMigration { found: i64, known: i64 },
    #[error(
        "migration {version} ({name}) differs from the one that was applied to this store: this binary and the store do not belong together; use the release that made the store"
    )]
    ChecksumChanged { version: i64, name: String },
    #[error("cannot reach the database: {what}; check the address, that it is running, and that the user may connect")]
    Connect { what: String },
    #[error("the connection to the database cannot be encrypted as its address asks: {what}")]
    Tls { what: String },
    #[error(
        "row security cannot be used ({what}): let the database user create roles (`ALTER USER … CREATEROLE`), or have an administrator run `CREATE ROLE interlock_reader NOLOGIN; GRANT interlock_reader TO` the user; to go without this second check between tenants add `row_security=optional` to the store's address"
    )]
    RowSecurity { what: String },
    #[error("{path} is not an Interlock store, nor a backup of one: {what}")]
    NotAStore { path: String, what: String },
    #[error(
        "the store is in service, and is not restored under the servers that are at work on it: stop them first. There is {servers}. The connection of a machine that is gone ends within half a minute. A server that cannot be stopped is kept out first (ALTER ROLE … NOLOGIN), and then its connections are ended (pg_terminate_backend): by itself it connects again within a second"
    )]
    InService { servers: String },
    #[error(
        "the store is being restored by {by}: wait until that has ended. The connection of a machine that is gone ends within half a minute; pg_terminate_backend(PROCESS) ends it at once"
    )]
    BeingRestored { by: String },
    #[error(
        "this database was brought into service before, in epoch {epoch}, and no dump was loaded and no earlier point in time brought back since: there is nothing to restore. Only where a copy of its disks was put back, which leaves no trace, say so with --again"
    )]
    AlreadyRestored { epoch: u64 },
    #[error("cannot use {path}: {what}")]
    File { path: String, what: String },
    #[error(transparent)]
    Corrupt(#[from] CorruptRow),
    #[error("the database refused: {0}")]
    Database(#[from] DbError),
}

/// A row that does not hold what the schema says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("table {table}, column {column}, row {row}: {what}; run `interlock db check`")]
pub struct CorruptRow {
    pub table: &'static str,
    pub column: &'static str,
    pub row: String,
    pub what: String,
}

/// A read failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Corrupt(#[from] CorruptRow),
    /// Try again: the database is away or slow.
    #[error("the database did not answer: {0}")]
    Unavailable(String),
    #[error("the database refused: {0}")]
    Database(String),
    #[error("the store is closed")]
    Closed,
}

/// The database was restored from a backup while this server was at work, or failed over to a standby that was behind: its
/// epoch is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the database was restored from a backup, or has lost commits in a failover (its epoch is {found}, this server began with {had}): restart this server"
)]
pub struct Restored {
    pub had: u64,
    pub found: u64,
}

/// A submission was not committed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SubmitError {
    /// A guard did not hold; nothing was written.
    #[error("{0}")]
    Refused(Refusal),
    /// The queue is full: try again later, and less often.
    #[error("the store has more writes waiting than it takes; try again")]
    Busy,
    /// Commits have been failing for a while; this one was not even tried.
    #[error("the database takes no writes at the moment ({0}); try again later")]
    Stalled(String),
    /// The same, because there is no room.
    #[error(
        "the disk of the database is full ({0}); nothing is committed until there is room, and then it goes on by itself"
    )]
    DiskFull(String),
    /// The same, because the file of the database is not where it was.
    #[error("{0}; nothing is committed until then")]
    FileGone(String),
    /// Nothing is committed any more.
    #[error(transparent)]
    Restored(Restored),
    /// Nothing is committed any more: a lane has panicked with these words.
    #[error(
        "a commit lane of this server has panicked, which is a bug in Interlock: restart this server, which goes on from what is committed; the panic said: {0}"
    )]
    LanePanicked(String),
    #[error("the store is closed")]
    Closed,
    /// The database refuses the rows themselves; trying again will not help.
    #[error("the database refused the rows: {0}")]
    Corrupt(String),
}

impl SubmitError {
    /// Whether the store commits nothing more until its process is started again.
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Restored(_) | Self::LanePanicked(_))
    }
}

/// Which guard refused a change set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the run has changed meanwhile; load it and decide again")]
    Version,
    #[error("the run exists already")]
    RunExists,
    #[error("the tenant does not exist")]
    UnknownTenant,
    #[error("the tenant's caps do not admit another claim now")]
    Throttled,
    #[error("the workflow's limits do not admit another claim now")]
    WorkflowThrottled { held: ReachedCap },
    #[error("the idempotency key has been used")]
    IdempotencyExists,
    #[error("run {run} holds the subject")]
    SubjectBusy { run: RunId },
    #[error("as many runs wait for the subject as may")]
    SubjectQueueFull,
    #[error("the signal has been consumed")]
    SignalConsumed,
    #[error("this person has voted already")]
    VoteExists,
    #[error("an account that the vote rests on has changed meanwhile")]
    AccountChanged,
    #[error("the effect has a receipt already")]
    ReceiptExists,
    #[error("run {by} continues that run already")]
    Continued { by: RunId },
    #[error("the tenant has as many pending runs as it may")]
    TooManyPending,
    #[error("the tenant is disabled")]
    TenantDisabled,
}

/// What a database said, sorted by what follows from it.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// Deadlock or serialisation failure: the same transaction can be run again.
    #[error("conflict with another transaction: {0}")]
    Conflict(String),
    /// The connection is gone; whether a commit under way has happened is unknown.
    #[error("connection lost: {0}")]
    Lost(String),
    /// Another transaction has held a lock for longer than the lock timeout: nothing was written.
    #[error("locked by another transaction: {0}")]
    Locked(String),
    /// Busy, out of memory: nothing was written, and it may work later.
    #[error("not now: {0}")]
    Later(String),
    /// Nothing was written, and it works once there is room.
    #[error("the disk of the database is full: {0}")]
    DiskFull(String),
    /// Nothing was written: the file that is open is not the one at its path any more, and goes with the process.
    #[error("{0}")]
    FileGone(String),
    #[error("unique constraint: {0}")]
    Unique(String),
    /// The file is damaged, or is no database.
    #[error("the database file is malformed ({0}): restore a backup")]
    Malformed(String),
    #[error("{0}")]
    Other(String),
    #[error(transparent)]
    Restored(Restored),
    #[error(transparent)]
    Corrupt(#[from] CorruptRow),
}

impl DbError {
    pub const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Conflict(_)
                | Self::Lost(_)
                | Self::Locked(_)
                | Self::Later(_)
                | Self::DiskFull(_)
                | Self::FileGone(_)
        )
    }
}

impl From<DbError> for ReadError {
    fn from(error: DbError) -> Self {
        match error {
            DbError::Corrupt(row) => Self::Corrupt(row),
            DbError::Other(what) | DbError::Unique(what) => Self::Database(what),
            DbError::Malformed(_) => Self::Database(error.to_string()),
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<rusqlite::Error> for DbError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let text = error.to_string();
        match error.sqlite_error() {
            Some(inner) => match inner.code {
                Code::ConstraintViolation
                    if inner.extended_code == rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY
                        || inner.extended_code == rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE
                        || inner.extended_code == rusqlite::ffi::SQLITE_CONSTRAINT_ROWID =>
                {
                    Self::Unique(text)
                }
                Code::DiskFull => Self::DiskFull(text),
                // The file that readers and writers share could not be made larger.
                Code::SystemIoFailure if inner.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE => {
                    Self::DiskFull(text)
                }
                Code::DatabaseBusy | Code::DatabaseLocked | Code::OutOfMemory | Code::SystemIoFailure => {
                    Self::Later(text)
                }
                Code::DatabaseCorrupt | Code::NotADatabase => Self::Malformed(text),
                _ => Self::Other(text),
            },
            None => Self::Other(text),
        }
    }
}

/// The error with what caused it.
fn describe(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", describe(source)),
        None => error.to_string(),
    }
}

impl From<tokio_postgres::Error> for DbError {
    fn from(error: tokio_postgres::Error) -> Self {
        use tokio_postgres::error::SqlState;
        let text = match error.as_db_error() {
            Some(db) => format!("{} ({})", db.message(), db.code().code()),
            None => error.to_string(),
        };
        match error.code() {
            // Without a code it is not the server's answer: either the server is not reached, or a value that was bound
            // does not fit.
            None => {
                let io = std::error::Error::source(&error).is_some_and(<dyn std::error::Error>::is::<std::io::Error>);
                if io || error.is_closed() { Self::Lost(describe(&error)) } else { Self::Other(describe(&error)) }
            }
            Some(code) if *code == SqlState::T_R_DEADLOCK_DETECTED || *code == SqlState::T_R_SERIALIZATION_FAILURE => {
                Self::Conflict(text)
            }
            Some(code) if *code == SqlState::UNIQUE_VIOLATION => Self::Unique(text),
            // Class 57: shutdown and cancel; 08: connection; 25006: a standby that was taken for the primary; 25P03 and
            // 25P04: the transaction was idle, or under way, for too long, and its session is ended.
            Some(code) if code.code().starts_with("08") || code.code().starts_with("57") => Self::Lost(text),
            Some(code) if matches!(code.code(), "25006" | "25P03" | "25P04") => Self::Lost(text),
            Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE => Self::Locked(text),
            Some(code) if *code == SqlState::DISK_FULL => Self::DiskFull(text),
            // The rest of class 53: out of memory, too many connections; 55: an object is not ready.
            Some(code) if code.code().starts_with("53") || code.code().starts_with("55") => Self::Later(text),
            Some(_) => Self::Other(text),
        }
    }
}
