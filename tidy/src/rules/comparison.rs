//! The comparison in the README claims nothing about Interlock that no test shows.
//!
//! Every numbered row of its table has an entry of the same number in the list below, which names tests that exist. A row
//! without a number makes no claim.

use crate::test_names::TestNames;
use crate::{Finding, Tree};

pub const PAGE: &str = "README.md";
const HEADING: &str = "## Beside others";

#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let page = tree.get(PAGE).unwrap_or_default();
    let names = TestNames::of(tree);
    let finding = |line: usize, what: String| Finding {
        path: PAGE.to_owned(),
        line,
        what,
        instead: "a numbered row, and below the table a numbered entry with the tests that show it".to_owned(),
    };
    let section = (1..)
        .zip(page.lines())
        .skip_while(|(_, line)| *line != HEADING)
        .skip(1)
        .take_while(|(_, line)| !line.starts_with("## "));
    let section: Vec<(usize, &str)> = section.collect();
    let rows: Vec<(usize, &str)> =
        section.iter().filter_map(|(line, text)| Some((*line, number_of_row(text)?))).collect();
    let entries: Vec<(usize, &str, &str)> = section
        .iter()
        .filter_map(|(line, text)| text.split_once(". ").map(|(number, rest)| (*line, number, rest)))
        .filter(|(_, number, _)| is_number(number))
        .collect();
    let mut findings = Vec::new();
    if rows.is_empty() {
        findings.push(finding(1, format!("`{HEADING}` has no table with numbered rows")));
    }
    for (line, number) in &rows {
        let tests = entries.iter().filter(|(_, entry, _)| entry == number).flat_map(|(_, _, rest)| tests(rest));
        if tests.count() == 0 {
            findings.push(finding(*line, format!("row {number} has no test")));
        }
    }
    for (line, number, rest) in entries {
        if !rows.iter().any(|(_, row)| *row == number) {
            findings.push(finding(line, format!("there is no row {number}")));
        }
        let unknown = tests(rest).filter(|name| !names.contains(name));
        findings.extend(unknown.map(|name| finding(line, format!("there is no test `{name}`"))));
    }
    findings
}

/// The number in the first cell.
fn number_of_row(line: &str) -> Option<&str> {
    let first = line.strip_prefix('|')?.split('|').next()?.trim();
    is_number(first).then_some(first)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// What stands as code.
fn tests(entry: &str) -> impl Iterator<Item = &str> {
    entry.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(section: &str) -> Vec<String> {
        let page = format!("# X\n\n{HEADING}\n\n{section}\n## Next\n\n9. other\n");
        let tree = Tree::planted(&[
            ("crates/core/Cargo.toml", "[package]\nname = \"interlock-core\"\n"),
            ("crates/core/src/lib.rs", "#[test]\nfn holds() {}\n"),
            (PAGE, &page),
        ]);
        check(&tree).into_iter().map(|finding| format!("{}: {}", finding.line, finding.what)).collect()
    }

    #[test]
    fn rows_with_tests_and_rows_without_claims_pass() {
        let section = "| | | us |\n|---|---|---|\n| 1 | a | yes |\n| | b | nobody |\n\n1. `interlock-core holds`\n";
        assert_eq!(found(section), [""; 0]);
    }

    #[test]
    fn claims_without_a_test_that_exists_are_found() {
        let rows = "| | | us |\n|---|---|---|\n| 1 | a | yes |\n\n";
        assert_eq!(found(rows), ["7: row 1 has no test"]);
        assert_eq!(found(&format!("{rows}1. `interlock-core held`\n")), ["9: there is no test `interlock-core held`"]);
        assert_eq!(found(&format!("{rows}1. `interlock-core holds`\n2. x\n")), ["10: there is no row 2"]);
        assert_eq!(found("").len(), 1, "a section that is gone is no comparison");
    }
}
