//! Copies of a SQLite database: made beside their place under another name, and put there when they are whole. A file with
//! the target's name is never half a copy, and nothing is left of a copy that failed.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::{DbError, OpenError};
use crate::sqlite::file::{self, PARTIAL};

/// All pages at once: a copy in several steps begins anew whenever the writer commits between them. In WAL mode the
/// writer is not held up; its log grows meanwhile.
const ALL_PAGES: i32 = -1;

/// A copy that is whole and has not got its name yet. Dropped without [`Self::place`] it goes, with everything beside it
/// whose name begins with its own.
pub(crate) struct StagedCopy {
    staged: PathBuf,
    to: PathBuf,
}

impl StagedCopy {
    /// Copies next to the target, readable by its owner only. `finish` is done to the copy before it is whole.
    pub fn make(
        from: &Path,
        to: &Path,
        finish: impl FnOnce(&Connection) -> Result<(), OpenError>,
    ) -> Result<Self, OpenError> {
        refuse_other_log(to)?;
        remove_leftovers(to);
        let staged = fresh_name(to);
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&staged);
        made.map_err(|error| unusable(&staged, error.to_string()))?;
        let copy = Self { staged, to: to.to_owned() };
        copy_to(from, &copy.staged, finish)?;
        Ok(copy)
    }

    /// Where it stands until it is placed.
    pub fn path(&self) -> &Path {
        &self.staged
    }

    /// Gives it its name, which nothing else may have got meanwhile. What was put beside it under its own name stays out
    /// of it: move that before.
    pub fn place(self) -> Result<(), OpenError> {
        let unplaced = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => unusable(&self.to, "exists already; name a file that does not".to_owned()),
            _ => unusable(&self.to, error.to_string()),
        };
        let sync = |path: &Path| File::open(path).and_then(|file| file.sync_all());
        let placed = sync(&self.staged).and_then(|()| give_name(&self.staged, &self.to));
        placed.and_then(|()| sync(folder_of(&self.to))).map_err(unplaced)
    }
}

impl Drop for StagedCopy {
    fn drop(&mut self) {
        // Once it has its name, this one is left over; before, the copy is of no use.
        let Some(own) = self.staged.file_name() else { return };
        for (path, name) in entries(folder_of(&self.staged)) {
            if name.as_encoded_bytes().starts_with(own.as_encoded_bytes()) {
                remove(&path);
            }
        }
    }
}

/// Refuses a log that a database of this name has left: SQLite would take it for the new one's.
pub(crate) fn refuse_other_log(to: &Path) -> Result<(), OpenError> {
    for end in ["-wal", "-journal"] {
        let left = file::beside(to, end);
        if left.exists() {
            let what = "it is of a database that was there before, and would be taken for a part of the new one; move \
                        it away";
            return Err(unusable(&left, what.to_owned()));
        }
    }
    Ok(())
}

/// Without taking the name from a file that has got it meanwhile.
fn give_name(staged: &Path, to: &Path) -> io::Result<()> {
    match std::fs::hard_link(staged, to) {
        // Not every file system has links.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !to.exists() => std::fs::rename(staged, to),
        linked => linked,
    }
}

/// A name of this process alone, from which the target's can be told.
fn fresh_name(to: &Path) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    file::beside(to, &format!(".{}-{number}{PARTIAL}", std::process::id()))
}

/// A copy to this name that was begun and has not got it: an interrupted restore has left it, or one is at work.
pub(crate) fn unfinished(to: &Path) -> Option<PathBuf> {
    let target = to.file_name()?;
    let mut entries = entries(folder_of(to)).into_iter();
    entries.find(|(_, name)| copying_process(name, target).is_some()).map(|(path, _)| path)
}

