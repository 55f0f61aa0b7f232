//! `docs/reference/errors.md` lists every code, and no others. That each is met is for `codes`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where codes are made. The rest of core knows other words in capitals: the names that other systems give our states.
const MAKERS: &[&str] = &["core/src/decide", "engine/src", "protocol/src", "server/src", "worker/src"];
/// Codes that the engine keeps to itself: no answer shows them, and a step that succeeded shows no error.
const INTERNAL: &[&str] = &["OUT_DIR", "RESOLVED_HAPPENED", "RUN_NOT_CLAIMABLE"];
/// Codes that a page of their own lists.
const ELSEWHERE: &[(&str, &[&str])] = &[
    ("docs/guide/connectors.md", &["CONNECTOR_INPUT_INVALID", "NOT_REVERSIBLE", "ROLLBACK_UNVERIFIED"]),
    (
        "docs/guide/commands.md",
        &[
            "COMMAND_DATA_ERROR",
            "COMMAND_FAILED",
            "COMMAND_INVALID",
            "COMMAND_KILLED",
            "COMMAND_NOT_PERMITTED",
            "COMMAND_NOT_STARTED",
            "COMMAND_STOPPED",
            "COMMAND_TEMPFAIL",
            "COMMAND_TIMEOUT",
            "SANDBOX_NOT_ATTESTED",
            "SANDBOX_NOT_SET_UP",
            "SANDBOX_REFUSED",
            "WORKDIR_FULL",
            "WORKDIR_GONE",
            "WORKDIR_UNREADABLE",
        ],
    ),
    ("docs/guide/credentials.md", &["CREDENTIAL_NOT_LOCKED"]),
    // An answer to a call over the broker, and to nothing else.
    ("docs/guide/workers.md", &["ANSWER_TOO_LONG"]),
];
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
    let mut files =
        ["rejection", "plan/retry", "work/fault"].map(|file| root.join(format!("crates/core/src/{file}.rs"))).to_vec();
    for folder in MAKERS {
        sources(&root.join("crates").join(folder), &mut files);
    }
    let mut used: BTreeSet<String> = ONE_WORD.iter().map(|word| (*word).to_owned()).collect();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        used.extend(quoted(&text).filter(|word| is_code(word)).map(str::to_owned));
    }
    used.retain(|code| !INTERNAL.contains(&code.as_str()));
    for (path, codes) in ELSEWHERE {
        let text = std::fs::read_to_string(root.join(path)).unwrap();
        for code in *codes {
            assert!(used.remove(*code) && text.contains(&format!("`{code}`")), "{code} in {path}");
        }
    }
    let page = std::fs::read_to_string(root.join("docs/reference/errors.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let listed: BTreeSet<String> = rows.filter_map(|row| row.split('`').next()).map(str::to_owned).collect();
    let missing: Vec<_> = used.difference(&listed).collect();
    let superfluous: Vec<_> = listed.difference(&used).collect();
    assert!(missing.is_empty() && superfluous.is_empty(), "not listed: {missing:?}; not in the code: {superfluous:?}");
}
