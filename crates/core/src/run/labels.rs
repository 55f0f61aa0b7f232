//! A run's labels: names and values by which people find it. Conditions, templates and policies read them too, so that they
//! are fixed while a run lives; those of a run that has ended may be changed.

use std::collections::BTreeMap;

use crate::json::NUL;
use crate::limits::{self, INPUT_LABELS, OWN_LABELS};
use crate::rejection::Rejection;

/// Labels as a run may have them, its own ones included.
pub fn check(labels: &BTreeMap<String, String>) -> Result<(), Rejection> {
    if labels.iter().any(|(name, value)| name.contains(NUL) || value.contains(NUL)) {
        return Err(Rejection::InvalidInput { what: "a label holds a NUL character (\\u0000)".into() });
    }
    if labels.len() > limits::LABELS_MAX {
        let what = format!("the run has {} labels, the limit is {}", labels.len(), limits::LABELS_MAX);
        return Err(Rejection::InvalidInput { what });
    }
    for (name, value) in labels {
        // What is taken from an input or a message is another system's text, and is kept as it came.
        let is_written = !name.starts_with(INPUT_LABELS) && !name.starts_with(OWN_LABELS);
        if name.contains(char::is_control) || is_written && value.contains(char::is_control) {
            let what = format!("the label `{}` holds a control character, such as a line's end", name.escape_debug());
            return Err(Rejection::InvalidInput { what });
        }
        let (bytes, max) = (name.len().max(value.len()), limits::NAME_BYTES_MAX);
        if bytes > max {
            return Err(Rejection::TooLarge { what: "a label", bytes, max });
        }
    }
    Ok(())
}

/// Names that begin like the engine's own are not for callers.
pub fn check_names<'a>(mut names: impl Iterator<Item = &'a String>) -> Result<(), Rejection> {
    let is_ours = |name: &&String| name.starts_with(OWN_LABELS) || name.starts_with(INPUT_LABELS);
    match names.find(is_ours) {
        Some(name) => Err(Rejection::InvalidInput {
            what: format!(
                "the label `{name}` has a reserved name: `{OWN_LABELS}` and `{INPUT_LABELS}` begin names of our own"
            ),
        }),
        None => Ok(()),
    }
}

/// The labels after a change: a value is set, nothing removes the label.
#[must_use]
pub fn merged(
    labels: &BTreeMap<String, String>,
    change: &BTreeMap<String, Option<String>>,
) -> BTreeMap<String, String> {
    let mut merged = labels.clone();
    for (name, value) in change {
        match value {
            Some(value) => merged.insert(name.clone(), value.clone()),
            None => merged.remove(name),
        };
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_change_sets_and_removes_and_leaves_the_rest() {
        let change = [("env", Some("prod")), ("team", None), ("absent", None)];
        let change = change.into_iter().map(|(name, value)| (name.to_owned(), value.map(str::to_owned))).collect();
        let after = merged(&labels(&[("env", "dev"), ("team", "web"), ("kept", "1")]), &change);
        assert_eq!(after, labels(&[("env", "prod"), ("kept", "1")]));
    }

    #[test]
    fn what_a_start_refuses_is_refused() {
        check(&labels(&[("env", "prod")])).unwrap();
        check(&labels(&[("env", "a\0b")])).unwrap_err();
        check(&labels(&[("env", "a\nb")])).unwrap_err();
        check(&labels(&[("e\x1bnv", "a")])).unwrap_err();
        check(&labels(&[("input.title", "a\nb")])).unwrap();
        check(&labels(&[(&"n".repeat(limits::NAME_BYTES_MAX + 1), "")])).unwrap_err();
        check(&(0..=limits::LABELS_MAX).map(|at| (at.to_string(), String::new())).collect()).unwrap_err();
        for name in ["interlock.state", "input.incident"] {
            check_names([name.to_owned()].iter()).unwrap_err();
        }
    }
}
