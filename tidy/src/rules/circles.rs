//! No circle between the folders of a crate: to read one folder, you need to know those that it uses, and not all.
//!
//! A folder is a module directly under `src/`. Files that stand there alone belong to the whole crate and are not counted with
//! the folders; they have no circle among themselves either. What `lib.rs` hands on under a name of its own counts as used where
//! it stands, and `super::super::b` as `crate::b`.

use std::collections::{BTreeMap, BTreeSet};

use crate::rust_file::RustFile;
use crate::{Finding, Tree};

const ROOT: &str = "crate::";
const PARENT: &str = "super::";

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
    let handed_on = handed_on(tree);
    for file in tree.rust_files() {
        let Some((source, within)) = file.path.split_once("/src/") else { continue };
        let Some(part) = part(source, within) else { continue };
        let uses = crates.entry(source.to_owned()).or_default().entry(part.to_owned()).or_default();
        let stands = |name: String| handed_on.get(source).and_then(|names| names.get(&name)).cloned().unwrap_or(name);
        let used = used(&file, depth(within)).map(|(name, offset)| (stands(name), offset));
        for (name, offset) in used.filter(|(name, offset)| name != part && !file.is_test(*offset)) {
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

/// By crate, the names that its `lib.rs` brings in, each with the module that it comes from.
fn handed_on(tree: &Tree) -> BTreeMap<String, BTreeMap<String, String>> {
    let libs = tree.rust_files().filter_map(|file| {
        let source = file.path.strip_suffix("/src/lib.rs")?.to_owned();
        let mut names = BTreeMap::new();
        for offset in file.words("use") {
            let text = &file.code[offset + "use".len()..];
            let text = text[..text.find(';').unwrap_or(text.len())].trim_start();
            let text = text.strip_prefix(ROOT).unwrap_or(text);
            let module = name_of(text);
            for leaf in text.split(['{', '}', ',']) {
                let name = leaf.rsplit("::").next().unwrap_or(leaf);
                let name = name_of(name.rsplit(" as ").next().unwrap_or(name));
                if !name.is_empty() && name != module {
                    names.insert(name, module.clone());
                }
            }
        }
        Some((source, names))
    });
    libs.collect()
}

/// How many modules a file stands below the root of its crate.
fn depth(within: &str) -> usize {
    let parts = within.split('/').count();
    let is_its_folder = within.ends_with("mod.rs") || matches!(within, "lib.rs" | "main.rs");
    parts - usize::from(is_its_folder)
}

/// The modules of the crate that a file names, also those within the braces of one `use`.
fn used<'a>(file: &'a RustFile<'_>, depth: usize) -> impl Iterator<Item = (String, usize)> + 'a {
    let upwards = PARENT.repeat(depth);
    let from_root = file.code.match_indices(ROOT).map(|(offset, root)| (offset, offset + root.len()));
    let chains = file.code.match_indices(PARENT).filter_map(move |(offset, _)| {
        let is_whole = depth > 0 && !file.code[..offset].ends_with(PARENT);
        (is_whole && file.code[offset..].starts_with(&upwards)).then_some((offset, offset + upwards.len()))
    });
    from_root.chain(chains).flat_map(|(offset, end)| {
        let rest = &file.code[end..];
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
    fn what_the_root_hands_on_and_what_is_named_from_below_are_uses_too() {
        let by_root = [
            ("crates/x/src/lib.rs", "mod a;\nmod b;\npub use a::deep::{A, B as C};\npub(crate) use b::B;"),
            ("crates/x/src/a/mod.rs", "use crate::b::B;"),
            ("crates/x/src/b/mod.rs", "use crate::{d, C};"),
        ];
        assert_eq!(found(&by_root).len(), 2);
        let from_below =
            [("crates/x/src/a/c.rs", "use super::super::b::B;"), ("crates/x/src/b/mod.rs", "use super::a::c;")];
        assert_eq!(found(&from_below).len(), 2);
        let siblings = [
            ("crates/x/src/a/b.rs", "use super::c::C;"),
            ("crates/x/src/c/mod.rs", "use crate::a;"),
            ("crates/x/src/a/c.rs", "use super::super::d::D;"),
        ];
        assert!(found(&siblings).is_empty(), "a neighbour in the folder is not the folder of that name");
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
