//! Whether commits get through. A lane tries until the fate of what it holds is known; but while the disk is full or the
//! database away for long, whoever comes new is told so at once instead of waiting as well.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::SubmitError;

/// How long commits may fail before new ones are turned away: a failover or a restart is shorter.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(crate) struct Stall(Mutex<Option<(Instant, String)>>);

impl Stall {
    /// A commit failed, and will be tried again.
    pub fn failed(&self, what: String) {
        let mut stall = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = stall.as_ref().map_or_else(Instant::now, |(since, _)| *since);
        *stall = Some((since, what));
    }

    /// A commit got through.
    pub fn over(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Refuses where commits have been failing for too long.
    pub fn check(&self) -> Result<(), SubmitError> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some((since, what)) if since.elapsed() >= PATIENCE => Err(SubmitError::Stalled(what.clone())),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn patience_ends_and_a_commit_restores_it() {
        let stall = Stall::default();
        stall.failed("full".into());
        assert!(stall.check().is_ok());
        tokio::time::advance(PATIENCE).await;
        stall.failed("still full".into());
        assert!(matches!(stall.check(), Err(SubmitError::Stalled(what)) if what == "still full"));
        stall.over();
        assert!(stall.check().is_ok());
    }
}
