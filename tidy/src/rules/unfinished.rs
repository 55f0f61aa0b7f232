//! No placeholders for code that is not written yet, and no notes of unfinished work.

use crate::rust_file::words;
use crate::tree::{has_extension, line_at};
use crate::{Finding, Tree};

/// Panics that stand for code; looked for in code only.
const PLACEHOLDERS: &[&str] = &[concat!("to", "do!"), concat!("un", "implemented!")];
/// Notes to self; looked for everywhere, comments above all.
const NOTES: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X")];

const SOURCES: &[&str] = &["rs", "sql", "ts", "tsx", "js", "mjs", "css", "html", "py", "rego", "sh", "toml"];

#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files() {
        for placeholder in PLACEHOLDERS {
            for offset in file.words(placeholder) {
                findings.push(Finding {
                    path: file.path.to_owned(),
                    line: file.line(offset),
                    what: format!("`{placeholder}` panics instead of doing something"),
                    instead: "write it, or return an error that says what is not supported".to_owned(),
                });
            }
        }
    }
    for (path, text) in tree.iter() {
        if !has_extension(path, SOURCES) {
            continue;
        }
        for note in NOTES {
            for offset in words(text, note) {
                findings.push(Finding {
                    path: path.to_owned(),
                    line: line_at(text, offset),
                    what: format!("`{note}` marks something unfinished"),
                    instead: "mend it, or open an issue and say here what holds today".to_owned(),
                });
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&Tree::planted(&[(path, text)])).len()
    }

    #[test]
    fn every_mark_is_found() {
        for placeholder in PLACEHOLDERS {
            let text = format!("fn a() {{ {placeholder}() }}");
            assert_eq!(count("crates/core/src/a.rs", &text), 1);
        }
        for note in NOTES {
            let text = format!("# {note}: later");
            assert_eq!(count("sdk/python/a.py", &text), 1);
        }
    }

    #[test]
    fn longer_words_and_prose_are_fine() {
        assert_eq!(count("scripts/a.sh", "mktemp a.XXXXXX"), 0);
        assert_eq!(count("crates/core/src/a.rs", "// a todo list\n"), 0);
    }
}
