//! What a reader is sent to is in the repository.
//!
//! A comment that says "see the design, §3" sends its reader to a document that only its writer has, and so does a record
//! that calls it the design and says what it gives. The thing itself is said instead, or a page under `docs/` is linked.

use crate::rust_file::words;
use crate::tree::{has_extension, line_at};
use crate::{Finding, Tree};

/// Where sentences stand that people read.
const PROSE: &[&str] = &["rs", "sql", "md", "json", "yaml", "toml", "ts", "tsx", "js", "mjs", "py", "sh"];
/// A name of a document that is not here, put together so that this file does not name it.
const ABSENT: &[&str] = &[concat!("DE", "SIGN")];
/// What a sentence lets such a document do when it speaks of *the design*, as if it were one that everybody has.
const SPEAKS: &[&str] =
    &["allowed", "allows", "asks", "gave", "gives", "has", "had", "locked", "said", "says", "wants"];

#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.iter().filter(|(path, _)| has_extension(path, PROSE)) {
        let by_name = ABSENT.iter().flat_map(|name| words(text, name));
        for offset in by_name.chain(numbered(text)).chain(spoken(text)) {
            findings.push(Finding {
                path: path.to_owned(),
                line: line_at(text, offset),
                what: "refers to a document that is not in the repository".to_owned(),
                instead: "say the thing itself, or link a page under docs/".to_owned(),
            });
        }
    }
    findings
}

/// The offsets of documents that are cited by a number of three digits, which stands alone as a word: nothing else is
/// counted with two leading zeros. `000` is no document unless it owns something or has sections.
fn numbered(text: &str) -> impl Iterator<Item = usize> {
    text.match_indices("00").map(|(offset, _)| offset).filter(|&offset| {
        let before = text[..offset].chars().next_back();
        let rest = &text[offset + 2..];
        let Some(digit) = rest.chars().next().filter(char::is_ascii_digit) else { return false };
        let after = &rest[1..];
        let is_word = !after.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '\u{202f}'))
            && !after.strip_prefix('.').is_some_and(|rest| rest.starts_with(char::is_alphanumeric));
        let cited = after.starts_with("'s ") || after.starts_with(" §") || (is_word && digit != '0');
        cited
            && !before.is_some_and(|c| {
                c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ',' | '"' | '\'' | '/' | ':' | '+' | '\u{202f}')
            })
    })
}

/// The offsets of *the design* that owns or says something. Any other design is one that the text itself is about.
fn spoken(text: &str) -> impl Iterator<Item = usize> {
    text.match_indices("he design").filter_map(|(offset, found)| {
        let before = text[..offset].strip_suffix(['t', 'T'])?;
        let after = &text[offset + found.len()..];
        let owns = after.starts_with("'s ") || after.starts_with("\u{2019}s ");
        let says = after.strip_prefix([' ', '\n']).is_some_and(|after| {
            let word = after.split(|c: char| !c.is_alphanumeric()).next();
            word.is_some_and(|word| SPEAKS.contains(&word))
        });
        ((owns || says) && !before.ends_with(char::is_alphanumeric)).then_some(before.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        check(&Tree::planted(&[("crates/core/src/a.rs", text)])).len()
    }

    #[test]
    fn documents_that_are_not_here_are_found() {
        assert_eq!(count(concat!("// as DE", "SIGN §3 says")), 1);
        assert_eq!(count(concat!("/// 00", "7's word for it")), 1);
        assert_eq!(count(concat!("// see 00", "7 §4.1")), 1);
        assert_eq!(count(concat!("// the names of 00", "7.")), 1);
        assert_eq!(count(concat!("fn as_00", "7_says() {} // (00", "7)")), 1);
    }

    #[test]
    fn a_design_that_speaks_for_itself_is_found() {
        assert_eq!(count(concat!("// the des", "ign's letter")), 1);
        assert_eq!(count(concat!("// The des", "ign has receipts in parts.")), 1);
        assert_eq!(count(concat!("// as the des", "ign gives it")), 1);
        assert_eq!(count(concat!("// the des", "ign says so; the des", "ign locked a row")), 2);
        assert_eq!(count(concat!("as the des", "ign\nsays")), 1);
        assert_eq!(count("// The first design kept a counter; the design, once it is there; the designs said so"), 0);
        assert_eq!(count("// by design's grace; the cheapest design that still has it; the design of this page"), 0);
    }

    #[test]
    fn numbers_and_decision_records_are_fine() {
        assert_eq!(count("// 1,001 §, 0016 §1, 100's of runs, [0012](../decisions/0012-x.md)"), 0);
        assert_eq!(count("// `000` where none came, 1.001, at 10:00:007, \"003\", 001-first.sql"), 0);
        assert_eq!(count("// a DESIGNER, designs"), 0);
    }
}
