//! `docs/reference/errors.md` lists every code, and no others.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where codes are made. The rest of core knows other words in capitals: the names that other systems give our states.
const MAKERS: &[&str] = &["core/src/decide", "engine/src", "protocol/src", "server/src", "worker/src"];
/// Codes of one word, which nothing tells from other words in capitals.
const ONE_WORD: &[&str] = &["OVERLOADED", "RELEASED", "UNAUTHORIZED"];

fn is_code(word: &str) -> bool {
    let parts: Vec<_> = word.split('_').collect();
    let capitals = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_uppercase());
    parts.len() > 1 && parts.iter().all(capitals) && !["INTERLOCK_", "CARGO_"].iter().any(|own| word.starts_with(own))
}

/// What stands between double quotes, line by line.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('"').skip(1).step_by(2))
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("tests") {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_code_is_listed_and_every_listed_code_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = ["rejection", "retry"].map(|file| root.join(format!("crates/core/src/{file}.rs"))).to_vec();
    for folder in MAKERS {
        sources(&root.join("crates").join(folder), &mut files);
    }
    let mut used: BTreeSet<String> = ONE_WORD.iter().map(|word| (*word).to_owned()).collect();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        used.extend(quoted(&text).filter(|word| is_code(word)).map(str::to_owned));
    }
    let page = std::fs::read_to_string(root.join("docs/reference/errors.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let listed: BTreeSet<String> = rows.filter_map(|row| row.split('`').next()).map(str::to_owned).collect();
    let missing: Vec<_> = used.difference(&listed).collect();
    let superfluous: Vec<_> = listed.difference(&used).collect();
    assert!(missing.is_empty() && superfluous.is_empty(), "not listed: {missing:?}; not in the code: {superfluous:?}");
}

/// The tests of a crate: its folders of tests, and what stands behind `#[cfg(test)]` in its sources.
fn tests_of(folder: &Path, within: bool, met: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let within = within || path.ends_with("tests") || path.ends_with("tests.rs");
        if path.is_dir() {
            tests_of(&path, within, met);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("documented.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let from = if within { Some(0) } else { text.find("#[cfg(test)]\nmod tests {") };
            met.push_str(from.map_or("", |from| &text[from..]));
        }
    }
}

#[test]
fn every_listed_code_is_met_by_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut tests = String::new();
    for entry in std::fs::read_dir(root.join("crates")).unwrap() {
        tests_of(&entry.unwrap().path(), false, &mut tests);
    }
    let met: BTreeSet<&str> = tests.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').collect();
    let page = std::fs::read_to_string(root.join("docs/reference/errors.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let listed: BTreeSet<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    let unmet: Vec<_> = listed.iter().filter(|code| !met.contains(**code)).copied().collect();
    assert!(unmet.is_empty(), "give each of these a test that meets it: {unmet:?}");
}
