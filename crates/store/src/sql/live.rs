//! The row of `run_live`, said once. What stands here is the texts of the statements that write and load it on both
//! databases, and what is bound to them: everything is put together by the compiler, so nothing is paid for it at run time.

use interlock_core::run::change::LiveRow;

use super::text::Text;
use crate::submit::Prepared;

/// What a row of `run_live` is written from.
#[derive(Clone, Copy)]
pub(crate) struct LiveRowWrite<'a> {
    pub set: &'a Prepared,
    pub row: &'a LiveRow,
}

/// The columns in the order of the table, which is that of every list: each with its type on PostgreSQL, whether it is
/// written where a worker goes on to the next step (`advances`: no index sees the column), whether it is read where a run is
/// loaded, and what is written to it. The key (`tenant_id`, `run_id`, `branch`) comes before them.
macro_rules! live_row {
    ($then:ident!($($given:tt)*)) => {
        $then! { ($($given)*)
            version bigint advances loaded |w| w.row.version as i64;
            control text stays loaded |w| w.row.control.as_str();
            state text advances loaded |w| w.row.state.as_str();
            detail text advances loaded |w| w.row.detail.map(interlock_core::state::Detail::as_str);
            reason text advances loaded |w| w.row.reason.map(interlock_core::state::Reason::as_str);
            position bigint advances loaded |w| i64::from(w.row.position);
            step_state text advances loaded |w| w.row.step_state.as_str();
            attempt bigint advances loaded |w| i64::from(w.row.attempt);
            failures bigint advances loaded |w| i64::from(w.row.failures);
            iteration bigint advances loaded |w| i64::from(w.row.iteration);
            workspace text stays written |w| w.row.workspace.as_str();
            queue text stays written |w| w.row.queue.as_str();
            priority bigint stays written |w| i64::from(w.row.priority);
            eligible_at bigint stays loaded |w| w.row.eligible_at.map(|at| at.0);
            session_id bytea stays loaded |w| w.row.session.as_ref().map(|session| session.as_bytes().as_slice());
            claimed_at bigint advances loaded |w| w.row.claimed_at.map(|at| at.0);
            step_timeout_at bigint advances loaded |w| w.row.step_timeout_at.map(|at| at.0);
            wake_at bigint stays written |w| w.row.wake_at.map(|at| at.0);
            step_data text advances loaded |w| w.set.step_data.as_deref();
            notes text advances loaded |w| w.set.notes.as_deref();
        }
    };
}
pub(crate) use live_row;

/// Whether a word of the description is the one that is asked for.
macro_rules! says {
    (advances advances) => {
        true
    };
    (loaded loaded) => {
        true
    };
    ($word:ident $asked:ident) => {
        false
    };
}
pub(crate) use says;

macro_rules! described {
    (() $($name:ident $kind:ident $moves:ident $read:ident |$w:ident| $value:expr;)+) => {
        &[$(LiveColumn {
            name: stringify!($name),
            kind: stringify!($kind),
            advances: says!($moves advances),
            loaded: says!($read loaded),
        }),+]
    };
}

/// A column of `run_live`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveColumn {
    pub name: &'static str,
    /// Its type on PostgreSQL.
    pub kind: &'static str,
    pub advances: bool,
    pub loaded: bool,
}

pub const LIVE_COLUMNS: &[LiveColumn] = live_row!(described!());

/// Some of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LiveList {
    All,
    Advancing,
    Loaded,
}

impl LiveList {
    /// Whether a list for writing has a column.
    pub const fn writes(self, advances: bool) -> bool {
        advances || !matches!(self, Self::Advancing)
    }

    const fn has(self, column: &LiveColumn) -> bool {
        match self {
            Self::All => true,
            Self::Advancing => column.advances,
            Self::Loaded => column.loaded,
        }
    }
}

/// How a list spells its columns.
#[derive(Clone, Copy)]
enum Spelling {
    /// `version`
    Name,
    /// `l.version`
    Loaded,
    /// `?4`
    Number,
    /// `version = ?4`
    AssignedNumber,
    /// `version = u.version`
    AssignedName,
    /// `unnest($4::bigint[])`
    Array,
    /// `unnest($4::bigint[]) AS version`
    NamedArray,
}

/// Adds a list; its first argument has this number.
const fn list(mut text: Text, columns: LiveList, first: usize, spelling: Spelling) -> Text {
    let (mut at, mut number) = (0, first);
    while at < LIVE_COLUMNS.len() {
        let column = &LIVE_COLUMNS[at];
        at += 1;
        if !columns.has(column) {
            continue;
        }
        if number > first {
            text = text.then(", ");
        }
        text = match spelling {
            Spelling::Name => text.then(column.name),
            Spelling::Loaded => text.then("l.").then(column.name),
            Spelling::Number => text.then("?").number(number),
            Spelling::AssignedNumber => text.then(column.name).then(" = ?").number(number),
            Spelling::AssignedName => text.then(column.name).then(" = u.").then(column.name),
            Spelling::Array => array(text, column, number),
            Spelling::NamedArray => array(text, column, number).then(" AS ").then(column.name),
        };
        number += 1;
    }
    text
}

const fn array(text: Text, column: &LiveColumn, number: usize) -> Text {
    text.then("unnest($").number(number).then("::").then(column.kind).then("[])")
}

