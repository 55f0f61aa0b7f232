//! Time and randomness are parameters.
//!
//! A decision that reads a clock cannot be replayed, and a simulation that meets one is no longer
//! decided by its seed. The engine owns both; the outermost crates may look at a clock to measure.

use crate::{Finding, Tree};

const GLOBALS: &[&str] = &[
    "SystemTime::now",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "Utc::now",
    "OffsetDateTime::now_utc",
    "Uuid::now_v7",
    "Uuid::new_v4",
    "rand::rng",
    "rand::random",
    "thread_rng",
    "fastrand",
    "getrandom",
];

const OWNERS: &[&str] = &[
    "crates/engine/src/clock.rs",
    "crates/engine/src/ids.rs",
    // Only when to look again at another transaction's lock: nothing is decided by it.
    "crates/store/src/blocked.rs",
    // How old a lease is, on tokio's clock; wall time is a parameter.
    "crates/credentials/src/clock.rs",
    // It measures.
    "crates/policy/examples/",
    "crates/cli/",
    "crates/server/",
    // Timeouts, watchdogs, ages of chunks.
    "crates/sandbox/",
    "crates/worker/",
    "sim/",
    "tidy/",
];

#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files() {
        if OWNERS.iter().any(|owner| file.path.starts_with(owner)) {
            continue;
        }
        for global in GLOBALS {
            for offset in file.words(global) {
                if !file.is_test(offset) {
                    findings.push(Finding {
                        path: file.path.to_owned(),
                        line: file.line(offset),
                        what: format!("`{global}` is read outside the engine's clock and ids"),
                        instead: "take `now` (or the id, or the random number) as a parameter".to_owned(),
                    });
                }
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&Tree::planted(&[(path, text)])).len()
    }

    #[test]
    fn globals_are_refused_in_the_inner_crates() {
        let text = "fn f() { let a = std::time::Instant::now(); let b = Uuid::now_v7(); }";
        assert_eq!(count("crates/core/src/a.rs", text), 2);
        assert_eq!(count("crates/store/src/a.rs", text), 2);
        assert_eq!(count("crates/engine/src/dispatch.rs", text), 2);
    }

    #[test]
    fn owners_tests_and_comments_are_left_alone() {
        let text = "fn f() { Instant::now(); }";
        assert_eq!(count("crates/engine/src/clock.rs", text), 0);
        assert_eq!(count("crates/worker/src/session.rs", text), 0);
        assert_eq!(count("crates/store/tests/claim.rs", text), 0);
        assert_eq!(count("crates/store/src/a.rs", "// not Instant::now\n"), 0);
        let in_tests = format!("#[cfg(test)]\nmod tests {{ {text} }}");
        assert_eq!(count("crates/store/src/a.rs", &in_tests), 0);
    }
}
