//! Migrations: files that are part of the binary, applied in order, each with its SHA-256 on record. A file that was
//! applied is never changed.
//!
//! During a rolling upgrade servers of two releases work on one database. So a release notes with the schema since which
//! version binaries can work with it ([`SERVES_SINCE`]); an older binary than that refuses the store.

use interlock_core::json::Hash;

use crate::db::Db;
use crate::error::{DbError, OpenError};
use crate::meta;
use crate::sql::Stmt;
use crate::value::args;

pub(crate) struct Migration {
    pub version: i64,
    pub name: &'static str,
    pub sql: &'static str,
}

pub(crate) static SQLITE: &[Migration] = &[
    Migration { version: 1, name: "initial", sql: include_str!("../migrations/sqlite/0001_initial.sql") },
    Migration { version: 2, name: "identity", sql: include_str!("../migrations/sqlite/0002_identity.sql") },
    Migration { version: 3, name: "workflows", sql: include_str!("../migrations/sqlite/0003_workflows.sql") },
    Migration { version: 4, name: "http", sql: include_str!("../migrations/sqlite/0004_http.sql") },
    Migration { version: 5, name: "triggers", sql: include_str!("../migrations/sqlite/0005_triggers.sql") },
    Migration { version: 6, name: "subject_queue", sql: include_str!("../migrations/sqlite/0006_subject_queue.sql") },
    Migration { version: 7, name: "cheap_checks", sql: include_str!("../migrations/sqlite/0007_cheap_checks.sql") },
    Migration { version: 8, name: "payloads", sql: include_str!("../migrations/sqlite/0008_payloads.sql") },
    Migration { version: 9, name: "upkeep", sql: include_str!("../migrations/sqlite/0009_upkeep.sql") },
    Migration {
        version: 10,
        name: "workflow_rates",
        sql: include_str!("../migrations/sqlite/0010_workflow_rates.sql"),
    },
    Migration { version: 11, name: "people", sql: include_str!("../migrations/sqlite/0011_people.sql") },
    Migration { version: 12, name: "outbox_place", sql: include_str!("../migrations/sqlite/0012_outbox_place.sql") },
    Migration { version: 13, name: "broadcast", sql: include_str!("../migrations/sqlite/0013_broadcast.sql") },
    Migration {
        version: 14,
        name: "approval_purpose",
        sql: include_str!("../migrations/sqlite/0014_approval_purpose.sql"),
    },
    Migration { version: 15, name: "successors", sql: include_str!("../migrations/sqlite/0015_successors.sql") },
    Migration { version: 16, name: "worker_skills", sql: include_str!("../migrations/sqlite/0016_worker_skills.sql") },
    Migration {
        version: 17,
        name: "outbox_waiting",
        sql: include_str!("../migrations/sqlite/0017_outbox_waiting.sql"),
    },
    Migration {
        version: 18,
        name: "access_changed",
        sql: include_str!("../migrations/sqlite/0018_access_changed.sql"),
    },
    Migration {
        version: 19,
        name: "whom_it_is_for",
        sql: include_str!("../migrations/sqlite/0019_whom_it_is_for.sql"),
    },
    Migration { version: 20, name: "policy", sql: include_str!("../migrations/sqlite/0020_policy.sql") },
    Migration { version: 21, name: "audit", sql: include_str!("../migrations/sqlite/0021_audit.sql") },
    Migration {
        version: 22,
        name: "approval_action",
        sql: include_str!("../migrations/sqlite/0022_approval_action.sql"),
    },
    Migration { version: 23, name: "slack", sql: include_str!("../migrations/sqlite/0023_slack.sql") },
    Migration { version: 24, name: "changes", sql: include_str!("../migrations/sqlite/0024_changes.sql") },
    Migration {
        version: 25,
        name: "endpoint_names",
        sql: include_str!("../migrations/sqlite/0025_endpoint_names.sql"),
    },
    Migration { version: 26, name: "output_heads", sql: include_str!("../migrations/sqlite/0026_output_heads.sql") },
    Migration {
        version: 27,
        name: "worker_identities",
        sql: include_str!("../migrations/sqlite/0027_worker_identities.sql"),
    },
    Migration { version: 28, name: "present_state", sql: include_str!("../migrations/sqlite/0028_present_state.sql") },
    Migration { version: 29, name: "assignments", sql: include_str!("../migrations/sqlite/0029_assignments.sql") },
    Migration { version: 30, name: "effect_holds", sql: include_str!("../migrations/sqlite/0030_effect_holds.sql") },
    Migration { version: 31, name: "worker_faults", sql: include_str!("../migrations/sqlite/0031_worker_faults.sql") },
    Migration {
        version: 32,
        name: "receipt_bundle",
        sql: include_str!("../migrations/sqlite/0032_receipt_bundle.sql"),
    },
    Migration {
        version: 33,
        name: "unsettled_effects",
        sql: include_str!("../migrations/sqlite/0033_unsettled_effects.sql"),
    },
    Migration {
        version: 34,
        name: "other_approvers",
        sql: include_str!("../migrations/sqlite/0034_other_approvers.sql"),
    },
    Migration { version: 35, name: "signal_names", sql: include_str!("../migrations/sqlite/0035_signal_names.sql") },
];

