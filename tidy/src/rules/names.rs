//! No files or modules named `util`, `common` and the like: such a name fits everything and says nothing.

use crate::tree::has_extension;
use crate::{Finding, Tree};

const BANNED: &[&str] = &["util", "utils", "common", "helper", "helpers", "manager", "misc"];

const SOURCES: &[&str] = &["rs", "ts", "tsx", "js", "mjs", "py", "sh"];

#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, _) in tree.iter() {
        if !has_extension(path, SOURCES) {
            continue;
        }
        if let Some(name) = path.split('/').find_map(banned_part) {
            findings.push(finding(path, 1, name));
        }
    }
    for file in tree.rust_files() {
        for offset in file.words("mod") {
            let name: String = file.code[offset + "mod".len()..]
                .trim_start()
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            if let Some(name) = banned_part(&name) {
                findings.push(finding(file.path, file.line(offset), name));
            }
        }
    }
    findings
}

/// The banned word that a file, folder or module is named with: alone, or as its last word.
fn banned_part(name: &str) -> Option<&str> {
    let stem = name.split('.').next()?;
    let last = stem.rsplit(['_', '-']).next()?;
    BANNED.contains(&last).then_some(last)
}

fn finding(path: &str, line: usize, name: &str) -> Finding {
    Finding {
        path: path.to_owned(),
        line,
        what: format!("`{name}` does not say what is inside"),
        instead: "name it for what it does; split it where that needs an `and`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&Tree::planted(&[(path, text)])).len()
    }

    #[test]
    fn files_folders_and_modules_are_found() {
        assert_eq!(count("crates/core/src/utils.rs", ""), 1);
        assert_eq!(count("crates/core/src/session_manager.rs", ""), 1);
        assert_eq!(count("crates/store/tests/common/mod.rs", ""), 1);
        assert_eq!(count("sdk/python/interlock/helpers.py", ""), 1);
        assert_eq!(count("crates/core/src/lib.rs", "pub(crate) mod misc {}"), 1);
    }

    #[test]
    fn words_that_only_contain_one_are_fine() {
        assert_eq!(count("crates/worker/src/common_name.rs", ""), 0);
        assert_eq!(count("crates/core/src/utilisation.rs", "mod run; // mod util"), 0);
    }
}
