//! Every `make` command in a page works.

use std::collections::BTreeSet;

use crate::markdown::Markdown;
use crate::tree::{has_extension, line_at};
use crate::{Finding, Tree};

const SHELLS: &[&str] = &["", "sh", "bash", "shell", "console"];

#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let targets = targets(tree.get("Makefile").unwrap_or_default());
    let mut findings = Vec::new();
    for (path, text) in tree.iter().filter(|(path, _)| has_extension(path, &["md"])) {
        for code in Markdown::new(text).code {
            if !SHELLS.contains(&code.language) {
                continue;
            }
            for name in named_targets(code.text) {
                if !targets.contains(name) {
                    findings.push(Finding {
                        path: path.to_owned(),
                        line: line_at(text, code.offset),
                        what: format!("`make {name}` does not exist"),
                        instead: format!("one of the Makefile's: {}", list(&targets)),
                    });
                }
            }
        }
    }
    findings
}

fn targets(makefile: &str) -> BTreeSet<&str> {
    makefile
        .lines()
        .filter(|line| !line.starts_with(['\t', '#', '.', ' ']))
        .filter_map(|line| line.split_once(':'))
        .filter(|(_, rest)| !rest.starts_with('='))
        .flat_map(|(names, _)| names.split_whitespace())
        .collect()
}

/// The targets in a line of shell: of `a && make b C=d  # e` it is `b`.
fn named_targets(line: &str) -> impl Iterator<Item = &str> {
    let command = line.split(" #").next().unwrap_or_default();
    command.split(['&', ';', '|']).flat_map(|part| {
        let mut words = part.split_whitespace().filter(|word| *word != "$" && !word.contains('='));
        let is_make = words.next() == Some("make");
        words.filter(move |word| is_make && !word.starts_with('-'))
    })
}

fn list(targets: &BTreeSet<&str>) -> String {
    targets.iter().copied().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        let makefile = "A := b\n.PHONY: run\nrun: release ## Start\n\tmake inner\nrelease:\n";
        check(&Tree::planted(&[("Makefile", makefile), ("README.md", text)])).len()
    }

    #[test]
    fn a_target_that_does_not_exist_is_found() {
        assert_eq!(count("Call `make start`."), 1);
        assert_eq!(count("```sh\n$ cd x && make start ARGS=y # make more\n```"), 1);
    }

    #[test]
    fn targets_that_exist_and_prose_pass() {
        assert_eq!(count("`make run ARGS=y` and make sure; `make`; `A=b make release`"), 0);
        assert_eq!(count("```yaml\nmake: start\n```"), 0);
        assert_eq!(count("```yaml\nmake start\n```"), 0);
    }
}
