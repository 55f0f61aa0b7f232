//! Only the store speaks SQL.

use crate::{Finding, Tree};

/// A literal that starts with one of these, in capitals, is a statement.
const STATEMENTS: &[&str] = &["SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP", "WITH"];

#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files() {
        if !file.path.starts_with("crates/") || file.path.starts_with("crates/store/") {
            continue;
        }
        for string in &file.strings {
            if is_statement(string.text) && !file.is_test(string.offset) {
                findings.push(Finding {
                    path: file.path.to_owned(),
                    line: file.line(string.offset),
                    what: "SQL outside crates/store".to_owned(),
                    instead: "give the store a named query and call it".to_owned(),
                });
            }
        }
    }
    findings
}

fn is_statement(text: &str) -> bool {
    let text = text.trim_start();
    STATEMENTS
        .iter()
        .any(|statement| text.strip_prefix(statement).is_some_and(|rest| rest.starts_with([' ', '\n', '\\'])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&Tree::planted(&[(path, text)])).len()
    }

    #[test]
    fn statements_are_found_in_every_kind_of_string() {
        let text = "const A: &str = \"SELECT 1\"; const B: &str = r#\"\n  UPDATE runs\"#;";
        assert_eq!(count("crates/engine/src/a.rs", text), 2);
    }

    #[test]
    fn the_store_tests_and_prose_may_have_them() {
        let text = "const A: &str = \"SELECT 1\";";
        assert_eq!(count("crates/store/src/a.rs", text), 0);
        assert_eq!(count("crates/engine/tests/a.rs", text), 0);
        assert_eq!(count("sim/src/a.rs", text), 0);
        let prose = "const A: &str = \"Select a run\"; // \"SELECT 1\"\nconst B: &str = \"UPDATED\";";
        assert_eq!(count("crates/cli/src/a.rs", prose), 0);
    }
}
