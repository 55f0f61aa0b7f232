//! No circle between the folders of a crate: to read one folder, you need to know those that it uses, and not all.
//!
//! A folder is a module directly under `src/`. Files that stand there alone belong to the whole crate and are not counted with
//! the folders; they have no circle among themselves either.

use std::collections::{BTreeMap, BTreeSet};

use crate::rust_file::RustFile;
use crate::{Finding, Tree};

const ROOT: &str = "crate::";

/// Not held to it, file by file: every actor of a simulated world knows the world, and the world holds what they share.
const ONE_WORLD: &str = "sim";

/// The folders of one crate: what each uses, with the first place where it does.
type Uses = BTreeMap<String, BTreeMap<String, (String, usize)>>;

#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    circles_between(tree, |_, within| within.split_once('/').map(|(folder, _)| folder))
}

/// The same for the files that stand beside the folders.
#[must_use]
pub fn check_files(tree: &Tree) -> Vec<Finding> {
    circles_between(tree, |source, within| {
        let name = within.strip_suffix(".rs").filter(|_| source != ONE_WORLD)?;
        (!name.contains('/') && !matches!(name, "lib" | "main")).then_some(name)
    })
}

/// `part` names what a file belongs to, by its crate and its path within `src/`.
fn circles_between(tree: &Tree, part: impl for<'a> Fn(&str, &'a str) -> Option<&'a str>) -> Vec<Finding> {
    let mut crates: BTreeMap<String, Uses> = BTreeMap::new();
    for file in tree.rust_files() {
        let Some((source, within)) = file.path.split_once("/src/") else { continue };
        let Some(part) = part(source, within) else { continue };
        let uses = crates.entry(source.to_owned()).or_default().entry(part.to_owned()).or_default();
        for (name, offset) in used(&file).filter(|(name, offset)| name != part && !file.is_test(*offset)) {
            uses.entry(name).or_insert_with(|| (file.path.to_owned(), file.line(offset)));
        }
    }
    crates.values().flat_map(circles).collect()
}

/// Every use by which a folder comes back to itself.
fn circles(uses: &Uses) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (folder, used) in uses {
        let folders = used.iter().filter(|(name, _)| uses.contains_key(*name));
        for (other, (path, line)) in folders.filter(|(other, _)| leads_to(uses, other, folder)) {
            findings.push(Finding {
                path: path.clone(),
                line: *line,
                what: format!("`{folder}` uses `{other}`, which comes back to `{folder}`"),
                instead: "move what both need into a file of its own, or let the caller pass it in".to_owned(),
            });
        }
    }
    findings
}

fn leads_to(uses: &Uses, from: &str, to: &str) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(folder) = open.pop() {
        if folder == to {
            return true;
        }
        if seen.insert(folder) {
            open.extend(uses.get(folder).into_iter().flat_map(BTreeMap::keys).map(String::as_str));
        }
    }
    false
}

/// The modules of the crate that a file names, also those within the braces of one `use`.
fn used<'a>(file: &'a RustFile<'_>) -> impl Iterator<Item = (String, usize)> + 'a {
    file.code.match_indices(ROOT).flat_map(|(offset, _)| {
        let rest = &file.code[offset + ROOT.len()..];
        let names = match rest.strip_prefix('{') {
            Some(list) => in_braces(list),
            None => vec![name_of(rest)],
        };
        names.into_iter().map(move |name| (name, offset))
    })
}

/// The first names of a list such as `a, b::{c, d}}`, up to the brace that ends it.
fn in_braces(list: &str) -> Vec<String> {
    let (mut names, mut depth, mut begun) = (Vec::new(), 0_usize, 0);
    for (at, char) in list.char_indices() {
        match char {
            '{' => depth += 1,
            ',' if depth == 0 => {
                names.push(name_of(&list[begun..at]));
                begun = at + 1;
            }
            '}' if depth == 0 => {
                names.push(name_of(&list[begun..at]));
                break;
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    names
}

fn name_of(path: &str) -> String {
    path.trim_start().chars().take_while(|char| char.is_alphanumeric() || *char == '_').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::planted(files)).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn folders_that_use_each_other_are_found() {
        let two =
            [("crates/x/src/a/mod.rs", "use crate::b::B;"), ("crates/x/src/b/c.rs", "use crate::{d, a::{A, E}};")];
        assert_eq!(found(&two), ["`a` uses `b`, which comes back to `a`", "`b` uses `a`, which comes back to `b`"]);
        let three = [
            ("crates/x/src/a/mod.rs", "use crate::b::B;"),
            ("crates/x/src/b/mod.rs", "fn f() { crate::c::f(); }"),
            ("crates/x/src/c/mod.rs", "use crate::a;"),
        ];
        assert_eq!(found(&three).len(), 3);
    }

    #[test]
    fn one_way_is_no_circle_and_neither_are_tests_nor_files_of_the_crate() {
        let way = [("crates/x/src/a/mod.rs", "use crate::b::B;"), ("crates/x/src/b/mod.rs", "// use crate::a;")];
        assert!(found(&way).is_empty());
        let test = [
            ("crates/x/src/a/mod.rs", "use crate::b::B;"),
            ("crates/x/src/b/mod.rs", "#[cfg(test)]\nmod tests {\n    use crate::a;\n}"),
        ];
        assert!(found(&test).is_empty());
        let file = [("crates/x/src/a/mod.rs", "use crate::b::B;"), ("crates/x/src/b.rs", "use crate::a;")];
        assert!(found(&file).is_empty());
    }

    #[test]
    fn files_beside_the_folders_that_use_each_other_are_found() {
        let planted = |source: &str| {
            let of = |name: &str| format!("{source}/src/{name}.rs");
            let (a, b, lib) = (of("a"), of("b"), of("lib"));
            let uses_a = "use crate::a;";
            let files = [(a.as_str(), "use crate::b::B;"), (b.as_str(), uses_a), (lib.as_str(), uses_a)];
            check_files(&Tree::planted(&files)).len()
        };
        assert_eq!((planted("crates/server"), planted("tidy"), planted("sim")), (2, 2, 0));
        let folders = [("crates/store/src/a/mod.rs", "use crate::b::B;"), ("crates/store/src/b.rs", "use crate::a;")];
        assert!(check_files(&Tree::planted(&folders)).is_empty());
    }
}
