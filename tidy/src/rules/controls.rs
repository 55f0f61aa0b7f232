//! The page of controls claims nothing that no test shows.
//!
//! Every requirement on it names tests, or says "not covered" and why. A test that is named exists and runs, so a renamed
//! or removed one takes its claim with it.

use std::collections::BTreeSet;

use crate::test_names::TestNames;
use crate::{Finding, Tree};

pub const PAGE: &str = "docs/reference/controls.md";
/// The last column of a table of requirements.
const SHOWN_BY: &str = "shown by";
const NOT_COVERED: &str = "not covered:";
/// What a claim that tests show does not reach.
const LIMIT: &str = "limit:";

#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let page = tree.get(PAGE).unwrap_or_default();
    let names = TestNames::of(tree);
    let tables = tables(page);
    let mut findings = Vec::new();
    if tables.is_empty() {
        findings.push(finding(1, "no table of requirements", "a table whose last column is `shown by`"));
    }
    for table in &tables {
        let mut seen = BTreeSet::new();
        for row in &table.rows {
            if !seen.insert(row.number) {
                findings.push(finding(
                    row.line,
                    &format!("{} stands twice in its table", row.number),
                    "one row for each",
                ));
            }
            findings.extend(check_row(row, &names));
        }
        let covered = table.rows.iter().filter(|row| row.is_covered()).count();
        let sum = format!("Covered: {covered} of {}.", table.rows.len());
        if !table.before.contains(&sum) {
            findings.push(finding(table.line, "the section does not say how much is covered", &format!("\"{sum}\"")));
        }
    }
    findings
}

/// A table, with the text of its section above it.
struct Table<'a> {
    line: usize,
    before: &'a str,
    rows: Vec<Row<'a>>,
}

struct Row<'a> {
    line: usize,
    number: &'a str,
    /// The parts of the last cell: tests as code, sentences as prose.
    parts: Vec<&'a str>,
}

impl<'a> Row<'a> {
    fn tests(&self) -> impl Iterator<Item = &'a str> {
        self.parts.iter().filter_map(|part| as_test(part))
    }

    fn prose(&self) -> impl Iterator<Item = &'a str> {
        self.parts.iter().copied().filter(|part| as_test(part).is_none())
    }

    fn is_covered(&self) -> bool {
        !self.prose().any(|part| part.starts_with(NOT_COVERED))
    }
}

/// A part of a cell that is a test: code and nothing else.
fn as_test(part: &str) -> Option<&str> {
    part.strip_prefix('`')?.strip_suffix('`').filter(|name| !name.contains('`'))
}

fn check_row(row: &Row<'_>, names: &TestNames<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let unknown = row.tests().filter(|name| !names.contains(name));
    findings.extend(unknown.map(|name| {
        let what = format!("{}: there is no test `{name}`", row.number);
        finding(row.line, &what, "a test that exists and shows it, as nextest prints it; or \"not covered: \" and why")
    }));
    if row.is_covered() && row.tests().next().is_none() {
        let what = format!("{} has neither tests nor \"not covered\"", row.number);
        findings.push(finding(row.line, &what, "name the tests that show it, or write \"not covered: \" and why"));
    }
    let prose: Vec<&str> = row.prose().collect();
    let is_sentence = |part: &&str| {
        [NOT_COVERED, LIMIT].iter().any(|start| part.strip_prefix(start).is_some_and(|why| !why.trim().is_empty()))
    };
    if prose.len() > 1 || !prose.iter().all(is_sentence) {
        let what = format!("{}: {:?} is neither a test nor a sentence of its kind", row.number, prose.join(" "));
        let instead = "tests, each as code between `<br>`; and one sentence after \"not covered: \" or \"limit: \"";
        findings.push(finding(row.line, &what, instead));
    }
    findings
}

