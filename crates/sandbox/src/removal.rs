//! Removes what commands have left in a folder. They can make folders as deep as the disk takes them, deeper than a stack or
//! a path: so nothing here calls itself, and no folder is reached through another. Each one is moved up first, to the top.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

/// How often a folder is gone through until nothing is left in it: a file system may leave entries out while others are removed.
const PASSES_MAX: usize = 8;

/// Removes a folder with all that is in it. Links are removed and never followed, and locked folders are opened. The processes that
/// wrote there are gone by now.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    // A link in its place is not followed here either.
    if path.symlink_metadata()?.is_dir() {
        unlock(CWD, path)?;
    }
    let mut tree = Tree { top: open(CWD, path)?, waiting: Vec::new(), moved: 0 };
    for _ in 0..PASSES_MAX {
        tree.clear_top()?;
        match unlinkat(CWD, path, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            removed => return Ok(removed?),
        }
    }
    Err(io::ErrorKind::DirectoryNotEmpty.into())
}

struct Tree {
    top: OwnedFd,
    /// Folders that stand at the top.
    waiting: Vec<CString>,
    /// How many were moved there.
    moved: u64,
}

impl Tree {
    fn clear_top(&mut self) -> io::Result<()> {
        for (name, is_folder) in entries(&self.top)? {
            if is_folder {
                self.waiting.push(name);
            } else {
                removed(unlinkat(&self.top, &name, AtFlags::empty()))?;
            }
        }
        while let Some(name) = self.waiting.pop() {
            self.clear(&name)?;
        }
        Ok(())
    }

    /// Empties a folder at the top, and removes it. One that is not empty yet waits for the next pass.
    fn clear(&mut self, name: &CStr) -> io::Result<()> {
        unlock(&self.top, name)?;
        let folder = match open(&self.top, name) {
            // Another one was moved to its place, or it is gone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        for (name, is_folder) in entries(&folder)? {
            if is_folder {
                unlock(&folder, &name)?;
                self.move_up(&folder, &name)?;
            } else {
                removed(unlinkat(&folder, &name, AtFlags::empty()))?;
            }
        }
        match unlinkat(&self.top, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            gone => removed(gone),
        }
    }

    fn move_up(&mut self, folder: &OwnedFd, name: &CStr) -> io::Result<()> {
        loop {
            let free = CString::new(format!("{}.moved", self.moved))?;
            self.moved += 1;
            match renameat(folder, name, &self.top, &free) {
                // A command has called one so.
                Err(Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(Errno::NOENT) => return Ok(()),
                moved => {
                    self.waiting.push(free);
                    return Ok(moved?);
                }
            }
        }
    }
}

fn open(at: impl AsFd, path: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(at, path, flags, Mode::empty())?)
}

/// The names in a folder, and which of them are folders.
fn entries(folder: &OwnedFd) -> io::Result<Vec<(CString, bool)>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_owned();
        let is_folder = match entry.file_type() {
            _ if matches!(name.to_bytes(), b"." | b"..") => continue,
            FileType::Unknown => {
                let found = statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(found.st_mode) == FileType::Directory
            }
            kind => kind == FileType::Directory,
        };
        found.push((name, is_folder));
    }
    Ok(found)
}

/// A folder that is moved or emptied must be open to its owner.
fn unlock(at: impl AsFd, name: impl rustix::path::Arg) -> io::Result<()> {
    removed(chmodat(at, name, Mode::RWXU, AtFlags::empty()))
}

/// What is gone already is well removed.
fn removed(result: rustix::io::Result<()>) -> io::Result<()> {
    match result {
        Err(Errno::NOENT) => Ok(()),
        result => Ok(result?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::PathBuf;

    fn place(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("interlock-removal-{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        path
    }

    /// Each new folder takes the old ones in, so that none is reached by a long path.
    fn make_deep(at: &Path, levels: usize) {
        fs::create_dir(at.join("d")).unwrap();
        for _ in 0..levels {
            fs::create_dir(at.join("n")).unwrap();
            fs::rename(at.join("d"), at.join("n/d")).unwrap();
            fs::rename(at.join("n"), at.join("d")).unwrap();
        }
    }

    /// On a thread with a small stack, as those that serve are.
    #[test]
    fn a_folder_goes_however_deep_it_is() {
        let path = place("deep");
        make_deep(&path, 20_000);
        let removed = std::thread::Builder::new().stack_size(256 << 10).spawn({
            let path = path.clone();
            move || remove_tree(&path)
        });
        removed.unwrap().join().unwrap().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn links_are_not_followed_and_locks_and_odd_names_do_not_hold_it_up() {
        let (path, outside) = (place("odd"), place("outside"));
        fs::write(outside.join("kept"), "x").unwrap();
        symlink(&outside, path.join("link")).unwrap();
        for folder in ["0.moved", "0.moved/1.moved", "a", "a/b", "a/b/c", "a/d", "1.moved"] {
            fs::create_dir(path.join(folder)).unwrap();
            fs::write(path.join(folder).join("file"), "x").unwrap();
        }
        symlink(&outside, path.join("a/b/link")).unwrap();
        for folder in ["a/b/c", "a/b", "a", ""] {
            fs::set_permissions(path.join(folder), Permissions::from_mode(0o000)).unwrap();
        }
        remove_tree(&path).unwrap();
        assert!(!path.exists());
        assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "x");
        remove_tree(&outside).unwrap();
        assert_eq!(remove_tree(&outside).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
