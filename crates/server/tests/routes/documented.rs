//! `docs/reference/errors.md` lists every code, and no others. That each is met is for `codes`; a code of another page
//! names the test that meets it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where codes are made. The rest of core knows other words in capitals: the names that other systems give our states.
const MAKERS: &[&str] = &["core/src/decide", "engine/src", "protocol/src", "server/src", "worker/src"];
/// Codes that the engine keeps to itself: no answer shows them, and a step that succeeded shows no error.
const INTERNAL: &[&str] = &["OUT_DIR", "RESOLVED_HAPPENED", "RUN_NOT_CLAIMABLE"];
/// Codes that a page of their own lists: the page, and of each code the test that brings it about.
const ELSEWHERE: &[(&str, &[(&str, &str)])] = &[
    (
        "docs/guide/connectors.md",
        &[
            (
                "CONNECTOR_INPUT_INVALID",
                "worker/tests/worker/connectors.rs::what_the_connector_does_not_take_is_never_sent",
            ),
            (
                "NOT_REVERSIBLE",
                "worker/tests/worker/connectors.rs::what_never_told_its_output_is_looked_for_before_it_is_undone",
            ),
            ("ROLLBACK_UNVERIFIED", "worker/tests/worker/connectors.rs::what_a_rollback_has_done_is_read_back"),
        ],
    ),
    (
        "docs/guide/commands.md",
        &[
            ("COMMAND_DATA_ERROR", COMMAND_ENDS),
            (
                "COMMAND_FAILED",
                "cli/tests/commands/sandboxed.rs::a_command_that_fails_is_not_repeated_and_what_it_did_is_undone_by_another",
            ),
            ("COMMAND_INVALID", "workflow/src/bind.rs::what_is_no_command_fails_the_step_before_it_is_handed_out"),
            ("COMMAND_KILLED", COMMAND_ENDS),
            (
                "COMMAND_NOT_PERMITTED",
                "cli/tests/commands/sandboxed.rs::a_command_that_a_workers_own_list_does_not_have_is_refused_there",
            ),
            ("COMMAND_NOT_STARTED", COMMAND_ENDS),
            ("COMMAND_STOPPED", COMMAND_ENDS),
            ("COMMAND_TEMPFAIL", COMMAND_ENDS),
            ("COMMAND_TIMEOUT", COMMAND_ENDS),
            ("SANDBOX_NOT_ATTESTED", NOT_STARTED),
            ("SANDBOX_NOT_SET_UP", NOT_STARTED),
            ("SANDBOX_REFUSED", NOT_STARTED),
            ("WORKDIR_FULL", COMMAND_ENDS),
            ("WORKDIR_GONE", DIRECTORIES),
            ("WORKDIR_UNREADABLE", DIRECTORIES),
        ],
    ),
    ("docs/guide/credentials.md", &[("CREDENTIAL_NOT_LOCKED", NOT_STARTED)]),
    // An answer to a call over the broker, and to nothing else.
    (
        "docs/guide/workers.md",
        &[(
            "ANSWER_TOO_LONG",
            "server/tests/routes/broker/messages.rs::an_answer_that_is_too_long_is_asked_for_by_a_request",
        )],
    ),
];
const COMMAND_ENDS: &str = "cli/tests/commands/sandboxed.rs::a_command_tells_by_a_code_how_it_ended";
const NOT_STARTED: &str =
    "worker/src/executors/command.rs::a_command_that_was_not_started_says_why_and_has_certainly_not_happened";
const DIRECTORIES: &str =
    "worker/src/executors/command.rs::a_directory_that_is_gone_full_or_unreadable_is_given_to_no_command";
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

/// The text of one test: from its name to the next test.
fn test_text(root: &Path, test: &str) -> String {
    let (file, name) = test.split_once("::").unwrap();
    let text = std::fs::read_to_string(root.join("crates").join(file)).unwrap();
    let (_, rest) = text.split_once(&format!("fn {name}(")).unwrap_or_else(|| panic!("there is no test {test}"));
    let end = ["#[test]", "#[tokio::test"].iter().filter_map(|mark| rest.find(mark)).min();
    rest[..end.unwrap_or(rest.len())].to_owned()
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
        for (code, test) in *codes {
            assert!(used.remove(*code) && text.contains(&format!("`{code}`")), "{code} in {path}");
            let shown = test_text(&root, test).contains(&format!("\"{code}\""));
            assert!(shown, "{test} is to bring {code} about, and does not name it");
        }
    }
    let page = std::fs::read_to_string(root.join("docs/reference/errors.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let listed: BTreeSet<String> = rows.filter_map(|row| row.split('`').next()).map(str::to_owned).collect();
    let missing: Vec<_> = used.difference(&listed).collect();
    let superfluous: Vec<_> = listed.difference(&used).collect();
    assert!(missing.is_empty() && superfluous.is_empty(), "not listed: {missing:?}; not in the code: {superfluous:?}");
}