pub(crate) static POSTGRES: &[Migration] = &[
    Migration { version: 1, name: "initial", sql: include_str!("../migrations/postgres/0001_initial.sql") },
    Migration { version: 2, name: "identity", sql: include_str!("../migrations/postgres/0002_identity.sql") },
    Migration { version: 3, name: "workflows", sql: include_str!("../migrations/postgres/0003_workflows.sql") },
    Migration { version: 4, name: "http", sql: include_str!("../migrations/postgres/0004_http.sql") },
    Migration { version: 5, name: "triggers", sql: include_str!("../migrations/postgres/0005_triggers.sql") },
    Migration { version: 6, name: "subject_queue", sql: include_str!("../migrations/postgres/0006_subject_queue.sql") },
    Migration { version: 7, name: "plain_entries", sql: include_str!("../migrations/postgres/0007_plain_entries.sql") },
    Migration { version: 8, name: "payloads", sql: include_str!("../migrations/postgres/0008_payloads.sql") },
    Migration { version: 9, name: "upkeep", sql: include_str!("../migrations/postgres/0009_upkeep.sql") },
    Migration {
        version: 10,
        name: "workflow_rates",
        sql: include_str!("../migrations/postgres/0010_workflow_rates.sql"),
    },
    Migration { version: 11, name: "people", sql: include_str!("../migrations/postgres/0011_people.sql") },
    Migration { version: 12, name: "outbox_place", sql: include_str!("../migrations/postgres/0012_outbox_place.sql") },
    Migration { version: 13, name: "broadcast", sql: include_str!("../migrations/postgres/0013_broadcast.sql") },
    Migration {
        version: 14,
        name: "approval_purpose",
        sql: include_str!("../migrations/postgres/0014_approval_purpose.sql"),
    },
    Migration { version: 15, name: "successors", sql: include_str!("../migrations/postgres/0015_successors.sql") },
    Migration {
        version: 16,
        name: "worker_skills",
        sql: include_str!("../migrations/postgres/0016_worker_skills.sql"),
    },
    Migration {
        version: 17,
        name: "outbox_waiting",
        sql: include_str!("../migrations/postgres/0017_outbox_waiting.sql"),
    },
    Migration {
        version: 18,
        name: "access_changed",
        sql: include_str!("../migrations/postgres/0018_access_changed.sql"),
    },
    Migration {
        version: 19,
        name: "whom_it_is_for",
        sql: include_str!("../migrations/postgres/0019_whom_it_is_for.sql"),
    },
    Migration { version: 20, name: "policy", sql: include_str!("../migrations/postgres/0020_policy.sql") },
    Migration { version: 21, name: "audit", sql: include_str!("../migrations/postgres/0021_audit.sql") },
    Migration {
        version: 22,
        name: "approval_action",
        sql: include_str!("../migrations/postgres/0022_approval_action.sql"),
    },
    Migration { version: 23, name: "slack", sql: include_str!("../migrations/postgres/0023_slack.sql") },
    Migration { version: 24, name: "changes", sql: include_str!("../migrations/postgres/0024_changes.sql") },
    Migration {
        version: 25,
        name: "endpoint_names",
        sql: include_str!("../migrations/postgres/0025_endpoint_names.sql"),
    },
    Migration { version: 26, name: "output_heads", sql: include_str!("../migrations/postgres/0026_output_heads.sql") },
    Migration {
        version: 27,
        name: "worker_identities",
        sql: include_str!("../migrations/postgres/0027_worker_identities.sql"),
    },
    Migration {
        version: 28,
        name: "present_state",
        sql: include_str!("../migrations/postgres/0028_present_state.sql"),
    },
    Migration { version: 29, name: "assignments", sql: include_str!("../migrations/postgres/0029_assignments.sql") },
    Migration { version: 30, name: "effect_holds", sql: include_str!("../migrations/postgres/0030_effect_holds.sql") },
    Migration {
        version: 31,
        name: "worker_faults",
        sql: include_str!("../migrations/postgres/0031_worker_faults.sql"),
    },
    Migration {
        version: 32,
        name: "receipt_bundle",
        sql: include_str!("../migrations/postgres/0032_receipt_bundle.sql"),
    },
    Migration {
        version: 33,
        name: "unsettled_effects",
        sql: include_str!("../migrations/postgres/0033_unsettled_effects.sql"),
    },
    Migration {
        version: 34,
        name: "other_approvers",
        sql: include_str!("../migrations/postgres/0034_other_approvers.sql"),
    },
    Migration { version: 35, name: "signal_names", sql: include_str!("../migrations/postgres/0035_signal_names.sql") },
];

