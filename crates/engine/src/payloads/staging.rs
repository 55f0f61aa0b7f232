//! Staging files: an object is written to `NAME#NUMBER` beside its place, and moved there when it is on disk. A process
//! that dies in between leaves the file behind. Nothing lists it or refers to it, so it is removed by its name and age.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use interlock_core::time::{Millis, Timestamp};

/// A write takes half a minute at most; a clock may be off by more than that.
pub(super) const KEPT: Millis = Millis::from_hours(24);
/// How often a folder is gone through.
pub(super) const EVERY: Millis = Millis::from_hours(24);
/// Length of a hash in hexadecimal digits.
const HASH_DIGITS: usize = 64;

/// Removes the staging files that were last written before this instant, and answers with their number.
pub(super) fn remove(folder: &Path, before: Timestamp) -> io::Result<u64> {
    let before = UNIX_EPOCH + Duration::from_millis(u64::try_from(before.0).unwrap_or_default());
    let mut removed = 0;
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() && is_staging(&entry.file_name().to_string_lossy()) {
                let written = match entry.metadata().and_then(|found| found.modified()) {
                    Ok(written) => written,
                    // Its writer has just moved it to its place.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => return Err(error),
                };
                if written < before {
                    std::fs::remove_file(entry.path())?;
                    removed += 1;
                }
            }
        }
    }
    Ok(removed)
}

fn is_staging(name: &str) -> bool {
    let Some((hash, number)) = name.split_once('#') else { return false };
    let is_hash = hash.len() == HASH_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_old_staging_files_go() {
        let folder = std::env::temp_dir().join(format!("interlock-staging-{}", std::process::id()));
        let deep = folder.join("tenant/ab");
        std::fs::create_dir_all(&deep).unwrap();
        let hash = "ab".repeat(HASH_DIGITS / 2);
        let names = [hash.clone(), format!("{hash}#1"), format!("{hash}#x"), "notes#1".to_owned()];
        for name in &names {
            std::fs::write(deep.join(name), "x").unwrap();
        }
        let left = || std::fs::read_dir(&deep).unwrap().count();
        assert_eq!((remove(&folder, Timestamp(0)).unwrap(), left()), (0, 4), "they are new");
        assert_eq!((remove(&folder, Timestamp(i64::MAX / 2)).unwrap(), left()), (1, 3));
        assert!(!deep.join(&names[1]).exists(), "the object itself and what is not ours stay");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
