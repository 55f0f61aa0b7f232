//! No file is longer than [`LINES_MAX`]: a longer one is too much to keep in mind, and is split. Half of all files
//! are no longer than [`MEDIAN_MAX`].

use crate::tree::has_extension;
use crate::{Finding, Tree};

pub const LINES_MAX: usize = 800;
pub const MEDIAN_MAX: usize = 200;

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

/// The length of the file in the middle.
#[must_use]
pub fn check_median(tree: &Tree) -> Vec<Finding> {
    let written = tree.iter().filter(|(path, text)| has_extension(path, WRITTEN_BY_HAND) && !is_generated(path, text));
    let mut files: Vec<(usize, &str)> = written.map(|(path, text)| (text.lines().count(), path)).collect();
    files.sort_unstable();
    let middle = files.get(files.len().saturating_sub(1) / 2);
    let too_long = middle.filter(|(lines, _)| *lines > MEDIAN_MAX).map(|(lines, path)| Finding {
        path: (*path).to_owned(),
        line: MEDIAN_MAX + 1,
        what: format!("half of the files have {lines} lines or more; {MEDIAN_MAX} is the most"),
        instead: "split the longest: one verb, one file".to_owned(),
    });
    too_long.into_iter().collect()
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
    fn a_long_file_in_the_middle_is_found() {
        let (long, short) = ("x\n".repeat(201), "x\n".repeat(200));
        let found = |middle: &str| {
            let files = [("a.rs", "x\n"), ("b.ts", middle), ("c.rs", long.as_str()), ("d.md", "x\n")];
            check_median(&Tree::planted(&files)).len()
        };
        assert_eq!((found(&short), found(&long)), (0, 1));
        assert!(check_median(&Tree::planted(&[])).is_empty());
    }

    #[test]
    fn generated_files_and_prose_may_be_long() {
        let long = "x\n".repeat(900);
        assert_eq!(count("console/src/generated/client.ts", &long), 0);
        assert_eq!(count("sdk/client.ts", &format!("// @generated\n{long}")), 0);
        assert_eq!(count("docs/reference/api.md", &long), 0);
    }
}