/// The oldest schema whose binaries can work with this one: they neither miss nor are refused what this release has added.
/// It stays as long as migrations only add tables, indexes, and columns that may be left out; a test looks at their texts.
/// A migration that takes something away, or asks for more, raises it to its own version: then the servers of the release
/// before have to be stopped first.
const SERVES_SINCE: i64 = 18;
/// Where that is noted, with the version that it is said of.
const SERVES: &str = "schema_serves";

static APPLIED: Stmt = both("MIGRATIONS_APPLIED", "SELECT version, checksum FROM schema_migrations ORDER BY version");
static RECORD: Stmt = both(
    "MIGRATION_RECORD",
    "INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES ($1, $2, $3, $4)",
);

const fn both(name: &'static str, sql: &'static str) -> Stmt {
    Stmt { name, table: "schema_migrations", sqlite: sql, postgres: sql }
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL)";

/// Brings the schema to this binary's version, or (`apply` false) only checks that it is there. The caller has begun
/// a transaction that keeps other servers out, and commits it.
pub(crate) async fn run<D: Db>(db: &D, migrations: &[Migration], apply: bool) -> Result<(), OpenError> {
    let known = migrations.last().map_or(0, |migration| migration.version);
    if apply {
        db.batch(TABLE).await?;
    }
    let rows = match db.query(&APPLIED, vec![]).await {
        // There is no such table: nothing was ever applied.
        Err(DbError::Other(what)) if !apply && is_no_table(&what) => {
            return Err(OpenError::NeedsMigration { found: 0, known });
        }
        rows => rows?,
    };
    let mut applied = Vec::new();
    for mut row in rows {
        applied.push((row.int("version")?, row.text("checksum")?));
    }
    let found = applied.last().map_or(0, |(version, _)| *version);
    if found > known && !serves(db, found, known).await? {
        return Err(OpenError::NewerSchema { found, known });
    }
    for migration in migrations {
        let checksum = Hash::of(migration.sql.as_bytes()).to_string();
        match applied.iter().find(|(version, _)| *version == migration.version) {
            Some((_, recorded)) if *recorded == checksum => {}
            Some(_) => {
                return Err(OpenError::ChecksumChanged { version: migration.version, name: migration.name.to_owned() });
            }
            None if !apply => return Err(OpenError::NeedsMigration { found, known }),
            None => {
                db.batch(migration.sql).await?;
                let at = server_time(db).await?;
                db.execute(&RECORD, args![migration.version, migration.name, checksum, at]).await?;
                tracing::info!(version = migration.version, name = migration.name, "migrated");
            }
        }
    }
    if apply && found <= known {
        db.execute(&meta::sql::META_PUT, args![SERVES, format!("{known} since {SERVES_SINCE}")]).await?;
    }
    Ok(())
}

