//! The repository's text files, in memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Directories that hold what tools made or fetched.
const SKIPPED: &[&str] = &["target", "node_modules", "dist", "__pycache__"];
/// Hidden directories that hold what people wrote.
const HIDDEN_BUT_READ: &[&str] = &[".ci", ".config", ".github"];

/// Path → text, with `/` between folders, relative to the repository's root.
#[derive(Debug, Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// The repository that this crate was compiled in.
    ///
    /// # Errors
    /// When a directory or a file cannot be read.
    pub fn of_repository() -> io::Result<Self> {
        let root = repository_root();
        let mut tree = Self::default();
        tree.read_directory(&root, "")?;
        Ok(tree)
    }

    /// A small tree for a test.
    #[must_use]
    pub fn planted(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect();
        Self { files }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    #[must_use]
    pub fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Is there a file or a folder of this path?
    #[must_use]
    pub fn contains(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty()
            || self.files.contains_key(path)
            || self.files.range(folder.clone()..).next().is_some_and(|(next, _)| next.starts_with(&folder))
    }

    fn read_directory(&mut self, directory: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            let kind = entry.file_type()?;
            if kind.is_dir() {
                if is_ours(&entry.path(), &name) {
                    self.read_directory(&entry.path(), &format!("{path}/"))?;
                }
            } else if kind.is_file() {
                // Bytes that are not text still count as a file that a link may point at.
                let text = String::from_utf8(fs::read(entry.path())?).unwrap_or_default();
                self.files.insert(path, text);
            }
        }
        Ok(())
    }
}

fn is_ours(directory: &Path, name: &str) -> bool {
    let hidden = name.starts_with('.') && !HIDDEN_BUT_READ.contains(&name);
    // Build directories and Python environments mark themselves.
    let made_by_a_tool = ["CACHEDIR.TAG", "pyvenv.cfg"].iter().any(|marker| directory.join(marker).exists());
    !hidden && !SKIPPED.contains(&name) && !made_by_a_tool
}

pub(crate) fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate's folder stands in the repository").to_owned()
}

pub(crate) fn has_extension(path: &str, extensions: &[&str]) -> bool {
    Path::new(path)
        .extension()
        .and_then(|extension| extension.to_str())
        .is_some_and(|extension| extensions.contains(&extension))
}

/// Do these words mark a path as test or benchmark code?
pub(crate) fn is_test_path(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let file = parts.next().unwrap_or_default();
    file == "tests.rs"
        || file.ends_with("_tests.rs")
        || file.ends_with("_test.rs")
        || parts.any(|part| part == "tests" || part == "benches")
}

/// The line, counted from 1, in which the byte at `offset` stands.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    1 + text[..offset].matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_their_folders_are_contained_and_nothing_else() {
        let tree = Tree::planted(&[("docs/guide/start.md", ""), ("docs-old/x.md", "")]);
        assert!(tree.contains("docs"));
        assert!(tree.contains("docs/guide/start.md"));
        assert!(!tree.contains("docs/guide/st"));
        assert!(!tree.contains("doc"));
    }

    #[test]
    fn test_code_is_told_by_its_path() {
        assert!(is_test_path("crates/store/tests/claim.rs"));
        assert!(is_test_path("crates/core/src/decide/tests.rs"));
        assert!(is_test_path("crates/engine/benches/dispatch.rs"));
        assert!(!is_test_path("crates/core/src/contests.rs"));
    }
}
