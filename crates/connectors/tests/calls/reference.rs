//! The pages on connectors are current.

use std::path::{Path, PathBuf};

/// Names of secrets look like codes.
const SECRETS: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "GITHUB_TOKEN",
    "OPENAI_API_KEY",
    "PAGERDUTY_ROUTING_KEY",
    "SERVICENOW_PASSWORD",
    "SLACK_TOKEN",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn the_guide_lists_every_code_that_a_call_can_fail_with() {
    let guide = include_str!("../../../../docs/guide/connectors.md");
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let capitals = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_uppercase());
    let mut known = 0;
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        for word in product.lines().flat_map(|line| line.split('"').skip(1).step_by(2)) {
            if word.contains('_') && word.split('_').all(capitals) && !SECRETS.contains(&word) {
                assert!(guide.contains(&format!("`{word}`")), "{word} is not in the guide");
                known += 1;
            }
        }
    }
    assert!(known > 20, "there are codes");
}

/// `UPDATE_REFERENCE=1` writes the page anew.
#[test]
fn the_reference_page_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/connectors.md");
    let page = interlock_connectors::page::page();
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/reference/connectors.md is not current: UPDATE_REFERENCE=1 writes it anew");
}
