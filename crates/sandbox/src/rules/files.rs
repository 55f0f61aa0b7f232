//! Which files an argument leads to, if it is the name of a program.

use std::path::{Path, PathBuf};

/// Where programs are looked for that an argument names without a folder.
const FOLDERS: &[&str] = &["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// The files that are there.
pub(super) fn targets(argument: &str) -> Vec<PathBuf> {
    if argument.starts_with('/') {
        return std::fs::canonicalize(argument).into_iter().collect();
    }
    if argument.is_empty() || argument.starts_with(['-', '+', '.']) || argument.contains('/') {
        return Vec::new();
    }
    FOLDERS.iter().filter_map(|folder| std::fs::canonicalize(Path::new(folder).join(argument)).ok()).collect()
}

/// The files that it may name as a program, also one that is not there.
pub(super) fn named(argument: &str) -> Vec<PathBuf> {
    let found = targets(argument);
    if found.is_empty() && argument.starts_with('/') { vec![PathBuf::from(argument)] } else { found }
}
