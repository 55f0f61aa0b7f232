//! Pages call states what core calls them.
//!
//! The runbook surface has words of its own for them. A page that says `executing` where the rest of the program says
//! `running` sends its reader looking for something that does not exist.

use std::collections::BTreeSet;

use crate::tree::{has_extension, line_at};
use crate::{Finding, Tree};

/// Core's own names: the texts of its `names!`.
const STATES_FILE: &str = "crates/core/src/state.rs";
/// What the runbook surface calls them.
const RUNBOOK_WORDS_FILE: &str = "crates/server/src/routes/executions/words.rs";
/// Pages that set the vocabularies side by side, or describe that surface.
const SIDE_BY_SIDE: &[&str] = &["docs/reference/states.md", "docs/reference/schema.md", "docs/reference/executions.md"];

#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let ours = words(tree.get(STATES_FILE).unwrap_or_default(), |before| before.trim_end().ends_with('='));
    let theirs = words(tree.get(RUNBOOK_WORDS_FILE).unwrap_or_default(), |before| before.trim_end().ends_with("=>"));
    let mut findings = Vec::new();
    let pages = tree.iter().filter(|(path, _)| has_extension(path, &["md"]) && !SIDE_BY_SIDE.contains(path));
    for (path, text) in pages {
        for (offset, word) in code_spans(text) {
            let value = word.strip_prefix("state=").or_else(|| word.strip_prefix("state: ")).unwrap_or(word);
            let foreign = theirs.contains(value) && !ours.contains(value);
            let unknown = value != word && is_name(value) && !ours.contains(value);
            if foreign || unknown {
                findings.push(Finding {
                    path: path.to_owned(),
                    line: line_at(text, offset),
                    what: format!("`{value}` is no state here"),
                    instead: format!("the word in {STATES_FILE}; {} has the table", SIDE_BY_SIDE[0]),
                });
            }
        }
    }
    findings
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

/// The string literals of a file that follow what `after` accepts on their line and look like names.
fn words(text: &str, after: impl Fn(&str) -> bool) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for line in text.lines() {
        let parts: Vec<&str> = line.split('"').collect();
        for (index, word) in parts.iter().enumerate().skip(1).step_by(2) {
            let name = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
            if name && after(parts[index - 1]) {
                found.insert(*word);
            }
        }
    }
    found
}

/// What stands between single backticks, with where it begins.
fn code_spans(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut offset = 0;
    text.split('`').enumerate().filter_map(move |(index, part)| {
        let begins = offset;
        offset += part.len() + 1;
        (index % 2 == 1 && !part.contains('\n')).then_some((begins, part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORE: &[(&str, &str)] = &[
        (STATES_FILE, "RunState, \"run state\", {\n    Running = \"running\",\n    Succeeded = \"succeeded\",\n}"),
        (RUNBOOK_WORDS_FILE, "(RunState::Running, _) => \"executing\",\nStepState::Running => \"running\","),
    ];

    fn count(page: &str, text: &str) -> usize {
        check(&Tree::planted(&[CORE, &[(page, text)]].concat())).len()
    }

    #[test]
    fn a_runbook_word_is_found_and_ours_is_not() {
        assert_eq!(count("docs/guide/runs.md", "it is `executing`, then `running`"), 1);
        assert_eq!(count("docs/reference/states.md", "`executing`"), 0, "the table itself");
        assert_eq!(count("docs/guide/runs.md", "executing what was asked"), 0, "prose is prose");
    }

    #[test]
    fn a_value_of_state_is_one_of_ours() {
        assert_eq!(count("README.md", "`state=succeeded`, `state: running`"), 0);
        assert_eq!(count("README.md", "`state=suceeded`"), 1);
        assert_eq!(count("README.md", "`state=…`"), 0);
    }
}
