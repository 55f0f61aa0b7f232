//! Time. The only place that reads a clock: everything else gets `now` as a parameter.
//!
//! The engine's clock is the local monotonic clock plus an offset to the database's, never below the largest
//! instant it has handed out or found committed. Safety never depends on it (attempts fence), only liveness does.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use interlock_core::time::Timestamp;
use tokio::time::Instant;

/// Where instants come from. Cheap to clone; all clones agree.
#[derive(Clone)]
pub struct Clock(Arc<Source>);

struct Source {
    /// The monotonic clock (tokio's, so that a simulation can steer it) and what it showed at the start.
    origin: Instant,
    /// Unix milliseconds at `origin`; moved by corrections.
    base: AtomicI64,
    /// The largest instant handed out.
    floor: AtomicI64,
}

impl Clock {
    /// A clock that starts at the system's time and runs on monotonically.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the system's clock")]
    pub fn system() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::starting_at(Timestamp(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)))
    }

    /// A clock that starts at a given instant; for simulations.
    pub fn starting_at(now: Timestamp) -> Self {
        Self(Arc::new(Source { origin: Instant::now(), base: AtomicI64::new(now.0), floor: AtomicI64::new(now.0) }))
    }

    pub fn now(&self) -> Timestamp {
        let elapsed = i64::try_from(self.0.origin.elapsed().as_millis()).unwrap_or(i64::MAX);
        let now = self.0.base.load(Ordering::Relaxed).saturating_add(elapsed);
        Timestamp(self.0.floor.fetch_max(now, Ordering::Relaxed).max(now))
    }

    /// Never answers less than this again: the largest instant that the store has seen.
    pub fn not_before(&self, at: Timestamp) {
        self.0.floor.fetch_max(at.0, Ordering::Relaxed);
    }

    /// Moves the clock by a measured difference to the database's. Going back only slows it: the floor holds.
    pub fn adjust(&self, by_ms: i64) {
        self.0.base.fetch_add(by_ms, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Clock({:?})", self.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn it_follows_the_monotonic_clock_and_never_goes_back() {
        let clock = Clock::starting_at(Timestamp(1_000));
        tokio::time::advance(Duration::from_millis(250)).await;
        assert_eq!(clock.now(), Timestamp(1_250));
        clock.adjust(-200);
        assert_eq!(clock.now(), Timestamp(1_250));
        tokio::time::advance(Duration::from_millis(300)).await;
        assert_eq!(clock.now(), Timestamp(1_350));
        clock.not_before(Timestamp(5_000));
        assert_eq!(clock.now(), Timestamp(5_000));
    }
}