const fn insert(values: &str, spelling: Spelling, end: &str) -> Text {
    let text = list(Text::of("INSERT INTO run_live (tenant_id, run_id, "), LiveList::All, 3, Spelling::Name);
    list(text.then(values), LiveList::All, 3, spelling).then(end)
}

/// `$1` to `$3` are the key and the version that the row must have.
const fn update_sqlite(columns: LiveList) -> Text {
    list(Text::of("UPDATE run_live SET "), columns, 4, Spelling::AssignedNumber)
        .then(" WHERE tenant_id = ?1 AND run_id = ?2 AND branch = 0 AND version = ?3")
}

const fn update_postgres(columns: LiveList) -> Text {
    let text = list(Text::of("UPDATE run_live l SET "), columns, 4, Spelling::AssignedName).then(
        " FROM (SELECT a.*, (SELECT k.ctid FROM run_live k WHERE k.tenant_id = a.tenant_id
          AND k.run_id = a.run_id AND k.branch = 0 AND k.version = a.expected) AS place
          FROM (SELECT unnest($1::bytea[]) AS tenant_id, unnest($2::bytea[]) AS run_id, unnest($3::bigint[]) AS expected, ",
    );
    list(text, columns, 4, Spelling::NamedArray)
        .then(") AS a OFFSET 0) AS u WHERE l.ctid = u.place AND l.version = u.expected")
}

/// What a run is loaded with, from both of its rows.
const fn load(before: &str, after: &str) -> Text {
    let text = Text::of(before).then(
        "SELECT r.run_id, r.workspace, r.plan_hash, r.inputs, r.subject, r.labels, r.trigger_type, r.trigger_ref,
         r.priority, r.started_by, r.root_run_id, r.resumed_from, r.resume_count, r.created_at, r.deadline_at,
         r.state, r.reason, r.position, r.version, r.finished_at, r.notes, ",
    );
    list(text, LiveList::Loaded, 1, Spelling::Loaded)
        .then(
            " FROM runs r LEFT JOIN run_live l ON l.tenant_id = r.tenant_id AND l.run_id = r.run_id AND l.branch = 0
             WHERE ",
        )
        .then(after)
}

/// A text as a constant.
macro_rules! texts {
    ($($name:ident = $text:expr;)+) => {
        $(pub const $name: &str = {
            const TEXT: &Text = &$text;
            TEXT.as_str()
        };)+
    };
}

texts! {
    INSERT_SQLITE = insert(") VALUES (?1, ?2, ", Spelling::Number, ")");
    INSERT_POSTGRES = insert(") SELECT unnest($1::bytea[]), unnest($2::bytea[]), ", Spelling::Array, "");
    PUT_SQLITE = update_sqlite(LiveList::All);
    PUT_POSTGRES = update_postgres(LiveList::All);
    ADVANCE_SQLITE = update_sqlite(LiveList::Advancing);
    ADVANCE_POSTGRES = update_postgres(LiveList::Advancing);
    LOAD_ONE = load("", "r.tenant_id = $1 AND r.run_id = $2");
    LOAD_MANY = load(
        "SELECT k.tenant_id, f.*
         FROM (SELECT substring($1::bytea FROM n * 32 + 1 FOR 16) AS tenant_id,
         substring($1::bytea FROM n * 32 + 17 FOR 16) AS run_id
         FROM generate_series(0, octet_length($1::bytea) / 32 - 1) AS n) AS k CROSS JOIN LATERAL (",
        "r.tenant_id = k.tenant_id AND r.run_id = k.run_id OFFSET 0) AS f",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shapes once, spelled out; the rows themselves are read back in `tests/conformance/live_row.rs`.
    #[test]
    fn lists_are_numbered_from_the_key_on() {
        assert!(INSERT_SQLITE.starts_with("INSERT INTO run_live (tenant_id, run_id, version, control, state, "));
        assert!(INSERT_SQLITE.ends_with("step_data, notes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)"));
        assert!(INSERT_POSTGRES.ends_with("unnest($17::bytea[]), unnest($18::bigint[]), unnest($19::bigint[]), unnest($20::bigint[]), unnest($21::text[]), unnest($22::text[])"));
        assert!(ADVANCE_SQLITE.starts_with("UPDATE run_live SET version = ?4, state = ?5, detail = ?6, reason = ?7, position = ?8, step_state = ?9, attempt = ?10, failures = ?11, iteration = ?12, claimed_at = ?13, step_timeout_at = ?14, step_data = ?15, notes = ?16 WHERE"));
        assert!(PUT_POSTGRES.contains("queue = u.queue, ") && PUT_POSTGRES.contains("unnest($15::text[]) AS queue, "));
        assert!(LOAD_ONE.contains("l.iteration, l.eligible_at, l.session_id, ") && !LOAD_ONE.contains("l.queue"));
    }

    /// No index sees what advances: SQLite would rewrite its entries.
    #[test]
    fn what_advances_stands_in_no_index() {
        for column in ["control", "queue", "priority", "eligible_at", "session_id", "wake_at", "workspace"] {
            assert!(LIVE_COLUMNS.iter().any(|one| one.name == column && !one.advances), "{column}");
        }
    }
}
