//! A folder that commands of one run share as `/work`. It is its owner's alone, and removed with its last handle.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::launch::Identity;
use crate::removal::remove_tree;

/// Entries that are looked at to find out how much a folder holds; one that has more is too full.
const ENTRIES_MAX: u64 = 200_000;
/// How deep its folders are looked into.
const DEPTH_MAX: usize = 128;

/// A folder for commands. Dropping it removes it with all that is in it.
#[derive(Debug)]
pub struct WorkFolder {
    path: PathBuf,
}

impl WorkFolder {
    pub(crate) fn create(path: PathBuf, owner: Option<Identity>) -> io::Result<Self> {
        DirBuilder::new().mode(0o700).create(&path)?;
        let folder = Self { path: fs::canonicalize(path)? };
        fs::set_permissions(&folder.path, Permissions::from_mode(0o700))?;
        if let Some(Identity { uid, gid }) = owner {
            std::os::unix::fs::chown(&folder.path, Some(uid), Some(gid))?;
        }
        Ok(folder)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many bytes its files hold, as far as `max`: what is more counts as more. Links are not followed.
    pub fn bytes(&self, max: u64) -> io::Result<u64> {
        let (mut bytes, mut entries) = (0_u64, 0_u64);
        let mut folders = vec![(self.path.clone(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                // Of the entry itself: a link's target is not what the folder holds.
                let found = entry.metadata()?;
                entries += 1;
                bytes = bytes.saturating_add(found.blocks().saturating_mul(512));
                if entries > ENTRIES_MAX || depth > DEPTH_MAX || bytes > max {
                    return Ok(u64::MAX);
                }
                if found.is_dir() {
                    folders.push((entry.path(), depth + 1));
                }
            }
        }
        Ok(bytes)
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        // What cannot be removed is swept with the worker's own folder.
        if let Err(error) = remove_tree(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "the directory of a run could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn place() -> PathBuf {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        std::env::temp_dir().join(format!("interlock-work-folder-{}-{number}", std::process::id()))
    }

    #[test]
    fn links_out_of_a_folder_are_neither_counted_nor_followed_when_it_goes() {
        let outside = place();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), vec![1; 100_000]).unwrap();
        let folder = WorkFolder::create(place(), None).unwrap();
        assert_eq!(fs::metadata(folder.path()).unwrap().mode() & 0o777, 0o700);
        std::os::unix::fs::symlink(&outside, folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink(outside.join("kept"), folder.path().join("file")).unwrap();
        fs::create_dir(folder.path().join("locked")).unwrap();
        fs::write(folder.path().join("locked/x"), "x").unwrap();
        assert!(folder.bytes(1 << 20).unwrap() < 100_000);
        fs::set_permissions(folder.path().join("locked"), Permissions::from_mode(0o000)).unwrap();
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
        assert_eq!(fs::read(outside.join("kept")).unwrap().len(), 100_000);
        fs::remove_dir_all(outside).unwrap();
    }

    #[test]
    fn what_a_folder_holds_is_counted_as_far_as_the_bound() {
        let folder = WorkFolder::create(place(), None).unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a/b"), vec![1; 200_000]).unwrap();
        assert!((200_000..1 << 20).contains(&folder.bytes(1 << 20).unwrap()));
        assert_eq!(folder.bytes(100_000).unwrap(), u64::MAX);
    }
}
