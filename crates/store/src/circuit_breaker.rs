//! Whether commits get through. A lane tries until the fate of what it holds is known; but while the disk is full or the
//! database away for long, new submissions are refused at once instead of waiting as well. Where the database was
//! restored from a backup nothing gets through any more: what this server knows is of another past. Nor does anything
//! where a lane has panicked: what its committer knows of the database cannot be trusted.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{DbError, Restored, SubmitError};

/// After this many failures in a row new commits are turned away: with the lane's pauses between them that is about five
/// seconds, and a failover or a restart is shorter.
const PATIENCE: u32 = 11;

#[derive(Debug, Default)]
pub(crate) struct CircuitBreaker(Mutex<Failures>);

/// How often in a row commits failed, and what the database said last.
#[derive(Debug, Default)]
struct Failures {
    in_a_row: u32,
    what: String,
    kind: FailureKind,
    /// For good.
    restored: Option<Restored>,
    /// What the panic of a lane said: for good too.
    lane_panicked: Option<String>,
}

#[derive(Debug, Default, Clone, Copy)]
enum FailureKind {
    #[default]
    Away,
    DiskFull,
    FileGone,
}

impl CircuitBreaker {
    fn standing(&self) -> MutexGuard<'_, Failures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A commit failed, and will be tried again.
    pub fn failed(&self, error: &DbError) {
        let mut failures = self.standing();
        failures.in_a_row = failures.in_a_row.saturating_add(1);
        (failures.what, failures.kind) = match error {
            DbError::DiskFull(what) => (what.clone(), FailureKind::DiskFull),
            DbError::FileGone(what) => (what.clone(), FailureKind::FileGone),
            other => (other.to_string(), FailureKind::Away),
        };
    }

    /// A commit got through.
    pub fn over(&self) {
        self.standing().in_a_row = 0;
    }

    /// The database was restored: nothing more is committed.
    pub fn restored(&self, restored: Restored) {
        self.standing().restored = Some(restored);
    }

    /// A lane has panicked: nothing more is committed.
    pub fn lane_panicked(&self, panic: &str) {
        self.standing().lane_panicked.get_or_insert_with(|| panic.to_owned());
    }

    /// Refuses where commits have been failing for too long, or for good.
    pub fn check(&self) -> Result<(), SubmitError> {
        let failures = self.standing();
        if let Some(restored) = failures.restored {
            return Err(SubmitError::Restored(restored));
        }
        if let Some(panic) = &failures.lane_panicked {
            return Err(SubmitError::LanePanicked(panic.clone()));
        }
        if failures.in_a_row < PATIENCE {
            return Ok(());
        }
        let what = failures.what.clone();
        Err(match failures.kind {
            FailureKind::Away => SubmitError::Stalled(what),
            FailureKind::DiskFull => SubmitError::DiskFull(what),
            FailureKind::FileGone => SubmitError::FileGone(what),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_and_a_commit_restores_it() {
        let breaker = CircuitBreaker::default();
        for _ in 1..PATIENCE {
            breaker.failed(&DbError::Later("busy".into()));
        }
        assert!(breaker.check().is_ok());
        breaker.failed(&DbError::Later("still busy".into()));
        assert!(matches!(breaker.check(), Err(SubmitError::Stalled(what)) if what == "not now: still busy"));
        breaker.failed(&DbError::DiskFull("no room".into()));
        assert!(matches!(breaker.check(), Err(SubmitError::DiskFull(what)) if what == "no room"), "the cause is named");
        breaker.failed(&DbError::FileGone("it was removed".into()));
        assert!(matches!(breaker.check(), Err(SubmitError::FileGone(what)) if what == "it was removed"));
        breaker.over();
        assert!(breaker.check().is_ok());
        breaker.restored(Restored { had: 1, found: 2 });
        breaker.over();
        assert!(matches!(breaker.check(), Err(SubmitError::Restored(_))), "that is for good");
    }

    #[test]
    fn a_lane_that_has_panicked_refuses_for_good() {
        let breaker = CircuitBreaker::default();
        breaker.lane_panicked("the first");
        breaker.lane_panicked("a later one");
        breaker.over();
        assert!(matches!(breaker.check(), Err(SubmitError::LanePanicked(panic)) if panic == "the first"));
    }
}
