//! Statements as named values. Each noun has its own in its `sql.rs`; here stand those of the hot path. A statement is
//! written once where both databases can share it; `$1…$n` on both, and since SQLite numbers them by first appearance,
//! the digits first appear in order (a test checks).

pub mod hot;
pub mod live;
pub mod side;
pub mod text;

/// Settings of a committer's session on PostgreSQL. Plans are made once, while the tables may still be empty; with nested loops
/// over indexes as the only choice they stay right when the tables grow. Measured: generic plans alone halved the
/// throughput, these settings gave the best.
///
/// A server that is frozen in the middle of a transaction must not keep its locks: its session ends when it has been idle
/// for three seconds, or has not taken an answer for as long (a large one fills the socket, and then the session is not
/// idle). A lane that needs the same lock waits for half a second at a time and commits other tenants' sets in between;
/// without that limit the frozen server's lanes, queued behind one another, would each hold the lock for three seconds
/// in turn.
pub const COMMITTER_SETTINGS: &str = "SET plan_cache_mode = force_generic_plan; SET enable_hashjoin = off;
    SET enable_mergejoin = off; SET enable_material = off; SET enable_seqscan = off; SET enable_bitmapscan = off;
    SET jit = off; SET synchronous_commit = on; SET idle_in_transaction_session_timeout = '3s';
    SET tcp_user_timeout = '3s'; SET lock_timeout = '500ms'";
/// Settings of a session that reads, on PostgreSQL.
pub const READER_SETTINGS: &str = "SET jit = off; SET default_transaction_read_only = off;
    SET idle_in_transaction_session_timeout = '30s'";

/// A named statement.
#[derive(Debug)]
pub struct Stmt {
    pub name: &'static str,
    /// The table that an unreadable row of it is blamed on.
    pub table: &'static str,
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

/// Declares statements and the list of all of them. A statement that only one database needs leaves the other empty.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident on $table:ident { $($body:tt)+ })+) => {
        $($(#[$doc])* pub static $name: $crate::sql::Stmt = $crate::sql::statement!($name, $table, $($body)+);)+

        pub static ALL: &[&$crate::sql::Stmt] = &[$(&$name),+];
    };
}
pub(crate) use statements;

macro_rules! statement {
    ($name:ident, $table:ident, both: $sql:expr) => {
        $crate::sql::Stmt { name: stringify!($name), table: stringify!($table), sqlite: $sql, postgres: $sql }
    };
    ($name:ident, $table:ident, list: $from:literal, $id:literal, $filter:literal) => {
        $crate::sql::Stmt {
            name: stringify!($name),
            table: stringify!($table),
            sqlite: $crate::sql::list!($from, concat!("likely(", $id, " >= $2)"), $id, $filter),
            postgres: $crate::sql::list!($from, concat!($id, " >= $2"), $id, $filter),
        }
    };
    ($name:ident, $table:ident, sqlite: $sqlite:expr, postgres: $postgres:expr) => {
        $crate::sql::Stmt { name: stringify!($name), table: stringify!($table), sqlite: $sqlite, postgres: $postgres }
    };
}
pub(crate) use statement;

/// A list of runs as [`crate::RunSummary`] shows them. SQLite without statistics takes a range with two ends for so
/// narrow that it leaves the filter's own index aside, unless it is told that one end hardly matters.
macro_rules! list {
    ($from:literal, $lower:expr, $id:literal, $filter:literal) => {
        concat!(
            "SELECT o.run_id, o.workspace, o.workflow, o.workflow_version, o.subject, o.labels, o.trigger_type,
             o.trigger_ref, o.priority, o.started_by, o.root_run_id, o.resumed_from, o.resume_count, o.state, o.detail,
             o.reason, o.position, o.control, o.version, o.created_at, o.deadline_at, o.finished_at, o.duration_ms,
             o.inputs, o.output, o.error, o.eligible_at,
             (SELECT s.continued_by FROM successors s WHERE s.tenant_id = o.tenant_id AND s.run_id = o.run_id) FROM ",
            $from,
            ".tenant_id = $1 AND ",
            $lower,
            " AND ",
            $id,
            " < $3 AND o.created_at >= $4 AND o.created_at < $5 AND ",
            $filter
        )
    };
}
pub(crate) use list;
