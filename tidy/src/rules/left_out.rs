//! No assertions that are left out of every build: nothing is built with debug assertions (decision 0063).

use crate::{Finding, Tree};

/// Looked for in code only.
const LEFT_OUT: &[&str] = &["debug_assert!", "debug_assert_eq!", "debug_assert_ne!", "debug_assertions"];

#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files() {
        for left_out in LEFT_OUT {
            for offset in file.words(left_out) {
                findings.push(Finding {
                    path: file.path.to_owned(),
                    line: file.line(offset),
                    what: format!("`{left_out}` is in no build, not in the tests' either"),
                    instead: "write `assert!`, a test, or a feature that the tests switch on".to_owned(),
                });
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_them_is_found() {
        let count = |text: &str| check(&Tree::planted(&[("crates/core/src/a.rs", text)])).len();
        for code in
            ["fn a() { debug_assert!(true) }", "#[cfg(debug_assertions)] mod a;", "fn a() { debug_assert_eq!(1, 1) }"]
        {
            assert_eq!(count(code), 1, "{code}");
        }
        assert_eq!(count("fn a() { command().debug_assert(); assert!(true) } // debug_assert!"), 0);
    }
}
