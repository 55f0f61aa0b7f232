//! Trouble that the loops have, told once: one line when it begins, one when it is over, however often they try again
//! in between. All loops meet the same outage of the database, so the first of them tells of it, and the last one of
//! its end; what only one loop meets, that one tells.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use interlock_core::time::Timestamp;

use crate::Engine;
use crate::error::EngineError;

#[derive(Default)]
pub struct Outages {
    /// What the loops do that fails at the moment.
    failing: Mutex<BTreeMap<&'static str, Failing>>,
    /// Whether there is any, so that the usual case takes no lock.
    any: AtomicBool,
}

struct Failing {
    since: Timestamp,
    /// The store is away, for all loops.
    outage: bool,
}

/// What is worth a line in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    Began,
    Over { since: Timestamp, outage: bool },
    Nothing,
}

impl Outages {
    fn failed(&self, work: &'static str, outage: bool, now: Timestamp) -> News {
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        let known = failing.contains_key(work) || outage && failing.values().any(|failing| failing.outage);
        failing.entry(work).or_insert(Failing { since: now, outage });
        self.any.store(true, Ordering::Relaxed);
        if known { News::Nothing } else { News::Began }
    }

    /// A round went well. One that had nothing to write does so while the store takes no commits, and ends no outage.
    fn worked(&self, work: &'static str, takes_commits: impl FnOnce() -> bool) -> News {
        if !self.any.load(Ordering::Relaxed) {
            return News::Nothing;
        }
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        if failing.get(work).is_some_and(|failing| failing.outage) && !takes_commits() {
            return News::Nothing;
        }
        let Some(Failing { since, outage }) = failing.remove(work) else { return News::Nothing };
        self.any.store(!failing.is_empty(), Ordering::Relaxed);
        if outage && failing.values().any(|failing| failing.outage) {
            // The others have met the same, perhaps longer ago.
            for other in failing.values_mut().filter(|failing| failing.outage) {
                other.since = other.since.min(since);
            }
            return News::Nothing;
        }
        News::Over { since, outage }
    }
}

impl Engine {
    /// Takes note of how one round of a loop went; answers what it brought.
    pub(crate) fn noted<T>(&self, work: &'static str, result: Result<T, impl Into<EngineError>>) -> Option<T> {
        match result {
            Ok(brought) => {
                let takes_commits = || self.0.store.takes_commits().is_ok();
                if let News::Over { since, outage } = self.0.outages.worked(work, takes_commits) {
                    let for_ms = self.now().since(since).0;
                    // At the same level as its beginning, so that a log that has one has both.
                    if outage {
                        tracing::warn!(for_ms, "the store answers again, and all loops go on");
                    } else {
                        tracing::warn!(work, for_ms, "a loop goes on");
                    }
                }
                Some(brought)
            }
            Err(error) => {
                let error = error.into();
                if matches!(error, EngineError::Closed) && self.0.stopping.is_cancelled() {
                    return None;
                }
                if self.0.outages.failed(work, error.is_outage(), self.now()) == News::Began {
                    tracing::warn!(work, %error, "a loop cannot go on; it is tried again until it can");
                } else {
                    tracing::debug!(work, %error, "a loop still cannot go on");
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_that_all_loops_meet_is_told_once_and_once_when_it_is_over() {
        let outages = Outages::default();
        let at = Timestamp;
        assert_eq!(outages.failed("timers", true, at(1)), News::Began);
        assert_eq!(outages.failed("scan", true, at(2)), News::Nothing);
        assert_eq!(outages.failed("timers", true, at(3)), News::Nothing);
        assert_eq!(outages.worked("timers", || true), News::Nothing);
        assert_eq!(outages.worked("scan", || true), News::Over { since: at(1), outage: true });
        assert_eq!(outages.worked("scan", || true), News::Nothing);
        assert_eq!(outages.failed("scan", true, at(9)), News::Began, "the next one is another one");
    }

    #[test]
    fn what_only_one_loop_meets_is_told_beside_an_outage() {
        let outages = Outages::default();
        let at = Timestamp;
        assert_eq!(outages.failed("timers", true, at(1)), News::Began);
        assert_eq!(outages.failed("sealer", false, at(2)), News::Began);
        assert_eq!(outages.failed("sealer", false, at(3)), News::Nothing);
        assert_eq!(outages.worked("sealer", || true), News::Over { since: at(2), outage: false });
        assert_eq!(outages.worked("timers", || true), News::Over { since: at(1), outage: true });
    }

    #[test]
    fn a_round_that_writes_nothing_does_not_end_an_outage_of_commits() {
        let outages = Outages::default();
        assert_eq!(outages.failed("reaper", true, Timestamp(1)), News::Began);
        assert_eq!(outages.worked("reaper", || false), News::Nothing);
        assert_eq!(outages.failed("reaper", true, Timestamp(2)), News::Nothing, "it is the same outage");
        assert_eq!(outages.worked("reaper", || true), News::Over { since: Timestamp(1), outage: true });
        assert_eq!(outages.failed("sealer", false, Timestamp(3)), News::Began);
        assert_eq!(outages.worked("sealer", || false), News::Over { since: Timestamp(3), outage: false });
    }
}
