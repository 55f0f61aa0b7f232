//! A library whose manifest says that it has no tests, or no examples that are tests, has none: nobody would run them.

use crate::tree::has_extension;
use crate::{Finding, Tree};

/// What an example's fence may say that rustdoc runs or compiles. With any other word it is shown only.
const COMPILED: &[&str] = &["", "rust", "no_run", "should_panic", "compile_fail"];
const TESTS: &[&str] = &["#[test]", "#[tokio::test", "#[cfg(test"];
/// A program under examples/ is compiled, and run by nobody, unless there is a test in it.
const INSTEAD: &str =
    "take that line out, or try it under tests/, or under examples/ with a test in it ([[example]] with `test = true`)";

#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (manifest, settings) in tree.iter() {
        let Some(folder) = manifest.strip_suffix("Cargo.toml") else { continue };
        let source = format!("{folder}src/");
        let is_off = |setting: &str| library(settings).any(|line| line == setting);
        for (path, text) in tree.iter().filter(|(path, _)| path.starts_with(&source) && has_extension(path, &["rs"])) {
            let mut add = |setting: &str, lines: Vec<usize>| {
                findings.extend(lines.into_iter().map(|line| Finding {
                    path: path.to_owned(),
                    line,
                    what: format!("nobody runs it: {manifest} says `{setting}`"),
                    instead: INSTEAD.to_owned(),
                }));
            };
            if is_off("test = false") {
                add("test = false", tests(text));
            }
            if is_off("doctest = false") {
                add("doctest = false", examples(text));
            }
        }
    }
    findings
}

/// The lines of a manifest's `[lib]`.
fn library(manifest: &str) -> impl Iterator<Item = &str> {
    manifest.lines().skip_while(|line| *line != "[lib]").skip(1).take_while(|line| !line.starts_with('['))
}

/// The lines on which a test or a module of tests begins.
fn tests(text: &str) -> Vec<usize> {
    let is_test = |line: &str| TESTS.iter().any(|attribute| line.trim_start().starts_with(attribute));
    (1..).zip(text.lines()).filter(|(_, line)| is_test(line)).map(|(number, _)| number).collect()
}

/// The lines on which an example begins that rustdoc would compile.
fn examples(text: &str) -> Vec<usize> {
    let (mut found, mut is_inside) = (Vec::new(), false);
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let Some(said) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            is_inside = false;
            continue;
        };
        let Some(words) = said.trim().strip_prefix("```") else { continue };
        if !is_inside && words.split([',', ' ']).all(|word| COMPILED.contains(&word)) {
            found.push(number);
        }
        is_inside = !is_inside;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(manifest: &str, text: &str) -> Vec<usize> {
        let tree = Tree::planted(&[("sim/Cargo.toml", manifest), ("sim/src/world.rs", text)]);
        check(&tree).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn tests_of_a_library_without_tests_are_found() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn b() {}\n}\n";
        assert_eq!(lines("[lib]\ntest = false\n\n[dependencies]\n", text), [2, 4]);
        assert!(lines("[lib]\ndoctest = false\n", text).is_empty());
        assert!(lines("[lib]\n\n[[bin]]\ntest = false\n", text).is_empty(), "it is said of the program");
    }

    #[test]
    fn examples_of_a_library_without_examples_are_found() {
        let text = "//! ```text\n//! a -> b\n//! ```\nfn a() {}\n/// ```\n/// a();\n/// ```\n/// ```no_run\n/// ```\nfn b() {}\n";
        assert_eq!(lines("[lib]\ndoctest = false\n", text), [5, 8]);
        assert!(lines("[lib]\ntest = false\n", text).is_empty());
        assert!(lines("[package]\n", text).is_empty());
    }
}
