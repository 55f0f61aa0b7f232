use interlock_core::ids::{RunId, ServerId, TenantId};
use interlock_core::planted::{Bug, is_planted};
use interlock_core::time::Timestamp;

use super::rows::unparked_key;
use super::sql;
use crate::db::Db;
use crate::error::DbError;
use crate::restore;
use crate::value::args;
use crate::write::{Changed, Stored, Write, WriteLane, boxed, stored};

/// Keeps a value for the whole store unless it has one.
#[derive(Debug, Clone)]
pub struct SetOnce {
    pub name: &'static str,
    pub value: String,
}

impl Write for SetOnce {
    type Answer = Stored;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Stored, DbError> {
        stored(db, &sql::SET_ONCE, args![self.name, &self.value]).await
    }
}

/// The server that commits through these lanes lives.
#[derive(Debug, Clone)]
pub(crate) struct KeepLanes {
    pub server: ServerId,
    pub lanes: Vec<i64>,
    pub now: Timestamp,
}

impl Write for KeepLanes {
    type Answer = ();
    const LANE: WriteLane = WriteLane::Sessions;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<(), DbError> {
        for lane in &self.lanes {
            db.execute(&sql::LANE_SEEN, args![*lane, self.server, self.now]).await?;
        }
        Ok(())
    }
}

/// PostgreSQL: makes the journal's weeks ahead of time. SQLite: nothing.
#[derive(Debug, Clone, Copy)]
pub struct EnsurePartitions {
    pub now: Timestamp,
}

impl Write for EnsurePartitions {
    type Answer = ();
    const LANE: WriteLane = WriteLane::Upkeep;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<(), DbError> {
        if db.is_postgres() {
            super::partitions::ensure(db, self.now).await?;
        }
        Ok(())
    }
}

/// After a restore: fences every attempt made before it, and marks the store as not yet in order, in one commit. Nothing
/// is dispatched until [`FinishRestore`]. Answers the new epoch.
#[derive(Debug, Clone, Copy)]
pub struct RaiseEpoch;

impl Write for RaiseEpoch {
    type Answer = u64;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<u64, DbError> {
        let mut rows = db.query(&sql::META_LOCK, args!["store_epoch"]).await?;
        let epoch: u64 = match rows.first_mut() {
            Some(row) => row.name("value")?,
            None => 0,
        };
        let epoch = if is_planted(Bug::EpochNotRaised) { epoch - 1 } else { epoch };
        let raised = (epoch + 1).to_string();
        db.execute(&sql::META_PUT, args!["store_epoch", &raised]).await?;
        db.execute(&sql::META_PUT, args![restore::RESTORING, &raised]).await?;
        note_here(db, restore::RESTORING_HERE, restore::RESTORING).await?;
        Ok(epoch + 1)
    }
}

/// The runs of a restored store are parked: takes the mark of this epoch away. [`Changed::Gone`] where it was restored once
/// more meanwhile. Where another process has finished it before, nothing is changed: what it listed may be parked by now.
#[derive(Debug, Clone)]
pub struct FinishRestore {
    pub epoch: u64,
    pub now: Timestamp,
    /// Those that could not be read, and are still to be parked.
    pub unparked: Vec<(TenantId, RunId)>,
}

impl Write for FinishRestore {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let mut rows = db.query(&sql::META_LOCK, args!["store_epoch"]).await?;
        let found: Option<u64> = rows.first_mut().map(|row| row.name("value")).transpose()?;
        if found != Some(self.epoch) {
            return Ok(Changed::Gone);
        }
        let mut mark = db.query(&sql::META_GET, args![restore::RESTORING]).await?;
        let is_over = mark.first_mut().map(|row| row.text("value")).transpose()?.is_none_or(|value| value.is_empty());
        if is_over {
            return Ok(Changed::Done);
        }
        db.execute(&sql::UNPARKED_CLEAR, vec![]).await?;
        for (tenant, run) in &self.unparked {
            db.execute(&sql::META_PUT, args![unparked_key(*tenant, *run), self.epoch.to_string()]).await?;
        }
        db.execute(&sql::META_PUT, args![restore::RESTORED_AT, self.now.0.to_string()]).await?;
        note_here(db, restore::RESTORED_HERE, restore::RESTORED_AT).await?;
        db.execute(&sql::META_PUT, args![restore::RESTORING, ""]).await?;
        Ok(Changed::Done)
    }
}

/// PostgreSQL: notes that the row was written in this very database, so that a dump of it is told from it. A SQLite file is
/// only ever put in place by a restore.
async fn note_here<D: Db>(db: &D, note: &str, row: &str) -> Result<(), DbError> {
    if db.is_postgres() {
        db.execute(&sql::NOTE_HERE, args![note, row]).await?;
    }
    Ok(())
}

/// A run that a restore could not read is parked by now, or has ended.
#[derive(Debug, Clone, Copy)]
pub struct DropUnparked {
    pub tenant: TenantId,
    pub run: RunId,
}

impl Write for DropUnparked {
    type Answer = ();
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<(), DbError> {
        db.execute(&sql::META_DROP, args![unparked_key(self.tenant, self.run)]).await?;
        Ok(())
    }
}
