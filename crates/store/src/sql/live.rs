//! The columns of `run_live`, said once. The hot path's statements spell them out in some eighteen lists, by hand, because
//! each has its own numbers and its own subset; the tests here and in `tests/conformance/live_row.rs` hold every list
//! against this description and name the column that is missing, stands twice, or stands elsewhere.

/// A column of `run_live`. The key (`tenant_id`, `run_id`, `branch`) comes before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveColumn {
    pub name: &'static str,
    /// Its type on PostgreSQL.
    pub kind: &'static str,
    /// Written where a worker goes on to the next step: no index sees the column.
    pub advances: bool,
    /// Read where a run is loaded.
    pub loaded: bool,
}

const fn column(name: &'static str, kind: &'static str, advances: bool, loaded: bool) -> LiveColumn {
    LiveColumn { name, kind, advances, loaded }
}

/// In the order of the table, which is that of every list.
pub static LIVE_COLUMNS: [LiveColumn; 20] = [
    column("version", "bigint", true, true),
    column("control", "text", false, true),
    column("state", "text", true, true),
    column("detail", "text", true, true),
    column("reason", "text", true, true),
    column("position", "bigint", true, true),
    column("step_state", "text", true, true),
    column("attempt", "bigint", true, true),
    column("failures", "bigint", true, true),
    column("iteration", "bigint", true, true),
    column("workspace", "text", false, false),
    column("queue", "text", false, false),
    column("priority", "bigint", false, false),
    column("eligible_at", "bigint", false, true),
    column("session_id", "bytea", false, true),
    column("claimed_at", "bigint", true, true),
    column("step_timeout_at", "bigint", true, true),
    column("wake_at", "bigint", false, false),
    column("step_data", "text", true, true),
    column("notes", "text", true, true),
];

#[cfg(test)]
mod tests {
    use super::{LIVE_COLUMNS, LiveColumn};
    use crate::runs;
    use crate::sql::{Stmt, hot};

    /// Compares a list with the description, and says by name what is wrong.
    fn compare(list: &str, found: &[String], wanted: &[String]) -> Result<(), String> {
        for name in wanted {
            match found.iter().filter(|found| *found == name).count() {
                0 => return Err(format!("{list}: `{name}` is missing")),
                1 => {}
                _ => return Err(format!("{list}: `{name}` stands twice")),
            }
        }
        if let Some(name) = found.iter().find(|name| !wanted.contains(name)) {
            return Err(format!("{list}: `{name}` is not expected"));
        }
        match found.iter().zip(wanted).find(|(found, wanted)| found != wanted) {
            Some((found, wanted)) => Err(format!("{list}: `{found}` stands where `{wanted}` should")),
            None => Ok(()),
        }
    }