/// What copies to this name have left whose processes are gone. In a container every process may have the same number, so
/// what bears this one's is left over too.
fn remove_leftovers(to: &Path) {
    let Some(target) = to.file_name() else { return };
    for (path, name) in entries(folder_of(to)) {
        let is_at_work =
            |process: u32| process != std::process::id() && Path::new("/proc").join(process.to_string()).exists();
        if copying_process(&name, target).is_some_and(|process| !is_at_work(process)) {
            remove(&path);
        }
    }
}

/// The process that has copied to `target` under this name: `TARGET.PROCESS-NUMBER.partial`, and what stands beside it.
fn copying_process(name: &OsStr, target: &OsStr) -> Option<u32> {
    let rest = name.to_str()?.strip_prefix(target.to_str()?)?.strip_prefix('.')?;
    let (numbers, _) = rest.split_once(PARTIAL)?;
    let (process, number) = numbers.split_once('-')?;
    number.parse::<u32>().ok()?;
    process.parse().ok()
}

fn entries(folder: &Path) -> Vec<(PathBuf, OsString)> {
    let found = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    found.map(|entry| (entry.path(), entry.file_name())).collect()
}

/// What cannot be removed stays under a name that no command takes for a backup.
fn remove(path: &Path) {
    let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(crate) fn unusable(path: &Path, what: String) -> OpenError {
    OpenError::File { path: path.display().to_string(), what }
}

/// What is copied from: a whole database of ours.
pub(crate) fn open_source(from: &Path) -> Result<Connection, OpenError> {
    file::check_finished(from)?;
    let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .and_then(|source| source.busy_timeout(Duration::from_secs(10)).map(|()| source))
        .map_err(|error| unusable(from, error.to_string()))?;
    file::check_ours(&source, from).map_err(|error| match error {
        OpenError::Database(DbError::Malformed(what)) => {
            unusable(from, format!("it is damaged, or not all of it is there: {what}"))
        }
        other => other,
    })?;
    Ok(source)
}

fn copy_to(from: &Path, to: &Path, finish: impl FnOnce(&Connection) -> Result<(), OpenError>) -> Result<(), OpenError> {
    let unreadable = |error: rusqlite::Error| unusable(from, error.to_string());
    let unwritable = |error: rusqlite::Error| unusable(to, error.to_string());
    let source = open_source(from)?;
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
pub(crate) fn is_store(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let sql =
        "SELECT (SELECT count(*) FROM schema_migrations) > 0 AND EXISTS (SELECT 1 FROM meta WHERE key = 'store_epoch')";
    let refused = |what: &str| OpenError::NotAStore { path: path.display().to_string(), what: what.to_owned() };
    match connection.query_row(sql, [], |row| row.get(0)) {
        Ok(true) => Ok(()),
        Ok(false) => Err(refused("it has a store's tables and nothing in them")),
        Err(_) => Err(refused("it has no tables of a store")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("interlock-copying-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            entries(folder).into_iter().map(|(_, name)| name.to_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn no_empty_store_is_made_where_a_restore_was_interrupted() {
        let folder = folder("interrupted");
        let path = folder.join("interlock.db");
        let half = folder.join("interlock.db.7-0.partial");
        std::fs::write(&half, "").unwrap();
        let open = || {
            let options = crate::Options::new(interlock_core::ids::ServerId(uuid::Uuid::from_u128(1)));
            let url = crate::StoreUrl::Sqlite(path.clone());
            async move { crate::Store::open(&url, options).await }
        };
        let Err(refused) = open().await else { panic!("a store was made") };
        assert!(refused.to_string().contains("db restore") && !path.exists(), "{refused}");
        std::fs::remove_file(&half).unwrap();
        open().await.unwrap().close().await;
        std::fs::write(&half, "").unwrap();
        open().await.unwrap().close().await;
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// A file that is a store as far as a copy looks.
    fn small_store(folder: &Path) -> PathBuf {
        let path = folder.join("store.db");
        let made = Connection::open(&path).unwrap();
        made.execute_batch(
            "CREATE TABLE schema_migrations (version BIGINT, name TEXT, checksum TEXT, applied_at BIGINT);
             CREATE TABLE meta (key TEXT, value TEXT);
             INSERT INTO schema_migrations VALUES (1, 'initial', 'x', 0);
             INSERT INTO meta VALUES ('store_epoch', '1');",
        )
        .unwrap();
        path
    }

    #[test]
    fn a_copy_gets_its_name_when_it_is_whole_and_takes_it_from_no_other_file() {
        let folder = folder("named");
        let (from, to) = (small_store(&folder), folder.join("monday.db"));
        let staged = StagedCopy::make(&from, &to, |_| Ok(())).unwrap();
        assert!(!to.exists(), "it is not finished yet");
        let refused = open_source(staged.path()).err().unwrap().to_string();
        assert!(refused.contains("half a copy"), "{refused}");
        // Another one finishes first.
        std::fs::write(&to, "another").unwrap();
        let refused = staged.place().unwrap_err().to_string();
        assert!(refused.contains("exists already"), "{refused}");
        assert_eq!(std::fs::read(&to).unwrap(), b"another");
        assert_eq!(names(&folder), ["monday.db", "store.db"], "nothing is left of it");

        std::fs::remove_file(&to).unwrap();
        StagedCopy::make(&from, &to, |_| Ok(())).unwrap().place().unwrap();
        assert_eq!(std::fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(names(&folder), ["monday.db", "store.db"]);
        assert!(open_source(&to).and_then(|copy| is_store(&copy, &to)).is_ok());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_an_interrupted_copy_has_left_goes_and_what_another_one_writes_stays() {
        let folder = folder("left");
        let (from, to) = (small_store(&folder), folder.join("monday.db"));
        let gone = u32::MAX;
        let running = std::os::unix::process::parent_id();
        let left = format!("monday.db.{gone}-0.partial");
        std::fs::create_dir(folder.join(format!("{left}.payloads"))).unwrap();
        for name in [left.clone(), format!("{left}-journal"), format!("monday.db.{}-7.partial", std::process::id())] {
            std::fs::write(folder.join(name), "half").unwrap();
        }
        let kept = [
            format!("monday.db.{running}-0.partial"),
            "monday.db.old".to_owned(),
            "monday.db.partial".to_owned(),
            format!("tuesday.db.{gone}-0.partial"),
        ];
        for name in &kept {
            std::fs::write(folder.join(name), "other").unwrap();
        }
        let failed = StagedCopy::make(&from, &to, |_| Err(unusable(&to, "no".to_owned()))).err();
        assert!(failed.is_some() && !to.exists());
        let mut expected = kept.to_vec();
        expected.push("store.db".to_owned());
        expected.sort();
        assert_eq!(names(&folder), expected);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_log_of_a_database_that_was_there_before_is_not_taken_for_the_copys() {
        let folder = folder("log");
        let (from, to) = (small_store(&folder), folder.join("interlock.db"));
        std::fs::write(folder.join("interlock.db-wal"), "old").unwrap();
        let refused = StagedCopy::make(&from, &to, |_| Ok(())).err().unwrap().to_string();
        assert!(refused.contains("interlock.db-wal") && refused.contains("move it away"), "{refused}");
        assert_eq!(names(&folder), ["interlock.db-wal", "store.db"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_that_was_cut_off_is_refused() {
        let folder = folder("cut");
        let (from, to) = (small_store(&folder), folder.join("monday.db"));
        let whole = std::fs::read(&from).unwrap();
        for length in [1_000, whole.len() / 2, whole.len() - 1_000] {
            let cut = folder.join("cut.db");
            std::fs::write(&cut, &whole[..length]).unwrap();
            let refused = StagedCopy::make(&cut, &to, |_| Ok(())).err().unwrap().to_string();
            assert!(refused.starts_with("cannot use") || refused.contains("not an Interlock store"), "{refused}");
            assert!(refused.contains("cut.db") && !to.exists(), "{refused}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
