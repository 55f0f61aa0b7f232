//! Other people's crates: under a licence that a release may contain, and the big ones only once.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::licence::is_allowed;
use crate::{Finding, Tree};

/// Crates that are large, or whose types cross crate borders: two versions would not fit together.
const ONLY_ONCE: &[&str] = &[
    "axum",
    "h2",
    "http",
    "hyper",
    "jiff",
    "reqwest",
    "rusqlite",
    "rustls",
    "serde",
    "tokio",
    "tokio-postgres",
    "tokio-rustls",
    "tonic",
    "tracing",
    "uuid",
];

/// Checks the answer of `cargo metadata` for the whole graph.
#[must_use]
pub fn check(tree: &Tree, metadata: &Value) -> Vec<Finding> {
    let lock = tree.get("Cargo.lock").unwrap_or_default();
    let mut findings = Vec::new();
    let mut majors: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let version = package["version"].as_str().unwrap_or_default();
        let at = |what: String, instead: &str| Finding {
            path: "Cargo.lock".to_owned(),
            line: line_of(lock, name, version),
            what,
            instead: instead.to_owned(),
        };
        match package["license"].as_str() {
            Some(licence) if is_allowed(licence) => {}
            Some(licence) => findings.push(at(
                format!("{name} {version} is under `{licence}`"),
                "another crate; or, where the licence is permissive, a line in \
                 tidy/src/licence.rs",
            )),
            None => findings.push(at(
                format!("{name} {version} names no licence"),
                "another crate; one of ours says license.workspace = true",
            )),
        }
        if let Some(once) = ONLY_ONCE.iter().find(|once| **once == name) {
            let seen = majors.entry(once).or_default();
            seen.insert(major(version));
            if seen.len() > 1 {
                findings.push(at(
                    format!("{name} is here more than once: {seen:?}"),
                    "bring what asks for the older one up to date (cargo tree -i)",
                ));
            }
        }
    }
    findings
}

/// The part of a version that two compatible ones share: `1` of 1.2.3, `0.4` of 0.4.5.
fn major(version: &str) -> &str {
    let parts = if version.starts_with("0.") { 2 } else { 1 };
    let end = version.match_indices('.').nth(parts - 1);
    end.map_or(version, |(end, _)| &version[..end])
}

fn line_of(lock: &str, name: &str, version: &str) -> usize {
    let entry = format!("name = \"{name}\"\nversion = \"{version}\"");
    lock.find(&entry).map_or(1, |offset| crate::tree::line_at(lock, offset))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn count(packages: &Value) -> usize {
        check(&Tree::default(), &json!({ "packages": packages })).len()
    }

    #[test]
    fn a_licence_that_is_not_on_the_list_or_missing_is_found() {
        let package = |licence: Value| json!([{ "name": "a", "version": "1.0.0", "license": licence }]);
        assert_eq!(count(&package(json!("MIT OR GPL-3.0"))), 0);
        assert_eq!(count(&package(json!("GPL-3.0-only"))), 1);
        assert_eq!(count(&package(Value::Null)), 1);
    }

    #[test]
    fn two_majors_of_a_big_crate_are_found() {
        let packages = |name: &str, one: &str, two: &str| {
            json!([
                { "name": name, "version": one, "license": "MIT" },
                { "name": name, "version": two, "license": "MIT" },
            ])
        };
        assert_eq!(count(&packages("http", "0.2.12", "1.3.0")), 1);
        assert_eq!(count(&packages("axum", "0.7.9", "0.8.1")), 1);
        assert_eq!(count(&packages("http", "1.2.0", "1.3.0")), 0);
        assert_eq!(count(&packages("small", "1.0.0", "2.0.0")), 0);
    }

    #[test]
    fn the_finding_points_into_the_lock_file() {
        let lock = "[[package]]\nname = \"b\"\nversion = \"1.0.0\"\n";
        let tree = Tree::planted(&[("Cargo.lock", lock)]);
        let packages = json!([{ "name": "b", "version": "1.0.0", "license": "SSPL-1.0" }]);
        let found = check(&tree, &json!({ "packages": packages }));
        assert_eq!(found[0].line, 2);
    }
}
