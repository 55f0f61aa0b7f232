//! The worker's folder for sockets of brokers and for a copy of the shim. Gone with the worker; one that a dead worker
//! has left behind is removed by the next.
//!
//! The worker keeps its folder locked, and the kernel takes the lock off when it dies. Its number alone would not tell: the
//! first process of a container has the same one after every restart, and two containers may share the folder above.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::removal::remove_tree;

const PREFIX: &str = "interlock-sandbox-";
/// Names that are tried until one is free.
const NAMES_TRIED: usize = 1_000;

#[derive(Debug)]
pub(crate) struct StateFolder {
    path: PathBuf,
    names: AtomicU64,
    /// Keeps the lock.
    _locked: File,
}

impl StateFolder {
    pub fn create(parent: &Path) -> io::Result<Self> {
        sweep(parent);
        let mut made = Err(io::Error::from(io::ErrorKind::AlreadyExists));
        for _ in 0..NAMES_TRIED {
            made = Self::try_create(parent);
            if !matches!(&made, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
                break;
            }
        }
        made
    }

    fn try_create(parent: &Path) -> io::Result<Self> {
        static FOLDERS: AtomicU64 = AtomicU64::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        // Others may pass through, as a command's identity must, but not look around.
        DirBuilder::new().mode(0o711).create(&path)?;
        // A worker that starts just now may have taken it for one that was left behind.
        let locked = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(io::ErrorKind::AlreadyExists.into()),
            opened => opened?,
        };
        if matches!(locked.try_lock(), Err(TryLockError::WouldBlock)) || !path.exists() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o711))?;
        Ok(Self { path, names: AtomicU64::new(0), _locked: locked })
    }

    /// A path in the folder that was not used before.
    pub fn unused(&self, suffix: &str) -> PathBuf {
        self.path.join(format!("{}{suffix}", self.names.fetch_add(1, Ordering::Relaxed)))
    }

    /// The program itself where every identity can read it, else a copy that it can.
    pub fn readable_program(&self, program: &Path) -> io::Result<PathBuf> {
        let open = |path: &Path, bits: u32| fs::metadata(path).is_ok_and(|found| found.mode() & bits == bits);
        if open(program, 0o005) && program.ancestors().skip(1).all(|folder| open(folder, 0o001)) {
            return Ok(program.to_owned());
        }
        let copy = self.path.join("shim");
        fs::copy(program, &copy)?;
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o555))?;
        Ok(copy)
    }
}

impl Drop for StateFolder {
    fn drop(&mut self) {
        let _ = remove_tree(&self.path);
    }
}

fn sweep(parent: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split_once('-')?.0.parse::<u32>().ok());
        // Of this number there is no other process but this one.
        let own_number = std::process::id();
        let may_be_dead = |process: u32| process == own_number || !Path::new(&format!("/proc/{process}")).exists();
        let is_own = || entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == own);
        if process.is_some_and(may_be_dead) && is_own() {
            // Held until it is removed.
            let left = File::open(entry.path());
            if left.as_ref().is_ok_and(|left| left.try_lock().is_ok()) {
                let _ = remove_tree(&entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_others_cannot_reach_is_copied() {
        let folder = StateFolder::create(&std::env::temp_dir()).unwrap();
        assert_eq!(folder.readable_program(Path::new("/usr/bin/id")).unwrap(), Path::new("/usr/bin/id"));
        let closed = folder.unused(".program");
        fs::write(&closed, "x").unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        let copy = folder.readable_program(&closed).unwrap();
        assert!(copy != closed && fs::read(&copy).unwrap() == b"x");
        let path = folder.path.clone();
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn the_folder_of_a_dead_worker_is_swept() {
        let parent = StateFolder::create(&std::env::temp_dir()).unwrap();
        let left = parent.path.join(format!("{PREFIX}{}-0", u32::MAX));
        fs::create_dir(&left).unwrap();
        let kept = StateFolder::create(&parent.path).unwrap();
        sweep(&parent.path);
        assert!(!left.exists() && kept.path.exists());
    }

    /// The first process of a container has the number of the one before it.
    #[test]
    fn a_folder_of_the_same_number_that_a_dead_worker_left_is_swept() {
        let parent = StateFolder::create(&std::env::temp_dir()).unwrap();
        let left = parent.path.join(format!("{PREFIX}{}-{}", std::process::id(), u32::MAX));
        fs::create_dir(&left).unwrap();
        let locked = File::open(&left).unwrap();
        locked.lock().unwrap();
        sweep(&parent.path);
        assert!(left.exists(), "a worker in another container holds it");
        drop(locked);
        sweep(&parent.path);
        assert!(!left.exists());
    }
}
