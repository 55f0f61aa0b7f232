//! Opening a SQLite file: the lock that keeps a second server out, and the settings of every connection.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::STATEMENTS_MAX;
use crate::error::{DbError, OpenError};

/// What the name of a copy ends with as long as it is not whole.
pub(crate) const PARTIAL: &str = ".partial";

/// Held as long as the store is open. The operating system releases it when the process dies.
#[derive(Debug)]
pub(crate) struct FileLock(#[expect(dead_code, reason = "the lock is the open file")] File);

/// The file that the writer has open. A file that is removed or replaced stays open and takes commits, which nobody finds
/// again once the process has ended: so the writer looks before each commit whether its path still leads to it.
#[derive(Debug)]
pub(crate) struct DatabaseFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl DatabaseFile {
    /// The file at this path, which was just opened.
    pub fn at(path: &Path) -> Result<Self, OpenError> {
        let identity = identity(path).map_err(|error| file_error(path, error))?;
        Ok(Self { path: path.to_owned(), identity })
    }

    /// Refuses where the path leads to no file, or to another one. A path that cannot be looked at says nothing.
    pub fn check(&self) -> Result<(), DbError> {
        let path = self.path.display();
        match identity(&self.path) {
            Ok(found) if found != self.identity => Err(DbError::FileGone(format!(
                "another file is in the place of {path}, which the server has open: restart the server"
            ))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(DbError::FileGone(format!(
                "{path} was removed or moved while the server has it open: put it back, or restore a backup and restart the \
                 server"
            ))),
            _ => Ok(()),
        }
    }
}

fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    std::fs::metadata(path).map(|found| (found.dev(), found.ino()))
}

/// Takes the lock beside the database, or says who has it.
pub(crate) fn lock(path: &Path) -> Result<FileLock, OpenError> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(parent);
        made.map_err(|error| file_error(parent, error))?;
    }
    let lock_path = lock_path(path);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&lock_path)
        .map_err(|error| file_error(&lock_path, error))?;
    match file.try_lock() {
        Ok(()) => {
            // Only for the message that another process shows; the lock itself is what counts.
            let written =
                file.set_len(0).and_then(|()| file.rewind()).and_then(|()| write!(file, "{}", std::process::id()));
            written.map_err(|error| file_error(&lock_path, error))?;
            Ok(FileLock(file))
        }
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
            Err(OpenError::Locked { path: path.display().to_string(), pid })
        }
        Err(TryLockError::Error(error)) => Err(file_error(&lock_path, error)),
    }
}

/// A new database is its owner's alone; SQLite gives its log the same mode. One that exists keeps the mode it has.
pub(crate) fn make_private(path: &Path) -> Result<(), OpenError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(file_error(path, error)),
        _ => Ok(()),
    }
}

pub(crate) fn lock_path(path: &Path) -> PathBuf {
    beside(path, ".lock")
}

/// The path with this at its end.
pub(crate) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Refuses a copy that has not got its name yet: a backup or a restore that was interrupted has left it.
pub(crate) fn check_finished(path: &Path) -> Result<(), OpenError> {
    if !path.as_os_str().as_encoded_bytes().ends_with(PARTIAL.as_bytes()) {
        return Ok(());
    }
    let what = "it is half a copy, which an interrupted backup or restore has left; begin that again".to_owned();
    Err(OpenError::NotAStore { path: path.display().to_string(), what })
}

fn file_error(path: &Path, error: std::io::Error) -> OpenError {
    OpenError::File { path: path.display().to_string(), what: error.to_string() }
}

/// The writer's connection, which makes the file.
pub(crate) fn connect(path: &Path) -> Result<Connection, OpenError> {
    make_private(path)?;
    connect_to(path, OpenFlags::default())
}

/// A reader's connection beside the writer's. Where the file is gone it makes no empty one in its place.
pub(crate) fn connect_beside(path: &Path) -> Result<Connection, OpenError> {
    connect_to(path, OpenFlags::default().difference(OpenFlags::SQLITE_OPEN_CREATE))
}

fn connect_to(path: &Path, flags: OpenFlags) -> Result<Connection, OpenError> {
    let sqlite_error =
        |error: rusqlite::Error| OpenError::File { path: path.display().to_string(), what: error.to_string() };
    let connection = Connection::open_with_flags(path, flags).map_err(sqlite_error)?;
    configure(&connection).map_err(sqlite_error)?;
    check_ours(&connection, path)?;
    // FULL: a commit is on disk before it is answered. Checkpoints after 4,000 pages keep the log near 16 MiB. The cache
    // is small because SQLite goes through all of it at most commits (a balanced B-tree leaves a page's number beyond
    // the file's end); what is not in it is mapped.
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000;
             PRAGMA mmap_size = 268435456; PRAGMA cache_size = -8192;",
        )
        .map_err(sqlite_error)?;
    Ok(connection)
}

/// A connection that only reads. Another process may have the file open: with the write-ahead log both can use it.
pub(crate) fn connect_to_read(path: &Path) -> Result<Connection, OpenError> {
    let sqlite_error =
        |error: rusqlite::Error| OpenError::File { path: path.display().to_string(), what: error.to_string() };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(sqlite_error)?;
    configure(&connection).map_err(sqlite_error)?;
    check_ours(&connection, path)?;
    Ok(connection)
}

/// Refuses another program's database, and what is no database: the store writes nothing into it. An empty file
/// is a store that has no schema yet.
pub(crate) fn check_ours(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let count = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let refused = |what: &str| OpenError::NotAStore { path: path.display().to_string(), what: what.to_owned() };
    let tables = count("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
    let tables = tables.map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => refused("it is not a database"),
        _ => OpenError::Database(error.into()),
    })?;
    // Other programs keep a table of this name too; only the store's has these columns.
    let columns = "SELECT count(*) FROM pragma_table_info('schema_migrations')
                   WHERE name IN ('version', 'name', 'checksum', 'applied_at')";
    if tables > 0 && count(columns).map_err(DbError::from)? != 4 {
        return Err(refused("it is the database of another program, and stays as it is"));
    }
    Ok(())
}

/// What every connection needs, on disk or in memory.
pub(crate) fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Plans must not depend on the values that are bound. Without this the bundled SQLite (built with STAT4) compiles a
    // statement anew whenever another value is bound to a column with an index: most of the time went into that.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA temp_store = MEMORY;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_file_that_is_removed_or_replaced_is_noticed() {
        let folder = std::env::temp_dir().join(format!("interlock-gone-{}", std::process::id()));
        let path = folder.join("interlock.db");
        let _lock = lock(&path).unwrap();
        let _connection = connect(&path).unwrap();
        let file = DatabaseFile::at(&path).unwrap();
        assert!(file.check().is_ok());
        let aside = folder.join("aside");
        std::fs::rename(&path, &aside).unwrap();
        assert!(matches!(file.check(), Err(DbError::FileGone(what)) if what.contains("was removed or moved")));
        assert!(connect_beside(&path).is_err() && !path.exists(), "a reader makes no empty database");
        std::fs::write(&path, "").unwrap();
        assert!(matches!(file.check(), Err(DbError::FileGone(what)) if what.contains("another file")));
        std::fs::rename(&aside, &path).unwrap();
        assert!(file.check().is_ok(), "it is back");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_made_is_its_owners_alone() {
        let folder = std::env::temp_dir().join(format!("interlock-modes-{}", std::process::id()));
        let path = folder.join("interlock.db");
        let _lock = lock(&path).unwrap();
        let _connection = connect(&path).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&path), mode(&lock_path(&path))), (0o700, 0o600, 0o600));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
