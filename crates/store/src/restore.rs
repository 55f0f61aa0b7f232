//! Bringing a backup into service: no server is at work on the store, and no second restore; the epoch rises, which fences
//! every attempt that was handed out before; and the store stays marked until its runs are parked.
//!
//! A SQLite file is put in place by this. A database of PostgreSQL was brought back by its own tools before, and is only
//! marked: so it notes where that was done, and a second restore of the same database is told from that of another dump.

use std::path::Path;

use rusqlite::Connection;

use crate::boxed;
use crate::copying::{StagedCopy, is_store, open_source, unusable};
use crate::error::{DbError, OpenError, ReadError};
use crate::meta::RaiseEpoch;
use crate::migrate;
use crate::options::{Options, StoreUrl};
use crate::postgres::restored::{self, RestoreState};
use crate::postgres::service::OutOfService;
use crate::sqlite::{SqliteDb, file, ready};
use crate::store::Store;
use crate::write::Write as _;

/// The note of a restore that is not finished: its epoch, or nothing.
pub(crate) const RESTORING: &str = "restoring";
/// The note of when the last one was finished.
pub(crate) const RESTORED_AT: &str = "restored_at";
/// PostgreSQL: in which database these two were written.
pub(crate) const RESTORING_HERE: &str = "restoring_here";
pub(crate) const RESTORED_HERE: &str = "restored_here";

/// A store that no server works on, and no other restore. On PostgreSQL it stays so until this is released, or until the
/// process ends. A file is locked while it is put in place, and again by whoever opens it.
pub struct RestoreLock {
    url: StoreUrl,
    options: Options,
    state: RestoreState,
    taken: Option<OutOfService>,
}

impl RestoreLock {
    /// Refused while a server is at work on the store, and where what is there is no store. Nothing is written.
    #[boxed]
    pub async fn take(url: &StoreUrl, options: Options) -> Result<Self, OpenError> {
        let (taken, state) = match url {
            StoreUrl::Postgres(address) => {
                let (taken, state) = restored::take(address).await?;
                (Some(taken), state)
            }
            StoreUrl::Sqlite(path) => (None, state_of_file(path, url, &options).await?),
            StoreUrl::SqliteMemory(_) => (None, RestoreState::NotBegun),
        };
        Ok(Self { url: url.clone(), options, state, taken })
    }

    /// The epoch of a restore that was begun in this store and is not finished.
    pub fn begun(&self) -> Option<u64> {
        match self.state {
            RestoreState::Begun { epoch } => Some(epoch),
            RestoreState::NotBegun | RestoreState::Finished { .. } => None,
        }
    }

    /// Puts the file in place (SQLite), raises the epoch, marks the store, and answers with the epoch. A store that is there
    /// already is not overwritten; a restore that was begun and not finished goes on in its epoch. `again` brings a database
    /// of PostgreSQL into service once more which shows no sign of having been brought back since the last time.
    #[boxed]
    pub async fn begin(&self, backup: Option<&Path>, again: bool) -> Result<u64, OpenError> {
        match (&self.url, backup) {
            (StoreUrl::Sqlite(path), Some(backup)) => self.put_in_place(path, backup).await,
            (StoreUrl::Sqlite(path), None) if self.begun().is_none() => {
                Err(unusable(path, "no restore was begun there: name the backup that is to be put in place".to_owned()))
            }
            _ => self.mark(again).await,
        }
    }

    async fn mark(&self, again: bool) -> Result<u64, OpenError> {
        if let RestoreState::Finished { epoch } = self.state
            && !again
        {
            return Err(OpenError::AlreadyRestored { epoch });
        }
        let store = Store::open(&self.url, self.options.clone()).await?;
        let marked = async {
            // Also where opening it has shown that it was brought back to an earlier point in time, which marks it.
            if !again && let Some(epoch) = store.restoring_here().await.map_err(unreadable)? {
                return Ok(epoch);
            }
            store.write(RaiseEpoch).await.map_err(|error| refused(error.to_string()))
        };
        let marked = marked.await;
        store.close().await;
        marked
    }

    async fn put_in_place(&self, path: &Path, backup: &Path) -> Result<u64, OpenError> {
        if !path.exists() {
            // What is no backup leaves no trace: the lock would make the store's folder.
            check_backup(backup)?;
        }
        let lock = file::lock(path)?;
        if !path.exists() {
            let (from, to) = (backup.to_owned(), path.to_owned());
            tokio::task::spawn_blocking(move || StagedCopy::make(&from, &to, raise_epoch)?.place())
                .await
                .map_err(|error| refused(error.to_string()))??;
        }
        drop(lock);
        if let Some(epoch) = unfinished(&self.url, self.options.clone()).await? {
            return Ok(epoch);
        }
        Err(unusable(path, "exists already; move it away first, a restore does not overwrite".to_owned()))
    }

    /// Servers may start again.
    #[boxed]
    pub async fn release(self) {
        if let Some(taken) = self.taken {
            taken.release().await;
        }
    }
}

/// A server has the lock beside the file. Where there is none, none is made: the file may be about to be put there.
async fn state_of_file(path: &Path, url: &StoreUrl, options: &Options) -> Result<RestoreState, OpenError> {
    if file::lock_path(path).exists() {
        drop(file::lock(path)?);
    }
    if !path.exists() {
        return Ok(RestoreState::NotBegun);
    }
    let begun = unfinished(url, options.clone()).await?;
    Ok(begun.map_or(RestoreState::NotBegun, |epoch| RestoreState::Begun { epoch }))
}

/// The epoch of a restore that was begun in this file and is not finished.
async fn unfinished(url: &StoreUrl, options: Options) -> Result<Option<u64>, OpenError> {
    let store = match Store::open_to_read(url, options).await {
        // A restore brings the schema up to date before it begins.
        Err(OpenError::NeedsMigration { .. } | OpenError::NotAStore { .. }) => return Ok(None),
        store => store?,
    };
    let mark = store.restoring().await;
    store.close().await;
    mark.map_err(unreadable)
}

/// Refuses what is no backup, and half of one, as far as that is told without reading all of it.
pub fn check_backup(backup: &Path) -> Result<(), OpenError> {
    open_source(backup).and_then(|source| is_store(&source, backup))
}

/// Brings a backup into service and lets go of it: [`RestoreLock`] at once. The store stays marked until its runs are
/// parked and [`crate::FinishRestore`] says so.
#[boxed]
pub async fn restore(backup: Option<&Path>, url: &StoreUrl, options: Options) -> Result<u64, OpenError> {
    let lock = RestoreLock::take(url, options).await?;
    let begun = lock.begin(backup, false).await;
    lock.release().await;
    begun
}

/// Raises the epoch and sets the mark in the copy itself: under its own name it never stands without them.
fn raise_epoch(connection: &Connection) -> Result<(), OpenError> {
    connection.execute_batch("BEGIN IMMEDIATE").map_err(DbError::from)?;
    let raised = ready(async {
        let db = SqliteDb(connection);
        migrate::run(&db, migrate::SQLITE, true).await?;
        RaiseEpoch.apply(&db).await?;
        Ok::<_, OpenError>(())
    });
    connection.execute_batch(if raised.is_ok() { "COMMIT" } else { "ROLLBACK" }).map_err(DbError::from)?;
    raised
}

fn unreadable(error: ReadError) -> OpenError {
    refused(error.to_string())
}

fn refused(what: String) -> OpenError {
    OpenError::Database(DbError::Other(what))
}
