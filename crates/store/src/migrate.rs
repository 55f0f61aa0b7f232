//! Migrations: files that are part of the binary, applied in order, each with its SHA-256 on record. A file that was
//! applied is never changed; a store from a newer release is refused.

use interlock_core::json::Hash;

use crate::db::Db;
use crate::error::{DbError, OpenError};
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
];

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
    if found > known {
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
    Ok(())
}

/// As SQLite says it, or PostgreSQL's code for it.
fn is_no_table(what: &str) -> bool {
    what.contains("no such table") || what.contains("(42P01)")
}

/// The database's clock: when a migration ran is for people only.
async fn server_time<D: Db>(db: &D) -> Result<i64, DbError> {
    let mut rows = db.query(&crate::meta::sql::SERVER_TIME, vec![]).await?;
    Ok(rows.first_mut().map_or(Ok(0), |row| row.int("now"))?)
}
