//! Backups. SQLite is copied while it runs; PostgreSQL has tools of its own, and only the store epoch is raised here.

use std::path::Path;
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::boxed;
use crate::error::{DbError, OpenError, ReadError};
use crate::meta::RaiseEpoch;
use crate::migrate;
use crate::options::{Options, StoreUrl};
use crate::sqlite::reads::SqliteReads;
use crate::sqlite::{SqliteDb, file, ready};
use crate::store::{Reads, Store};
use crate::write::Write as _;

/// The note of a restore that is not finished: its epoch, or nothing.
pub(crate) const RESTORING: &str = "restoring";
/// The note of when the last one was finished.
pub(crate) const RESTORED_AT: &str = "restored_at";

/// All pages at once: a copy in several steps begins anew whenever the writer commits between them. In WAL mode the
/// writer is not held up; its log grows meanwhile.
const ALL_PAGES: i32 = -1;

/// Copies a SQLite store to a new file, consistent at one instant, also while a server has it open.
#[boxed]
pub async fn backup_file(from: &Path, to: &Path) -> Result<(), OpenError> {
    let missing = |path: &Path, what: &str| OpenError::File { path: path.display().to_string(), what: what.to_owned() };
    if !from.is_file() {
        return Err(missing(from, "there is no such store"));
    }
    if to.exists() {
        return Err(missing(to, "exists already; name a file that does not"));
    }
    let (from, to) = (from.to_owned(), to.to_owned());
    let copied = tokio::task::spawn_blocking(move || copy(&from, &to, |_| Ok(()))).await;
    copied.map_err(|error| OpenError::Database(DbError::Other(error.to_string())))?
}

impl Store {
    /// Copies the whole database to a new file, consistent at one instant, while the store goes on.
    #[boxed]
    pub async fn backup(&self, to: &Path) -> Result<(), ReadError> {
        let Reads::Sqlite(SqliteReads::File(pool)) = &self.inner.reads else {
            let what = "only a SQLite file is backed up by us; for PostgreSQL use pg_dump or pg_basebackup";
            return Err(ReadError::Database(what.to_owned()));
        };
        if to.exists() {
            return Err(ReadError::Database(format!("{} exists already; name a file that does not", to.display())));
        }
        let (from, to) = (pool.path().to_owned(), to.to_owned());
        let copied = tokio::task::spawn_blocking(move || copy(&from, &to, |_| Ok(()))).await;
        copied
            .map_err(|error| ReadError::Unavailable(error.to_string()))?
            .map_err(|error| ReadError::Database(error.to_string()))
    }
}

/// Copies next to the target, readable by its owner only, and renames, so that a file with the target's name is always
/// whole, and nothing is left of a copy that failed. `finish` is done to the copy before it gets its name.
fn copy(from: &Path, to: &Path, finish: impl FnOnce(&Connection) -> Result<(), OpenError>) -> Result<(), OpenError> {
    let mut partial = to.as_os_str().to_owned();
    partial.push(".partial");
    let partial = Path::new(&partial);
    let _ = std::fs::remove_file(partial);
    let copied = copy_to(from, partial, finish).and_then(|()| {
        let sync = |path: &Path| std::fs::File::open(path).and_then(|file| file.sync_all());
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let placed = sync(partial).and_then(|()| std::fs::rename(partial, to)).and_then(|()| sync(folder));
        placed.map_err(|error| unusable(to, error.to_string()))
    });
    if copied.is_err() {
        let _ = std::fs::remove_file(partial);
    }
    copied
}

fn unusable(path: &Path, what: String) -> OpenError {
    OpenError::File { path: path.display().to_string(), what }
}

fn open_source(from: &Path) -> Result<Connection, OpenError> {
    let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .and_then(|source| source.busy_timeout(Duration::from_secs(10)).map(|()| source))
        .map_err(|error| unusable(from, error.to_string()))?;
    file::check_ours(&source, from)?;
    Ok(source)
}