fn tables(page: &str) -> Vec<Table<'_>> {
    let mut tables: Vec<Table<'_>> = Vec::new();
    let (mut section, mut offset, mut is_open) = (0, 0, false);
    for (number, text) in (1..).zip(page.split_inclusive('\n')) {
        let cells = cells(text);
        if text.starts_with('#') {
            section = offset;
        }
        match (&cells[..], is_open) {
            ([.., SHOWN_BY], _) => {
                tables.push(Table { line: number, before: &page[section..offset], rows: Vec::new() });
                is_open = true;
            }
            ([first, .., last], true) if !first.starts_with("---") => {
                let parts = last.split("<br>").map(str::trim).filter(|part| !part.is_empty()).collect();
                if let Some(table) = tables.last_mut() {
                    table.rows.push(Row { line: number, number: first, parts });
                }
            }
            ([], _) => is_open = false,
            _ => {}
        }
        offset += text.len();
    }
    tables
}

/// The cells of a table's row; none where the line is no row.
fn cells(line: &str) -> Vec<&str> {
    let row = line.trim().strip_prefix('|').and_then(|row| row.strip_suffix('|'));
    row.map(|row| row.split('|').map(str::trim).collect()).unwrap_or_default()
}

fn finding(line: usize, what: &str, instead: &str) -> Finding {
    Finding { path: PAGE.to_owned(), line, what: what.to_owned(), instead: instead.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRATE: &[(&str, &str)] = &[
        ("crates/core/Cargo.toml", "[package]\nname = \"interlock-core\"\n"),
        ("crates/core/src/lib.rs", "#[test]\nfn holds() {}\n"),
    ];

    fn found(covered: &str, rows: &str) -> Vec<String> {
        let page = format!(
            "# Controls\n\n## One\n\nCovered: {covered}.\n\n| number | requirement | shown by |\n|---|---|---|\n{rows}\n"
        );
        let findings = check(&Tree::planted(&[CRATE, &[(PAGE, &page)]].concat()));
        findings.into_iter().map(|finding| format!("{}: {}", finding.line, finding.what)).collect()
    }

    #[test]
    fn tests_that_exist_and_gaps_that_are_told_pass() {
        let rows = "| 1.1 | a | `interlock-core holds` |\n\
                    | 1.2 | b | not covered: nobody `wrote` it<br>`interlock-core holds` |\n\
                    | 1.3 | c | `interlock-core holds`<br>limit: on Mondays |\n";
        assert_eq!(found("2 of 3", rows), [""; 0]);
    }

    #[test]
    fn a_test_that_does_not_exist_is_found_at_its_row() {
        let rows = "| 1.1 | a | `interlock-core holds` |\n| 1.2 | b | `interlock-core held` |\n";
        assert_eq!(found("2 of 2", rows), ["10: 1.2: there is no test `interlock-core held`"]);
        let in_part = "| 1.1 | a | not covered: it is not<br>`interlock-core held` |\n";
        assert_eq!(found("0 of 1", in_part).len(), 1, "what shows a part of it exists too");
    }

    #[test]
    fn a_requirement_has_tests_or_a_gap_with_its_reason() {
        assert_eq!(found("1 of 1", "| 1.1 | a |  |\n"), ["9: 1.1 has neither tests nor \"not covered\""]);
        assert_eq!(found("1 of 1", "| 1.1 | a | limit: all of it |\n").len(), 1);
        assert_eq!(found("0 of 1", "| 1.1 | a | not covered: |\n").len(), 1, "no reason is given");
        assert_eq!(found("1 of 1", "| 1.1 | a | see `interlock-core holds` |\n").len(), 2, "prose proves nothing");
        let two = "| 1.1 | a | not covered: x<br>limit: y |\n";
        assert_eq!(found("0 of 1", two).len(), 1);
    }

    #[test]
    fn sums_are_right_and_numbers_stand_once() {
        let rows = "| 1.1 | a | not covered: x |\n";
        assert_eq!(found("1 of 1", rows).len(), 1);
        assert_eq!(found("0 of 2", &rows.repeat(2)), ["10: 1.1 stands twice in its table"]);
    }

    #[test]
    fn a_page_without_requirements_is_none() {
        assert_eq!(check(&Tree::planted(CRATE)).len(), 1);
    }
}
