//! Bringing a backup into service: no server is at work on the store, and no second restore; the epoch rises, which fences
//! every attempt that was handed out before; and the store stays marked until its runs are parked.
//!
//! A SQLite file is put in place by this. A database of PostgreSQL was brought back by its own tools before, and is only
//! marked: so it notes where that was done, and a second restore of the same database is told from that of another dump.

use std::path::Path;

use interlock_boxed::boxed;
use rusqlite::Connection;

use crate::copying::{StagedCopy, is_store, open_source, refuse_other_log, unusable};
use crate::error::{DbError, OpenError, ReadError};
use crate::meta::RaiseEpoch;
use crate::migrate;
use crate::options::{Options, StoreUrl};
use crate::postgres::restored::{self, RestoreState};
use crate::postgres::service::OutOfService;
use crate::sqlite::file::{self, FileLock};
use crate::sqlite::{SqliteDb, ready};
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

    /// Looks for everything that keeps this restore from being done, so that payloads can be brought back before the store
    /// is put in place, and after nothing is left to refuse it. A file is copied whole and marked, and has not got its name
    /// yet. A store that is there already is not overwritten; a restore that was begun and not finished goes on in its epoch.
    /// `again` brings a database of PostgreSQL into service once more which shows no sign of having been brought back since
    /// the last time.
    #[boxed]
    pub async fn stage(&self, backup: Option<&Path>, again: bool) -> Result<StagedRestore, OpenError> {
        let work = match (&self.url, backup) {
            (StoreUrl::Sqlite(path), Some(backup)) if !path.exists() => copied(path, backup).await?,
            (StoreUrl::Sqlite(path), Some(_)) => {
                let lock = file::lock(path)?;
                if unfinished(&self.url, self.options.clone()).await?.is_none() {
                    return Err(not_overwritten(path));
                }
                StagedWork::GoOn(lock)
            }
            (StoreUrl::Sqlite(path), None) if self.begun().is_none() => {
                let what = "no restore was begun there: name the backup that is to be put in place";
                return Err(unusable(path, what.to_owned()));
            }
            _ => {
                if let RestoreState::Finished { epoch } = self.state
                    && !again
                {
                    return Err(OpenError::AlreadyRestored { epoch });
                }
                StagedWork::Mark { again }
            }
        };
        Ok(StagedRestore { url: self.url.clone(), options: self.options.clone(), work })
    }

    /// [`Self::stage`] and [`StagedRestore::place`] at once.
    #[boxed]
    pub async fn begin(&self, backup: Option<&Path>, again: bool) -> Result<u64, OpenError> {
        self.stage(backup, again).await?.place().await
    }

    /// Servers may start again.
    #[boxed]
    pub async fn release(self) {
        if let Some(taken) = self.taken {
            taken.release().await;
        }
    }
}

/// A restore that nothing refuses any more. Dropped without [`Self::place`] it leaves no file of a store.
pub struct StagedRestore {
    url: StoreUrl,
    options: Options,
    work: StagedWork,
}

/// What is left to do.
enum StagedWork {
    /// A file gets its name. Nobody makes another one there meanwhile.
    Name(StagedCopy, FileLock),
    /// The file has its name: the restore was begun before.
    GoOn(FileLock),
    /// The database is there already.
    Mark { again: bool },
}

impl StagedRestore {
    /// Puts the file in place (SQLite), raises the epoch, marks the store, and answers with the epoch.
    #[boxed]
    pub async fn place(self) -> Result<u64, OpenError> {
        let Self { url, options, work } = self;
        let lock = match work {
            StagedWork::Mark { again } => return mark(&url, options, again).await,
            StagedWork::GoOn(lock) => lock,
            StagedWork::Name(copy, lock) => {
                let placed = tokio::task::spawn_blocking(move || copy.place()).await;
                placed.map_err(|error| refused(error.to_string()))??;
                lock
            }
        };
        drop(lock);
        match (unfinished(&url, options).await?, &url) {
            (Some(epoch), _) => Ok(epoch),
            (None, StoreUrl::Sqlite(path)) => Err(not_overwritten(path)),
            (None, _) => Err(refused("the restore has left no mark".to_owned())),
        }
    }
}

async fn mark(url: &StoreUrl, options: Options, again: bool) -> Result<u64, OpenError> {
    let store = Store::open(url, options).await?;
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

/// The backup as a whole copy, marked, beside its place.
async fn copied(path: &Path, backup: &Path) -> Result<StagedWork, OpenError> {
    // What is no backup leaves no trace: the lock would make the store's folder.
    refuse_other_log(path)?;
    check_backup(backup)?;
    let lock = file::lock(path)?;
    if path.exists() {
        // Another restore was faster.
        return Err(not_overwritten(path));
    }
    let (from, to) = (backup.to_owned(), path.to_owned());
    // Off the async threads: it takes as long as the store is large.
    let copy = tokio::task::spawn_blocking(move || StagedCopy::make(&from, &to, raise_epoch)).await;
    Ok(StagedWork::Name(copy.map_err(|error| refused(error.to_string()))??, lock))
}

fn not_overwritten(path: &Path) -> OpenError {
    unusable(path, "exists already; move it away first, a restore does not overwrite".to_owned())
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

/// Refuses what is no backup, half of one, and one of a newer release, as far as that is told without reading all of it.
pub fn check_backup(backup: &Path) -> Result<(), OpenError> {
    let source = open_source(backup)?;
    is_store(&source, backup)?;
    match ready(migrate::run(&SqliteDb(&source), migrate::SQLITE, false)) {
        // A restore brings an older schema up to date.
        Err(OpenError::NeedsMigration { .. }) => Ok(()),
        checked => checked,
    }
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