    /// The parts of a list that stands between two texts.
    fn between(sql: &str, from: &str, to: &str) -> Vec<String> {
        let (_, rest) = sql.split_once(from).unwrap_or_else(|| panic!("no `{from}` in {sql}"));
        let (list, _) = rest.split_once(to).unwrap_or_else(|| panic!("no `{to}` behind `{from}` in {sql}"));
        list.split(',').map(|part| part.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    fn one_line(sql: &str) -> String {
        sql.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The arguments that name the row, before those of the columns.
    const KEY: [LiveColumn; 3] = [
        super::column("tenant_id", "bytea", true, true),
        super::column("run_id", "bytea", true, true),
        super::column("expected", "bigint", true, true),
    ];

    /// The lists of a statement that changes the row, on both databases.
    fn check_update(stmt: &Stmt, columns: &[LiveColumn]) -> Result<(), String> {
        let first = KEY.len() + 1;
        let on = |database: &str, list: &str| format!("{} on {database}, {list}", stmt.name);
        let assigned = |value: &dyn Fn(usize, &LiveColumn) -> String| -> Vec<String> {
            columns
                .iter()
                .enumerate()
                .map(|(index, column)| format!("{} = {}", column.name, value(index, column)))
                .collect()
        };
        let sqlite = one_line(stmt.sqlite);
        let numbered = assigned(&|index, _| format!("?{}", index + first));
        compare(&on("SQLite", "SET"), &between(&sqlite, " SET ", " WHERE "), &numbered)?;
        let postgres = one_line(stmt.postgres);
        let named = assigned(&|_, column| format!("u.{}", column.name));
        compare(&on("PostgreSQL", "SET"), &between(&postgres, " SET ", " FROM "), &named)?;
        let arrays: Vec<String> = KEY
            .iter()
            .chain(columns)
            .enumerate()
            .map(|(index, column)| format!("unnest(${}::{}[]) AS {}", index + 1, column.kind, column.name))
            .collect();
        compare(&on("PostgreSQL", "arrays"), &between(&postgres, "AS place FROM (SELECT ", ") AS a OFFSET 0"), &arrays)
    }

    fn check_insert(stmt: &Stmt) -> Result<(), String> {
        let columns: Vec<&LiveColumn> = KEY[..2].iter().chain(&LIVE_COLUMNS).collect();
        let on = |database: &str, list: &str| format!("{} on {database}, {list}", stmt.name);
        let names: Vec<String> = columns.iter().map(|column| column.name.to_owned()).collect();
        let (sqlite, postgres) = (one_line(stmt.sqlite), one_line(stmt.postgres));
        compare(&on("SQLite", "columns"), &between(&sqlite, "INTO run_live (", ")"), &names)?;
        let numbers: Vec<String> = (1..=columns.len()).map(|number| format!("?{number}")).collect();
        compare(&on("SQLite", "values"), &between(&sqlite, "VALUES (", ")"), &numbers)?;
        compare(&on("PostgreSQL", "columns"), &between(&postgres, "INTO run_live (", ")"), &names)?;
        let arrays: Vec<String> = columns
            .iter()
            .enumerate()
            .map(|(index, column)| format!("unnest(${}::{}[])", index + 1, column.kind))
            .collect();
        let found: Vec<String> =
            postgres.split_once(" SELECT ").expect("arrays").1.split(", ").map(str::to_owned).collect();
        compare(&on("PostgreSQL", "arrays"), &found, &arrays)
    }

    fn check_load(stmt: &Stmt, sql: &str) -> Result<(), String> {
        let wanted: Vec<String> =
            LIVE_COLUMNS.iter().filter(|column| column.loaded).map(|column| format!("l.{}", column.name)).collect();
        let sql = one_line(sql);
        let found = between(&sql, "r.finished_at, r.notes, ", " FROM runs r");
        compare(stmt.name, &found, &wanted)
    }

    #[test]
    fn every_list_of_columns_is_the_description() {
        let advances: Vec<LiveColumn> = LIVE_COLUMNS.iter().filter(|column| column.advances).copied().collect();
        check_insert(&hot::LIVE_INSERT).unwrap();
        check_update(&hot::LIVE_PUT, &LIVE_COLUMNS).unwrap();
        check_update(&hot::LIVE_ADVANCE, &advances).unwrap();
        let (one, many) = (&runs::sql::RUN_LOAD, &runs::sql::RUNS_LOAD);
        check_load(one, one.sqlite).unwrap();
        check_load(one, one.postgres).unwrap();
        check_load(many, many.postgres).unwrap();
    }

    /// Each kind of mistake is found, and named.
    #[test]
    fn a_list_that_differs_is_named() {
        let put = |from: &str, to: &str| {
            let changed = |sql: &str| &*one_line(sql).replacen(from, to, 1).leak();
            let stmt = Stmt {
                name: "LIVE_PUT",
                table: "run_live",
                sqlite: changed(hot::LIVE_PUT.sqlite),
                postgres: changed(hot::LIVE_PUT.postgres),
            };
            check_update(&stmt, &LIVE_COLUMNS).unwrap_err()
        };
        assert_eq!(put("queue = ?15, ", ""), "LIVE_PUT on SQLite, SET: `queue = ?15` is missing");
        assert_eq!(put("queue = ?15", "queue = ?16"), "LIVE_PUT on SQLite, SET: `queue = ?15` is missing");
        assert_eq!(
            put("queue = u.queue", "queue = u.priority"),
            "LIVE_PUT on PostgreSQL, SET: `queue = u.queue` is missing"
        );
        assert_eq!(
            put("notes = u.notes", "notes = u.notes, notes = u.notes"),
            "LIVE_PUT on PostgreSQL, SET: `notes = u.notes` stands twice"
        );
        let swapped = put("detail = u.detail, reason = u.reason", "reason = u.reason, detail = u.detail");
        assert_eq!(swapped, "LIVE_PUT on PostgreSQL, SET: `reason = u.reason` stands where `detail = u.detail` should");
        assert_eq!(
            put("unnest($15::text[]) AS queue", "unnest($15::text[]) AS workspace"),
            "LIVE_PUT on PostgreSQL, arrays: `unnest($15::text[]) AS queue` is missing"
        );
    }
}
