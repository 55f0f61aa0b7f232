//! What a restore finds in a database that its own tools have brought back.

use super::connect::{PgDb, Target};
use super::ours::{self, no_store};
use super::service::OutOfService;
use super::timeline;
use crate::check::LOADED_IN_PART;
use crate::db::Db as _;
use crate::error::{DbError, OpenError};
use crate::meta::sql;
use crate::migrate;
use crate::restore::{RESTORED_AT, RESTORED_HERE, RESTORING, RESTORING_HERE};
use crate::value::args;

/// What to do about a dump of which a part is not there.
const LOAD_AGAIN: &str = "its dump was loaded in part; load it again, whole, into an empty database";

/// How far a database has come back into service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestoreState {
    /// No restore was begun since it was loaded, or brought back to an earlier point in time.
    NotBegun,
    /// The restore into this epoch was begun in it and not finished.
    Begun { epoch: u64 },
    /// The restore into this epoch was finished in it, and nothing was brought back since, as far as that leaves a trace.
    Finished { epoch: u64 },
}

/// Takes the database out of service and looks at it. Nothing is written.
pub(crate) async fn take(address: &str) -> Result<(OutOfService, RestoreState), OpenError> {
    let taken = OutOfService::take(&Target::parse(address)?).await?;
    match look(&taken.db, address).await {
        Ok(state) => Ok((taken, state)),
        Err(error) => {
            taken.release().await;
            Err(error)
        }
    }
}

async fn look(db: &PgDb, address: &str) -> Result<RestoreState, OpenError> {
    ours::check(db, address).await?;
    match migrate::run(db, migrate::POSTGRES, false).await {
        // A restore brings an older schema up to date.
        Err(OpenError::NeedsMigration { found, .. }) if found > 0 => {}
        Err(OpenError::NeedsMigration { .. }) => {
            return Err(no_store(
                address,
                "it has no tables of a store; restore the database with its own tools first",
            ));
        }
        other => other?,
    }
    let in_part = || no_store(address, LOAD_AGAIN);
    if ours::look(db).await?.unkeyed().next().is_some() {
        return Err(in_part());
    }
    let epoch = match value(db, "store_epoch").await {
        Err(DbError::Other(what)) if migrate::is_no_table(&what) => return Err(in_part()),
        found => found?.and_then(|epoch| epoch.parse().ok()),
    };
    let Some(epoch) = epoch else {
        return Err(no_store(address, "it has a store's tables and nothing in them"));
    };
    let state = state(db, epoch).await?;
    if state == RestoreState::NotBegun {
        check_rows(db, address).await?;
    }
    Ok(state)
}

async fn state(db: &PgDb, epoch: u64) -> Result<RestoreState, OpenError> {
    if timeline::moved(db).await? {
        return Ok(RestoreState::NotBegun);
    }
    if value(db, RESTORING).await?.is_some_and(|mark| !mark.is_empty()) {
        let is_of_this = is_here(db, RESTORING_HERE, RESTORING).await?;
        return Ok(if is_of_this { RestoreState::Begun { epoch } } else { RestoreState::NotBegun });
    }
    let is_of_this = is_here(db, RESTORED_HERE, RESTORED_AT).await?;
    Ok(if is_of_this { RestoreState::Finished { epoch } } else { RestoreState::NotBegun })
}

/// Refuses rows of a dump of which a part is missing: it cannot be told any more which runs have to be paused.
async fn check_rows(db: &PgDb, address: &str) -> Result<(), OpenError> {
    for (stmt, what) in LOADED_IN_PART {
        let found = match db.query(stmt, vec![]).await {
            Err(DbError::Other(what)) if migrate::is_no_table(&what) => {
                return Err(no_store(address, &format!("a table of it is missing: {LOAD_AGAIN}")));
            }
            found => found?,
        };
        if !found.is_empty() {
            let what = format!(
                "{what}: {LOAD_AGAIN}. `interlock db check` names the rows; where they were like this when the dump was \
                 made, take them out first"
            );
            return Err(no_store(address, &what));
        }
    }
    Ok(())
}

async fn value(db: &PgDb, key: &str) -> Result<Option<String>, DbError> {
    let mut rows = db.query(&sql::META_GET, args![key]).await?;
    Ok(rows.first_mut().map(|row| row.text("value")).transpose()?)
}

async fn is_here(db: &PgDb, note: &str, row: &str) -> Result<bool, DbError> {
    let mut rows = db.query(&sql::IS_HERE, args![note, row]).await?;
    Ok(rows.first_mut().map(|row| row.int("found")).transpose()? == Some(1))
}
