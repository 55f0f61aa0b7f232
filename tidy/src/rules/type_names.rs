//! One type, one name in a crate: a reader of `Place` knows which one is meant without looking at the imports.

use std::collections::BTreeMap;

use crate::rust_file::RustFile;
use crate::{Finding, Tree};

const KEYWORDS: &[&str] = &["struct", "enum", "union", "trait", "type"];

#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut named: BTreeMap<(String, String), Vec<(String, usize)>> = BTreeMap::new();
    for file in tree.rust_files() {
        let Some(source) = crate_of(file.path) else { continue };
        for (name, offset) in declared(&file) {
            let place = (file.path.to_owned(), file.line(offset));
            named.entry((source.to_owned(), name)).or_default().push(place);
        }
    }
    let twice = named.into_iter().filter(|(_, places)| places.len() > 1);
    twice.flat_map(|((_, name), places)| repeated(&name, &places)).collect()
}

/// Every place but the first.
fn repeated(name: &str, places: &[(String, usize)]) -> Vec<Finding> {
    let (first, line) = &places[0];
    let finding = |(path, at): &(String, usize)| Finding {
        path: path.clone(),
        line: *at,
        what: format!("`{name}` is a type of this crate already, in {first}:{line}"),
        instead: "give each the name of what it holds".to_owned(),
    };
    places.iter().skip(1).map(finding).collect()
}

/// The folder of the crate whose source the file is; none of tests.
fn crate_of(path: &str) -> Option<&str> {
    let (source, within) = path.split_once("/src/")?;
    let is_test =
        within == "tests.rs" || within.ends_with("/tests.rs") || within.split('/').any(|part| part == "tests");
    (!is_test).then_some(source)
}

/// The types that a file declares, outside tests. An indented `type` belongs to a trait or an implementation.
fn declared<'a>(file: &'a RustFile<'_>) -> impl Iterator<Item = (String, usize)> + 'a {
    KEYWORDS.iter().flat_map(move |keyword| {
        file.words(keyword).filter(move |offset| !file.is_test(*offset)).filter_map(move |offset| {
            let begun = file.code[..offset].rfind('\n').map_or(0, |end| end + 1);
            let is_item = file.code[begun..offset].split_whitespace().all(|word| {
                word == "pub" || word.starts_with("pub(") || word == "in" || word.ends_with(')') || word == "unsafe"
            });
            let is_associated = *keyword == "type" && file.code[begun..].starts_with(' ');
            let rest = file.code[offset + keyword.len()..].trim_start();
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            (is_item && !is_associated && !name.is_empty()).then_some((name, offset))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(files: &[(&str, &str)]) -> usize {
        check(&Tree::planted(files)).len()
    }

    #[test]
    fn a_name_stands_once_in_a_crate() {
        let place = "pub(crate) struct Place;";
        assert_eq!(count(&[("crates/cli/src/a.rs", place), ("crates/cli/src/b/mod.rs", "enum Place {}")]), 1);
        assert_eq!(count(&[("crates/cli/src/a.rs", "type Place = u8;\nfn f() {\n    struct Place;\n}")]), 1);
        assert_eq!(count(&[("crates/cli/src/a.rs", place), ("crates/server/src/a.rs", place)]), 0, "two crates");
    }

    #[test]
    fn tests_and_associated_types_do_not_count() {
        let tests = "struct Place;\n#[cfg(test)]\nmod tests {\n    struct Place;\n}\n";
        assert_eq!(count(&[("crates/cli/src/a.rs", tests), ("crates/cli/src/tests.rs", "struct Place;")]), 0);
        let associated = "trait One {\n    type Place;\n}\nimpl One for u8 {\n    type Place = u8;\n}\nstruct Place;\n";
        assert_eq!(count(&[("crates/cli/src/a.rs", associated)]), 0);
        assert_eq!(
            count(&[("crates/cli/src/a.rs", "struct Place; // struct Place\nconst S: &str = \"struct Place\";")]),
            0
        );
    }
}