/// Whether a newer release has noted that binaries of the version `known` can work with its schema `found`. The note of an
/// earlier schema says nothing about this one.
async fn serves<D: Db>(db: &D, found: i64, known: i64) -> Result<bool, OpenError> {
    let mut rows = db.query(&meta::sql::META_GET, args![SERVES]).await?;
    let Some(row) = rows.first_mut() else { return Ok(false) };
    let note = row.text("value")?;
    let since = note.strip_prefix(&format!("{found} since ")).and_then(|since| since.parse::<i64>().ok());
    Ok(since.is_some_and(|since| since <= known))
}

/// As SQLite says it, or PostgreSQL's code for it.
pub(crate) fn is_no_table(what: &str) -> bool {
    what.contains("no such table") || what.contains("(42P01)")
}

/// The database's clock: when a migration ran is for people only.
async fn server_time<D: Db>(db: &D) -> Result<i64, DbError> {
    let mut rows = db.query(&crate::meta::sql::SERVER_TIME, vec![]).await?;
    Ok(rows.first_mut().map_or(Ok(0), |row| row.int("now"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What binaries of before could miss, or be refused.
    const NOT_ADDED: [&str; 7] =
        ["DROP ", "RENAME ", "SET NOT NULL", " TYPE ", "ADD CONSTRAINT", "UNIQUE INDEX", "DELETE FROM"];

    fn breaks(sql: &str) -> Option<&'static str> {
        let code: Vec<&str> = sql.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
        let code = code.join(" ").to_uppercase();
        let is_required = |column: &str| column.contains("NOT NULL") && !column.contains("DEFAULT");
        let mut added = code.split("ADD COLUMN").skip(1).map(|rest| rest.split([';', ',']).next().unwrap_or_default());
        if added.any(is_required) {
            return Some("a new column that has to be given");
        }
        // What is unique in a table or a column of the migration's own was never otherwise: binaries of before write neither.
        let is_new = |statement: &str| {
            let table = statement.split(" ON ").nth(1).and_then(|rest| rest.split_whitespace().next());
            let column = statement.split(" WHERE ").nth(1).and_then(|rest| rest.strip_suffix(" IS NOT NULL"));
            statement.contains("UNIQUE INDEX")
                && (table.is_some_and(|table| code.contains(&format!("CREATE TABLE {table} (")))
                    || column.is_some_and(|column| code.contains(&format!("ADD COLUMN {column} "))))
        };
        let old: Vec<&str> = code.split(';').filter(|statement| !is_new(statement)).collect();
        NOT_ADDED.into_iter().find(|word| old.iter().any(|statement| statement.contains(word)))
    }

    #[test]
    fn migrations_that_serve_older_binaries_only_add() {
        for migration in SQLITE.iter().chain(POSTGRES).filter(|migration| migration.version > SERVES_SINCE) {
            let found = breaks(migration.sql);
            assert_eq!(found, None, "{}: raise SERVES_SINCE to {}", migration.name, migration.version);
        }
    }

    #[test]
    fn what_older_binaries_cannot_work_with_is_recognised() {
        assert_eq!(breaks("CREATE TABLE t (a BIGINT NOT NULL);\n-- DROP nothing\nCREATE INDEX i ON t (a);"), None);
        assert_eq!(breaks("ALTER TABLE t ADD COLUMN b BIGINT NOT NULL DEFAULT 0, ADD COLUMN c TEXT;"), None);
        assert_eq!(breaks("ALTER TABLE t ADD COLUMN b TEXT;CREATE UNIQUE INDEX u ON t (b) WHERE b IS NOT NULL;"), None);
        for sql in [
            "ALTER TABLE t ADD COLUMN b TEXT; CREATE UNIQUE INDEX u ON t (a) WHERE a IS NOT NULL;",
            "ALTER TABLE t ADD COLUMN b BIGINT NOT NULL;",
            "alter table t drop column b;",
            "ALTER TABLE t RENAME COLUMN a TO b;",
            "ALTER TABLE t ALTER COLUMN a SET NOT NULL;",
            "CREATE UNIQUE INDEX u ON t (a);",
        ] {
            assert!(breaks(sql).is_some(), "{sql}");
        }
    }
}
