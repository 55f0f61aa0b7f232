//! No file is longer than [`LINES_MAX`]: a longer one is too much to keep in mind, and is split.

use crate::tree::has_extension;
use crate::{Finding, Tree};

pub const LINES_MAX: usize = 800;

const WRITTEN_BY_HAND: &[&str] = &["rs", "sql", "ts", "tsx", "js", "mjs", "css", "html", "py", "rego", "sh"];

#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.iter()
        .filter(|(path, text)| has_extension(path, WRITTEN_BY_HAND) && !is_generated(path, text))
        .filter_map(|(path, text)| {
            let lines = text.lines().count();
            (lines > LINES_MAX).then(|| Finding {
                path: path.to_owned(),
                line: LINES_MAX + 1,
                what: format!("{lines} lines; {LINES_MAX} is the most"),
                instead: "split it: one verb, one file".to_owned(),
            })
        })
        .collect()
}

fn is_generated(path: &str, text: &str) -> bool {
    path.split('/').any(|part| part == "generated") || text.lines().take(5).any(|line| line.contains("@generated"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&Tree::planted(&[(path, text)])).len()
    }

    #[test]
    fn one_line_too_many_is_found() {
        assert_eq!(count("crates/core/src/a.rs", &"x\n".repeat(800)), 0);
        assert_eq!(count("crates/core/src/a.rs", &"x\n".repeat(801)), 1);
        assert_eq!(count("console/src/page.tsx", &"x\n".repeat(801)), 1);
    }

    #[test]
    fn generated_files_and_prose_may_be_long() {
        let long = "x\n".repeat(900);
        assert_eq!(count("console/src/generated/client.ts", &long), 0);
        assert_eq!(count("sdk/client.ts", &format!("// @generated\n{long}")), 0);
        assert_eq!(count("docs/reference/api.md", &long), 0);
    }
}
