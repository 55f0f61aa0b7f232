//! Dependencies point downhill.
//!
//! `cli → server → engine → store → core`; `cli → worker → protocol → core`; `server → protocol`;
//! `engine → policy → core`; `engine, worker → connectors → core`; `engine, worker, connectors → credentials → core`;
//! `engine, server → workflow → connectors (what they declare), core`; what calls the outside → `outbound`;
//! `worker → sandbox → outbound`; `policy, sandbox → argv`; `engine, store → boxed`; `server, worker → broker`. What a test depends on
//! is its own business.

use serde_json::Value;

use crate::{Finding, Tree};

const PREFIX: &str = "interlock-";

enum May {
    Use(&'static [&'static str]),
    UseEverything,
}

const CRATES: &[(&str, May)] = &[
    ("argv", May::Use(&[])),
    ("boxed", May::Use(&[])),
    ("core", May::Use(&[])),
    ("store", May::Use(&["boxed", "core"])),
    ("evidence", May::Use(&["core"])),
    ("policy", May::Use(&["argv", "core"])),
    ("pki", May::Use(&["core"])),
    ("credentials", May::Use(&["core", "outbound"])),
    ("connectors", May::Use(&["core", "credentials", "outbound"])),
    ("protocol", May::Use(&["core"])),
    ("broker", May::Use(&[])),
    ("outbound", May::Use(&[])),
    ("sandbox", May::Use(&["argv", "outbound"])),
    ("workflow", May::Use(&["core", "connectors"])),
    (
        "engine",
        May::Use(&[
            "boxed",
            "store",
            "workflow",
            "core",
            "evidence",
            "policy",
            "connectors",
            "credentials",
            "outbound",
        ]),
    ),
    ("server", May::Use(&["engine", "protocol", "broker", "store", "workflow", "core", "evidence", "outbound", "pki"])),
    (
        "worker",
        // Not the policy: the server judges (docs/decisions/0059-policy-is-judged-by-the-server.md).
        May::Use(&["protocol", "broker", "core", "connectors", "credentials", "outbound", "pki", "sandbox"]),
    ),
    ("cli", May::UseEverything),
    ("engine-tests", May::Use(&[])),
    ("store-tests", May::Use(&[])),
    ("sim", May::UseEverything),
    ("tidy", May::UseEverything),
];

/// Crates of others that would break what a crate of the workspace promises.
const KEPT_OUT: &[(&str, &[&str])] = &[
    ("core", &["axum", "fastrand", "getrandom", "hyper", "rand", "reqwest", "rusqlite", "tokio", "tokio-postgres"]),
    ("policy", &["axum", "fastrand", "getrandom", "hyper", "rand", "reqwest", "rusqlite", "tokio", "tokio-postgres"]),
    ("evidence", &["axum", "fastrand", "getrandom", "hyper", "rand", "reqwest", "rusqlite", "tokio", "tokio-postgres"]),
    ("credentials", &["axum", "hyper", "reqwest", "rusqlite", "tokio-postgres"]),
    ("protocol", &["axum", "rusqlite", "tokio-postgres"]),
    ("engine", &["axum", "rusqlite", "tokio-postgres"]),
    ("server", &["rusqlite", "tokio-postgres"]),
    ("worker", &["rusqlite", "tokio-postgres"]),
    ("sandbox", &["axum", "rusqlite", "tokio-postgres"]),
];

/// Checks the answer of `cargo metadata`, which has read the manifests.
#[must_use]
pub fn check(tree: &Tree, metadata: &Value) -> Vec<Finding> {
    let root = metadata["workspace_root"].as_str().unwrap_or_default();
    let mut findings = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        // A package that comes from elsewhere has a source.
        if !package["source"].is_null() {
            continue;
        }
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let manifest = manifest.trim_start_matches(root).trim_start_matches('/');
        let name = package["name"].as_str().unwrap_or_default();
        let at = |dependency: &str, what: String, instead: &str| Finding {
            path: manifest.to_owned(),
            line: line_of(tree.get(manifest).unwrap_or_default(), dependency),
            what,
            instead: instead.to_owned(),
        };
        let entry = name.strip_prefix(PREFIX).and_then(|short| CRATES.iter().find(|(ours, _)| *ours == short));
        let Some((short, may)) = entry else {
            findings.push(at(
                "name",
                format!("the crate `{name}` has no place in the order"),
                "name it interlock-…, and give it a line in tidy/src/rules/direction.rs",
            ));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            if dependency["kind"] == "dev" {
                continue;
            }
            let used = dependency["name"].as_str().unwrap_or_default();
            let uphill = used.strip_prefix(PREFIX).filter(|used| matches!(may, May::Use(list) if !list.contains(used)));
            let kept_out = KEPT_OUT.iter().any(|(ours, out)| ours == short && out.contains(&used));
            if let Some(uphill) = uphill {
                findings.push(at(
                    used,
                    format!("`{short}` must not depend on `{uphill}`"),
                    "move the code downhill, or pass in what is needed as a value or a trait",
                ));
            } else if kept_out {
                findings.push(at(
                    used,
                    format!("`{short}` promises to do without `{used}`"),
                    "do this in the crate whose work it is (ARCHITECTURE.md)",
                ));
            }
        }
    }
    findings
}

/// The first line that starts with this key.
fn line_of(manifest: &str, key: &str) -> usize {
    let starts = |line: &str| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(['.', ' ', '=']));
    manifest.lines().position(starts).map_or(1, |line| line + 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check_package(name: &str, dependencies: &Value) -> Vec<Finding> {
        let manifest = "[dependencies]\ninterlock-core.workspace = true\ninterlock-engine = \"1\"\n";
        let tree = Tree::planted(&[("crates/a/Cargo.toml", manifest)]);
        let metadata = json!({
            "workspace_root": "/repo",
            "packages": [{
                "name": name,
                "source": null,
                "manifest_path": "/repo/crates/a/Cargo.toml",
                "dependencies": dependencies,
            }],
        });
        check(&tree, &metadata)
    }

    #[test]
    fn uphill_is_found_with_its_line() {
        let dependencies = json!([
            { "name": "interlock-core", "kind": null },
            { "name": "interlock-engine", "kind": null },
        ]);
        let found = check_package("interlock-store", &dependencies);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].line), ("crates/a/Cargo.toml", 3));
        assert_eq!(check_package("interlock-core", &dependencies).len(), 2);
    }

    #[test]
    fn downhill_the_binary_and_tests_pass() {
        let engine = json!([{ "name": "interlock-engine", "kind": null }]);
        let engine_in_tests = json!([{ "name": "interlock-engine", "kind": "dev" }]);
        assert_eq!(check_package("interlock-server", &engine), []);
        assert_eq!(check_package("interlock-cli", &engine), []);
        assert_eq!(check_package("interlock-store", &engine_in_tests), []);
    }

    #[test]
    fn a_build_script_counts_and_a_stranger_needs_a_place() {
        let build = json!([{ "name": "interlock-engine", "kind": "build" }]);
        assert_eq!(check_package("interlock-store", &build).len(), 1);
        assert_eq!(check_package("interlock-extras", &json!([])).len(), 1);
    }

    #[test]
    fn core_does_without_a_runtime() {
        let tokio = json!([{ "name": "tokio", "kind": null }]);
        assert_eq!(check_package("interlock-core", &tokio).len(), 1);
        assert_eq!(check_package("interlock-store", &tokio), []);
    }
}
