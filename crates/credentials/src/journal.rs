//! The journal of leases: which are open, so that those of a crashed worker are revoked at the next start.
//!
//! Each process has a file of its own in one folder and keeps it locked while it lives. A file that can be locked belongs to
//! no live process: its open leases are taken over. The lines hold ids and times, never a value.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use interlock_core::time::Timestamp;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::limits;

const ENDING: &str = "leases";

/// A lease that is to be revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotedLease {
    pub provider: String,
    pub lease_id: String,
    /// When it ends by itself if it is not renewed.
    pub until: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Opened(NotedLease),
    Revoked { provider: String, lease_id: String },
}

/// This process's journal.
pub struct LeaseJournal {
    path: PathBuf,
    inner: Mutex<Inner>,
}

struct Inner {
    /// Locked as long as it is open.
    file: File,
    open: BTreeMap<(String, String), NotedLease>,
    written: u64,
}

impl LeaseJournal {
    /// A new journal in this folder, with the open leases of processes that are gone.
    pub fn open(folder: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let (path, file) = own_file(folder)?;
        let journal = Self { path, inner: Mutex::new(Inner { file, open: BTreeMap::new(), written: 0 }) };
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let is_journal = path.extension().is_some_and(|ending| ending == ENDING);
            if is_journal && path != journal.path {
                journal.take_over(&path)?;
            }
        }
        Ok(journal)
    }

    /// Moves the open leases of another journal into this one, if no live process has it.
    fn take_over(&self, path: &Path) -> io::Result<()> {
        let Ok(mut file) = File::open(path) else { return Ok(()) };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(());
        }
        let mut text = String::new();
        (&mut file).take(limits::JOURNAL_BYTES_MAX).read_to_string(&mut text)?;
        for lease in still_open(&text, path).into_values() {
            self.opened(&lease)?;
        }
        fs::remove_file(path)
    }

    /// The leases that are open, of this process and of those that it has taken over.
    pub fn open_leases(&self) -> Vec<NotedLease> {
        self.lock().open.values().cloned().collect()
    }

    /// Notes a lease before it is used. It is on the disk when this returns.
    pub fn opened(&self, lease: &NotedLease) -> io::Result<()> {
        let mut inner = self.lock();
        inner.write(&Line::Opened(lease.clone()))?;
        inner.open.insert(key(lease), lease.clone());
        Ok(())
    }

    /// Crosses a lease out. If that is lost, it is revoked a second time, which does no harm.
    pub fn revoked(&self, lease: &NotedLease) -> io::Result<()> {
        let mut inner = self.lock();
        inner.open.remove(&key(lease));
        if inner.open.is_empty() {
            inner.file.set_len(0)?;
            inner.written = 0;
            return Ok(());
        }
        let (provider, lease_id) = key(lease);
        inner.write(&Line::Revoked { provider, lease_id })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LeaseJournal {
    /// An empty journal is of no use to the next start.
    fn drop(&mut self) {
        if self.lock().open.is_empty() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Inner {
    fn write(&mut self, line: &Line) -> io::Result<()> {
        if self.written > limits::JOURNAL_BYTES_MAX / 2 {
            self.compact()?;
        }
        self.append(line)?;
        self.file.sync_data()
    }

    fn append(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        self.file.write_all(text.as_bytes())?;
        self.written += text.len() as u64;
        Ok(())
    }

    /// Only what is open is written again. A crash in between loses ids of leases that end within minutes.
    fn compact(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.written = 0;
        for lease in self.open.values().cloned().collect::<Vec<_>>() {
            self.append(&Line::Opened(lease))?;
        }
        Ok(())
    }
}

fn key(lease: &NotedLease) -> (String, String) {
    (lease.provider.clone(), lease.lease_id.clone())
}

/// A file that is locked before another process can find it under its name.
fn own_file(folder: &Path) -> io::Result<(PathBuf, File)> {
    let process = std::process::id();
    for number in 0..1_000_u32 {
        let path = folder.join(format!("worker-{process}-{number}.{ENDING}"));
        let new = path.with_extension("new");
        let file = match OpenOptions::new().append(true).create_new(true).mode(0o600).open(&new) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        };
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        // A name may be left from a process with the same id; a link does not replace it.
        let linked = fs::hard_link(&new, &path);
        fs::remove_file(&new)?;
        match linked {
            Ok(()) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many journals of leases; is something deleting and making them?"))
}

/// A line that was cut off by a crash is the last one, and what it would have noted was not used yet.
fn still_open(text: &str, path: &Path) -> BTreeMap<(String, String), NotedLease> {
    let mut open = BTreeMap::new();
    for line in text.lines() {
        match serde_json::from_str(line) {
            Ok(Line::Opened(lease)) => {
                open.insert(key(&lease), lease);
            }
            Ok(Line::Revoked { provider, lease_id }) => {
                open.remove(&(provider, lease_id));
            }
            Err(_) => {
                warn!(journal = %path.display(), "a line of a journal of leases cannot be read; it is passed over");
            }
        }
    }
    open
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("interlock-journal-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    fn lease(id: &str) -> NotedLease {
        NotedLease { provider: "corp".to_owned(), lease_id: id.to_owned(), until: Timestamp(7) }
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn leases_of_a_process_that_is_gone_are_taken_over() {
        let folder = folder("taken");
        let crashed = LeaseJournal::open(&folder).unwrap();
        for id in ["a", "b", "c"] {
            crashed.opened(&lease(id)).unwrap();
        }
        crashed.revoked(&lease("b")).unwrap();
        let beside = LeaseJournal::open(&folder).unwrap();
        assert_eq!(beside.open_leases(), [], "a living process keeps its own");
        // As the kernel does when a process dies: the lock goes, the file stays.
        let (path, copy) = (crashed.path.clone(), fs::read(&crashed.path).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(crashed);
        fs::write(&path, [&copy[..], b"{\"opened\":{\"prov"].concat()).unwrap();
        let next = LeaseJournal::open(&folder).unwrap();
        assert_eq!(next.open_leases(), [lease("a"), lease("c")]);
        assert!(!path.exists(), "and only once");
        let written = fs::read_to_string(&next.path).unwrap();
        assert_eq!(written.lines().count(), 2);
        drop((beside, next));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_journal_without_open_leases_leaves_no_file() {
        let folder = folder("empty");
        let journal = LeaseJournal::open(&folder).unwrap();
        journal.opened(&lease("a")).unwrap();
        journal.revoked(&lease("a")).unwrap();
        assert_eq!(fs::metadata(&files(&folder)[0]).unwrap().len(), 0);
        drop(journal);
        assert_eq!(files(&folder), [] as [PathBuf; 0]);
        fs::remove_dir_all(folder).unwrap();
    }
}
