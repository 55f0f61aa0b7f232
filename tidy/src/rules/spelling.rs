//! One spelling: `canceled`, `canceling`.

use crate::rust_file::RustFile;
use crate::tree::{has_extension, line_at};
use crate::{Finding, Tree};

const BANNED: &[&str] = &["cancelled", "cancelling"];

/// Where the rule holds, next to the pages at the root.
const SCOPE: &[&str] = &["crates/", "sim/", "console/", "sdk/", "docs/"];

/// The runbook surface and its messages keep the state names that their clients know.
const RUNBOOK_SURFACE: &[&str] = &[
    "crates/protocol/src/executions.rs",
    "crates/protocol/src/executions/",
    "crates/server/src/routes/executions.rs",
    "crates/server/src/routes/executions/",
    "docs/reference/states.md",
];

/// Methods of other people's types.
const FOREIGN: &[&str] = &[".cancelled(", ".cancelled_owned(", ".is_cancelled(", ".run_until_cancelled("];

#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.iter() {
        let in_scope = SCOPE.iter().any(|folder| path.starts_with(folder))
            || (!path.contains('/') && has_extension(path, &["md"]));
        if !in_scope || RUNBOOK_SURFACE.iter().any(|kept| path.starts_with(kept)) {
            continue;
        }
        let mut ours = text.to_owned();
        for name in FOREIGN {
            ours = ours.replace(name, &" ".repeat(name.len()));
        }
        let ours = ours.to_ascii_lowercase();
        let rust = has_extension(path, &["rs"]).then(|| RustFile::new(path, text));
        for banned in BANNED {
            for (offset, _) in ours.match_indices(banned) {
                // A test may say what is refused, or what the runbook surface answers.
                if rust.as_ref().is_some_and(|file| file.is_string_in_test(offset)) {
                    continue;
                }
                findings.push(Finding {
                    path: path.to_owned(),
                    line: line_at(&ours, offset),
                    what: format!("`{banned}` has another spelling here"),
                    instead: format!("`{}`", banned.replacen("ll", "l", 1)),
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
    fn the_other_spelling_is_found_in_code_strings_and_prose() {
        assert_eq!(count("crates/core/src/a.rs", "enum S { Cancelled }"), 1);
        assert_eq!(count("crates/core/src/a.rs", "// \"cancelled\""), 1);
        assert_eq!(count("docs/guide/runs.md", "CANCELLED, cancelling"), 2);
        assert_eq!(count("README.md", "cancelled"), 1);
    }

    #[test]
    fn the_runbook_surface_and_foreign_methods_keep_theirs() {
        assert_eq!(count("docs/reference/states.md", "cancelled"), 0);
        let surface = "crates/server/src/routes/executions/show.rs";
        assert_eq!(count(surface, "\"cancelled\""), 0);
        assert_eq!(count("crates/engine/src/a.rs", "stop.cancelled().await"), 0);
        assert_eq!(count("crates/core/src/a.rs", "canceled, cancellation"), 0);
    }

    #[test]
    fn a_test_may_quote_it_but_not_name_things_with_it() {
        let path = "crates/core/tests/a.rs";
        assert_eq!(count(path, "assert!(parse(\"cancelled\").is_err());"), 0);
        assert_eq!(count(path, "fn cancelled_runs_stay() {}"), 1);
    }
}
