//! A silenced lint says why, and speaks up when it is no longer needed.
//!
//! `expect` does both; `allow` does neither.

use crate::rust_file::RustFile;
use crate::{Finding, Tree};

/// The lints of a whole attribute, between `#[` and its `]`.
struct Attribute<'a> {
    offset: usize,
    text: &'a str,
}

#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust_files()
        .flat_map(|file| {
            attributes(&file)
                .filter_map(|attribute| {
                    let (what, instead) = verdict(&attribute)?;
                    Some(Finding {
                        path: file.path.to_owned(),
                        line: file.line(attribute.offset),
                        what: what.to_owned(),
                        instead: instead.to_owned(),
                    })
                })
                .collect::<Vec<_>>()
        })
        .collect()
}

fn verdict(attribute: &Attribute<'_>) -> Option<(&'static str, &'static str)> {
    let without_spaces: String = attribute.text.split_whitespace().collect();
    let silences_by = |level: &str| {
        without_spaces.starts_with(&format!("{level}("))
            || (without_spaces.starts_with("cfg_attr(") && without_spaces.contains(&format!(",{level}(")))
    };
    if silences_by("allow") {
        Some((
            "a lint is silenced without a reason and for ever",
            "#[expect(the_lint, reason = \"…\")], or mend what the lint found",
        ))
    } else if silences_by("expect") && !without_spaces.contains("reason=") {
        Some(("an expected lint has no reason", "#[expect(the_lint, reason = \"…\")]"))
    } else {
        None
    }
}

fn attributes<'a>(file: &'a RustFile<'_>) -> impl Iterator<Item = Attribute<'a>> {
    let openings = ["#[", "#!["];
    openings.into_iter().flat_map(move |opening| {
        file.code.match_indices(opening).map(move |(offset, _)| {
            let start = offset + opening.len();
            let mut depth = 1;
            let len = file.code[start..].find(|c| {
                depth += match c {
                    '[' => 1,
                    ']' => -1,
                    _ => 0,
                };
                depth == 0
            });
            let end = len.map_or(file.code.len(), |len| start + len);
            Attribute { offset, text: &file.code[start..end] }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let found = check(&Tree::planted(&[("crates/core/src/a.rs", text)]));
        found.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn allow_is_refused_in_every_form() {
        let word = "allow";
        let text =
            format!("fn a() {{}}\n#[{word}(dead_code)]\nfn b() {{}}\n#[cfg_attr(test, {word}(unused))]\nfn c() {{}}\n");
        assert_eq!(lines(&text), [2, 4]);
        assert_eq!(lines(&format!("#![{word}(unused)]")), [1]);
    }

    #[test]
    fn expect_needs_a_reason() {
        assert_eq!(lines("#[expect(dead_code)]\nfn a() {}"), [1]);
        assert!(lines("#[expect(\n    dead_code,\n    reason = \"wired by [#12]\"\n)]").is_empty());
    }

    #[test]
    fn a_function_of_that_name_and_a_comment_are_fine() {
        let comment = concat!("// #[", "allow(x)]\n");
        assert!(lines(&format!("{comment}fn a() {{ allow(1); v[allow(2)] }}")).is_empty());
    }
}
