//! `unsafe` stands in the sandbox and in the memory of secrets, where system calls leave no choice, and nowhere else.

use crate::{Finding, Tree};

const PERMITTED: &[&str] =
    &["crates/credentials/src/memory.rs", "crates/sandbox/src/sys.rs", "crates/sandbox/probe/raw.rs"];

#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files() {
        if PERMITTED.iter().any(|path| file.path.starts_with(path)) {
            continue;
        }
        for offset in file.words("unsafe") {
            if file.code[..offset].ends_with("r#") {
                continue;
            }
            findings.push(Finding {
                path: file.path.to_owned(),
                line: file.line(offset),
                what: "`unsafe` outside the sandbox and the memory of secrets".to_owned(),
                instead: "a safe function of std or of a crate that wraps the call".to_owned(),
            });
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
    fn unsafe_is_found_outside_the_sandbox() {
        let text = "fn a() { unsafe { b() } }";
        assert_eq!(count("crates/store/src/a.rs", text), 1);
        assert_eq!(count("crates/sandbox/src/sys.rs", text), 0);
        assert_eq!(count("crates/sandbox/src/launch/mod.rs", text), 1);
        assert_eq!(count("crates/credentials/src/memory.rs", text), 0);
    }

    #[test]
    fn the_effect_class_and_the_lint_are_other_words() {
        let text = "#![forbid(unsafe_code)] enum E { Unsafe } const A: &str = \"unsafe\"; r#unsafe";
        assert_eq!(count("crates/core/src/a.rs", text), 0);
    }
}
