//! A migration that has run somewhere never changes.
//!
//! `CHECKSUMS` holds one line per file, as `sha256sum` writes it, with paths relative to itself.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::{Finding, Tree};

const FOLDER: &str = "crates/store/migrations/";
const LIST: &str = "crates/store/migrations/CHECKSUMS";

#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let migrations: BTreeMap<&str, &str> = tree
        .iter()
        .filter(|&(path, _)| path != LIST)
        .filter_map(|(path, text)| Some((path.strip_prefix(FOLDER)?, text)))
        .collect();
    let list = tree.get(LIST).unwrap_or_default();
    let mut findings = Vec::new();
    let mut listed = BTreeMap::new();

    for (index, line) in list.lines().enumerate() {
        let at_line = |what: String, instead: String| Finding { path: LIST.to_owned(), line: index + 1, what, instead };
        let Some((hash, path)) = line.split_once("  ") else {
            findings.push(at_line(
                format!("not a checksum line: {line:?}"),
                "`<sha256>  <path>`, as sha256sum writes it".to_owned(),
            ));
            continue;
        };
        listed.insert(path, hash);
        match migrations.get(path) {
            None => findings.push(at_line(
                format!("{path} is listed but gone"),
                "restore it; undo it with a new migration".to_owned(),
            )),
            Some(text) if sha256(text) != hash => findings.push(Finding {
                path: format!("{FOLDER}{path}"),
                line: 1,
                what: "a listed migration has changed".to_owned(),
                instead: format!(
                    "restore it and add a new migration; only where it has never been released, \
                     put {} into CHECKSUMS",
                    sha256(text)
                ),
            }),
            Some(_) => {}
        }
    }

    for path in migrations.keys().filter(|path| !listed.contains_key(*path)) {
        findings.push(Finding {
            path: format!("{FOLDER}{path}"),
            line: 1,
            what: "a migration is not listed in CHECKSUMS".to_owned(),
            instead: format!("list it: (cd {FOLDER} && sha256sum {path} >>CHECKSUMS)"),
        });
    }
    findings
}

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a String takes everything");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn check_with(list: &str, text: &str) -> Vec<Finding> {
        check(&Tree::planted(&[(LIST, list), ("crates/store/migrations/sqlite/0001.sql", text)]))
    }

    #[test]
    fn a_listed_and_unchanged_migration_passes() {
        assert_eq!(check_with(&format!("{ABC}  sqlite/0001.sql\n"), "abc"), []);
    }

    #[test]
    fn a_changed_one_is_found() {
        let found = check_with(&format!("{ABC}  sqlite/0001.sql\n"), "abcd");
        assert_eq!(found[0].path, "crates/store/migrations/sqlite/0001.sql");
        assert_eq!(found[0].what, "a listed migration has changed");
    }

    #[test]
    fn an_unlisted_one_is_found_with_the_command_that_lists_it() {
        let found = check_with("", "abc");
        assert!(found[0].instead.contains("sha256sum sqlite/0001.sql"));
    }

    #[test]
    fn a_removed_one_and_a_broken_line_are_found() {
        let list = format!("{ABC}  sqlite/0001.sql\n{ABC}  sqlite/0002.sql\nnonsense\n");
        let lines: Vec<_> = check_with(&list, "abc").iter().map(|f| f.line).collect();
        assert_eq!(lines, [2, 3]);
    }
}
