//! A link in a page leads somewhere.

use crate::markdown::Markdown;
use crate::tree::{has_extension, line_at};
use crate::{Finding, Tree};

#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.iter().filter(|(path, _)| has_extension(path, &["md"])) {
        for link in Markdown::new(text).links() {
            if let Err(what) = resolve(tree, path, &link.target) {
                findings.push(Finding {
                    path: path.to_owned(),
                    line: line_at(text, link.offset),
                    what,
                    instead: "a path relative to this page, to something that exists".to_owned(),
                });
            }
        }
    }
    findings
}

fn resolve(tree: &Tree, page: &str, target: &str) -> Result<(), String> {
    if is_elsewhere(target) {
        return Ok(());
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() {
        page.to_owned()
    } else {
        join(page, file).ok_or_else(|| format!("`{target}` leads out of the repository"))?
    };
    if !tree.contains(&path) {
        return Err(format!("`{target}` leads to nothing"));
    }
    let is_page = has_extension(&path, &["md"]);
    let anchored = tree.get(&path).filter(|_| is_page && !anchor.is_empty());
    match anchored {
        Some(text) if !Markdown::new(text).anchors().contains(&anchor.to_owned()) => {
            Err(format!("{path} has no heading `#{anchor}`"))
        }
        _ => Ok(()),
    }
}

/// Does the target name a scheme or a host, which no test reaches?
fn is_elsewhere(target: &str) -> bool {
    let scheme = target.split(['/', '#', '?']).next().unwrap_or_default();
    scheme.contains(':') || target.starts_with("//")
}

/// The target's path from the root; none where it would leave the repository.
fn join(page: &str, file: &str) -> Option<String> {
    let mut parts: Vec<&str> = match file.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => page.split('/').rev().skip(1).collect(),
    };
    parts.reverse();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let tree =
            Tree::planted(&[("docs/guide/start.md", text), ("docs/reference/api.md", "# Runs\n"), ("README.md", "")]);
        check(&tree).into_iter().map(|found| found.what).collect()
    }

    #[test]
    fn what_exists_passes() {
        let text = "[a](../reference/api.md#runs) [b](../../README.md) [c](/docs) [d](#e)\n# e\n\
                    [f](https://example.com/x) [g](mailto:a@example.com)";
        assert_eq!(found(text), Vec::<String>::new());
    }

    #[test]
    fn what_does_not_exist_is_found() {
        assert_eq!(found("[a](api.md)"), ["`api.md` leads to nothing"]);
        assert_eq!(found("[a](../../../x)"), ["`../../../x` leads out of the repository"]);
        assert_eq!(found("[a](../reference/api.md#steps)"), ["docs/reference/api.md has no heading `#steps`"]);
        assert_eq!(found("[a](#nowhere)").len(), 1);
    }
}
