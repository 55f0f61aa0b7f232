//! Whether the database has failed over, or was brought back to an earlier point. PostgreSQL counts its timelines: a
//! standby that takes over begins a new one, and so does a recovery to a point in time. The timeline that the store was last
//! served on stands in `meta`.
//!
//! A standby that does not hold back commits may lack some: attempts that were handed out are not there, and their numbers
//! would be given out again. So the epoch rises, as after a restore. Where commits wait for a standby nothing is lost, and
//! the new timeline is only noted.

use std::sync::Once;

use interlock_core::planted::{Bug, is_planted};

use super::connect::PgDb;
use crate::db::Db as _;
use crate::error::DbError;
use crate::meta::RaiseEpoch;
use crate::meta::sql;
use crate::restore::RESTORED_HERE;
use crate::value::args;
use crate::write::Write as _;

const KEY: &str = "timeline";
/// How a timeline is noted on which every commit is on a standby as well.
const REPLICATED: &str = " replicated";

/// Whether the timeline is not the one that is noted.
pub(super) async fn differs(db: &PgDb) -> Result<bool, DbError> {
    Ok(look(db).await?.is_some_and(|TimelineReading { found, noted }| noted.as_ref() != Some(&found)))
}

/// Whether the database was brought back to an earlier point in time, or has failed over, since the timeline was noted.
pub(super) async fn moved(db: &PgDb) -> Result<bool, DbError> {
    let Some(TimelineReading { found, noted }) = look(db).await? else { return Ok(false) };
    Ok(noted.is_some_and(|noted| number(&noted) != number(&found)))
}

/// Without how commits on it are kept.
fn number(note: &str) -> &str {
    note.split(' ').next().unwrap_or_default()
}

/// Raises the epoch if the timeline is another one than noted, and notes it. Answers with the raised epoch.
pub(super) async fn check(db: &PgDb) -> Result<Option<u64>, DbError> {
    let Some(TimelineReading { found, noted }) = look(db).await? else { return Ok(None) };
    if noted.as_ref() == Some(&found) {
        return Ok(None);
    }
    db.batch("BEGIN").await?;
    let checked = compare(db, &found).await;
    db.batch(if checked.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
    checked
}

async fn compare(db: &PgDb, found: &str) -> Result<Option<u64>, DbError> {
    // All lanes of all servers come back at once; the first one raises the epoch for all.
    db.query(&sql::META_LOCK, args!["store_epoch"]).await?;
    let mut noted = db.query(&sql::META_GET, args![KEY]).await?;
    let noted = noted.first_mut().map(|row| row.text("value")).transpose()?;
    if noted.as_deref() == Some(found) || is_planted(Bug::TimelineNotNoticed) {
        return Ok(None);
    }
    db.execute(&sql::META_PUT, args![KEY, found]).await?;
    if noted.as_deref().is_some_and(|noted| number(noted) != number(found)) {
        // Rows are the same to the last bit after a recovery to an earlier point in time. From here on nothing else tells it
        // from the database that was brought into service before.
        db.execute(&sql::META_DROP, args![RESTORED_HERE]).await?;
    }
    match noted {
        Some(noted) if number(&noted) != number(found) && !noted.ends_with(REPLICATED) => {
            tracing::error!(was = noted, is = found, "the database has failed over and may have lost commits");
            RaiseEpoch.apply(db).await.map(Some)
        }
        _ => Ok(None),
    }
}

/// Fences every attempt that was handed out, as a restore does: numbers of attempts that are lost would be given out again.
/// Another lane may have done so already; then its epoch is the one.
pub(super) async fn raise_once(db: &PgDb, had: u64) -> Result<u64, DbError> {
    db.batch("BEGIN").await?;
    let mut rows = db.query(&sql::META_LOCK, args!["store_epoch"]).await?;
    let found: u64 = rows.first_mut().map(|row| row.name("value")).transpose()?.unwrap_or(0);
    let found = if found == had { RaiseEpoch.apply(db).await? } else { found };
    db.batch("COMMIT").await?;
    Ok(found)
}

/// A timeline and how commits on it are kept, and what was noted last.
struct TimelineReading {
    found: String,
    noted: Option<String>,
}

/// Nothing where this database does not tell. Taken from the log that is being written: what the control file says is as
/// old as the last checkpoint. One question, because it is asked on every new connection of a committer.
async fn look(db: &PgDb) -> Result<Option<TimelineReading>, DbError> {
    let mut rows = match db.query(&sql::TIMELINE, vec![]).await {
        Err(DbError::Other(error)) => {
            // Once: it is asked on every new connection, and the answer stays what it is.
            static TOLD: Once = Once::new();
            TOLD.call_once(|| {
                tracing::warn!(
                    error,
                    "the database does not tell its timeline, so a failover to a standby that is behind would go unnoticed; grant EXECUTE on pg_walfile_name and pg_current_wal_lsn to this role"
                );
            });
            return Ok(None);
        }
        rows => rows?,
    };
    let Some(row) = rows.first_mut() else { return Ok(None) };
    let (timeline, standbys, noted) = (row.text("timeline")?, row.text("standbys")?, row.opt_text("noted")?);
    let found = if standbys.is_empty() { timeline } else { timeline + REPLICATED };
    Ok(Some(TimelineReading { found, noted }))
}
