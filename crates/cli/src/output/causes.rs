//! An error with its causes, in one line.

use std::fmt::Write as _;

/// The error and what caused it. Many errors name their cause in their own words already: what was said is not repeated.
pub fn causes(error: &anyhow::Error) -> String {
    let mut line = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !line.contains(&cause) {
            let _ = write!(line, ": {cause}");
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the store cannot be read: {0}")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn a_cause_is_said_once() {
        let full = || std::io::Error::other("the disk is full");
        let error = anyhow::Error::from(Outer(full())).context("cannot open the store");
        assert_eq!(causes(&error), "cannot open the store: the store cannot be read: the disk is full");
        let error = anyhow::Error::from(full()).context("cannot open the store");
        assert_eq!(causes(&error), "cannot open the store: the disk is full");
    }
}
