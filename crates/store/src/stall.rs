//! Whether commits get through. A lane tries until the fate of what it holds is known; but while the disk is full or the
//! database away for long, whoever comes new is told so at once instead of waiting as well.

use std::sync::{Mutex, PoisonError};

use crate::error::SubmitError;

/// After this many failures in a row new commits are turned away: with the lane's pauses between them that is about five
/// seconds, and a failover or a restart is shorter.
const PATIENCE: u32 = 11;

/// How often in a row, and what the database said last.
#[derive(Debug, Default)]
pub(crate) struct Stall(Mutex<(u32, String)>);

impl Stall {
    /// A commit failed, and will be tried again.
    pub fn failed(&self, what: String) {
        let mut stall = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *stall = (stall.0.saturating_add(1), what);
    }

    /// A commit got through.
    pub fn over(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (0, String::new());
    }

    /// Refuses where commits have been failing for too long.
    pub fn check(&self) -> Result<(), SubmitError> {
        let stall = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if stall.0 >= PATIENCE { Err(SubmitError::Stalled(stall.1.clone())) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_and_a_commit_restores_it() {
        let stall = Stall::default();
        for _ in 1..PATIENCE {
            stall.failed("full".into());
        }
        assert!(stall.check().is_ok());
        stall.failed("still full".into());
        assert!(matches!(stall.check(), Err(SubmitError::Stalled(what)) if what == "still full"));
        stall.over();
        assert!(stall.check().is_ok());
    }
}
