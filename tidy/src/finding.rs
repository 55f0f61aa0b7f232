//! One broken rule at one place.

use std::fmt;

/// Where a rule is broken, how, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    pub path: String,
    /// Counted from 1.
    pub line: usize,
    pub what: String,
    pub instead: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}\n    instead: {}", self.path, self.line, self.what, self.instead)
    }
}

/// Fails the calling test with every finding, in the order of the files.
///
/// # Panics
/// When there is a finding.
#[track_caller]
pub fn assert_none(mut findings: Vec<Finding>) {
    findings.sort();
    findings.dedup();
    assert!(
        findings.is_empty(),
        "{} to tidy:\n\n{}\n",
        findings.len(),
        findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    );
}