fn copy_to(from: &Path, to: &Path, finish: impl FnOnce(&Connection) -> Result<(), OpenError>) -> Result<(), OpenError> {
    let unreadable = |error: rusqlite::Error| unusable(from, error.to_string());
    let unwritable = |error: rusqlite::Error| unusable(to, error.to_string());
    let source = open_source(from)?;
    file::make_private(to)?;
    let mut target = Connection::open(to).map_err(unwritable)?;
    {
        let backup = Backup::new(&source, &mut target).map_err(unwritable)?;
        // What cannot be read is the source's fault, everything else (a full disk) the target's.
        let step = backup.step(ALL_PAGES).map_err(|error| match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => unreadable(error),
            _ => unwritable(error),
        })?;
        match step {
            StepResult::Done => {}
            _ => return Err(unusable(from, "the store is busy; try again".to_owned())),
        }
    }
    // A backup is one file: whatever stands in a log beside it goes into it.
    target.pragma_update(None, "journal_mode", "DELETE").map_err(unwritable)?;
    let found: String = target.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(unreadable)?;
    if found != "ok" {
        return Err(unusable(from, format!("its copy is damaged, and so may be the file itself: {found}")));
    }
    is_store(&target, from).and_then(|()| finish(&target))?;
    target.close().map_err(|(_, error)| unwritable(error))
}

/// An empty file and any other program's database are no stores.
fn is_store(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let sql =
        "SELECT (SELECT count(*) FROM schema_migrations) > 0 AND EXISTS (SELECT 1 FROM meta WHERE key = 'store_epoch')";
    let refused = |what: &str| OpenError::NotAStore { path: path.display().to_string(), what: what.to_owned() };
    match connection.query_row(sql, [], |row| row.get(0)) {
        Ok(true) => Ok(()),
        Ok(false) => Err(refused("it has a store's tables and nothing in them")),
        Err(_) => Err(refused("it has no tables of a store")),
    }
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

/// Brings a backup into service: puts the file in place (SQLite), raises the epoch, which fences every attempt that
/// was handed out before, and answers with it. On PostgreSQL the database has been restored by its own tools before.
/// A store that is there already is not overwritten; one whose restore was interrupted goes on from there. The store
/// stays marked until its runs are parked and [`crate::FinishRestore`] says so.
#[boxed]
pub async fn restore(backup: Option<&Path>, url: &StoreUrl, options: Options) -> Result<u64, OpenError> {
    if let (StoreUrl::Sqlite(path), Some(backup)) = (url, backup) {
        if !path.exists() {
            // What is no backup leaves no trace: the lock would make the store's folder.
            open_source(backup).and_then(|source| is_store(&source, backup))?;
        }
        let lock = file::lock(path)?;
        if !path.exists() {
            let (from, to) = (backup.to_owned(), path.clone());
            tokio::task::spawn_blocking(move || copy(&from, &to, raise_epoch))
                .await
                .map_err(|error| OpenError::Database(DbError::Other(error.to_string())))??;
        }
        drop(lock);
        if let Some(epoch) = unfinished_restore(url, options).await? {
            return Ok(epoch);
        }
        let what = "exists already; move it away first, a restore does not overwrite".to_owned();
        return Err(OpenError::File { path: path.display().to_string(), what });
    }
    match Store::open(url, Options { migrate: false, ..options.clone() }).await {
        Ok(store) => store.close().await,
        Err(OpenError::NeedsMigration { found: 0, .. }) => {
            let what = "it has no tables of a store; restore the database with its own tools first".to_owned();
            return Err(OpenError::NotAStore { path: url.to_string(), what });
        }
        Err(OpenError::NeedsMigration { .. }) => {}
        Err(error) => return Err(error),
    }
    let store = Store::open(url, options).await?;
    let raised = store.write(RaiseEpoch).await;
    store.close().await;
    raised.map_err(|error| OpenError::Database(DbError::Other(error.to_string())))
}

/// The epoch of a restore that was begun in this store and is not finished.
#[boxed]
pub async fn unfinished_restore(url: &StoreUrl, options: Options) -> Result<Option<u64>, OpenError> {
    let store = match Store::open_to_read(url, options).await {
        // A restore brings the schema up to date before it begins.
        Err(OpenError::NeedsMigration { .. } | OpenError::NotAStore { .. }) => return Ok(None),
        store => store?,
    };
    let mark = store.restoring().await;
    store.close().await;
    mark.map_err(|error| OpenError::Database(DbError::Other(error.to_string())))
}
