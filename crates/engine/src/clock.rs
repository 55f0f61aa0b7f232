//! Time. The only place that reads a clock: everything else gets `now` as a parameter.
//!
//! The engine's clock is the local monotonic clock plus an offset to the database's, never below the largest
//! instant it has handed out or found committed. Where that is ahead of the true time, the clock goes on at three
//! quarters of its speed until the true time has caught up: it neither stands still, which would stop every timer and
//! every lease, nor goes back. Before its first reading it is simply set right: a machine whose clock is minutes ahead
//! would otherwise be ahead of the other servers for many more. Safety never depends on it (attempts fence), only
//! liveness does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use interlock_core::time::Timestamp;
use tokio::time::Instant;

/// A clock that is ahead loses this part of each millisecond. A lease of 20 s lasts under 27 s then, which is within
/// the 30 s that a failover may take.
const LOST_PART: i64 = 4;

/// Where instants come from. Cheap to clone; all clones agree.
#[derive(Clone)]
pub struct Clock(Arc<Source>);

struct Source {
    /// The monotonic clock (tokio's, so that a simulation can steer it) at the start.
    origin: Instant,
    hands: Mutex<Hands>,
}

struct Hands {
    /// The true time at `origin`, in Unix milliseconds; moved by corrections.
    base: i64,
    /// How far the clock was ahead of the true time when the monotonic clock showed `since`.
    ahead: i64,
    since: i64,
    /// The largest instant handed out, if any was.
    last: Option<i64>,
}

impl Hands {
    /// How far the clock is ahead now.
    fn ahead(&self, elapsed: i64) -> i64 {
        (self.ahead - elapsed.saturating_sub(self.since) / LOST_PART).max(0)
    }

    fn now(&mut self, elapsed: i64) -> i64 {
        let now = self.base.saturating_add(elapsed).saturating_add(self.ahead(elapsed));
        let now = self.last.map_or(now, |last| last.max(now));
        self.last = Some(now);
        now
    }

    /// Goes on from `at`, if that is ahead of the true time.
    fn go_on_from(&mut self, at: i64, elapsed: i64) {
        self.ahead = at.saturating_sub(self.base.saturating_add(elapsed)).max(0);
        self.since = elapsed;
    }
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
        let hands = Hands { base: now.0, ahead: 0, since: 0, last: None };
        Self(Arc::new(Source { origin: Instant::now(), hands: Mutex::new(hands) }))
    }

    fn hands(&self) -> (MutexGuard<'_, Hands>, i64) {
        let elapsed = i64::try_from(self.0.origin.elapsed().as_millis()).unwrap_or(i64::MAX);
        (self.0.hands.lock().unwrap_or_else(PoisonError::into_inner), elapsed)
    }

    pub fn now(&self) -> Timestamp {
        let (mut hands, elapsed) = self.hands();
        Timestamp(hands.now(elapsed))
    }

    /// The time as far as it is known, which the clock may be ahead of. What a correction is measured against.
    pub fn true_time(&self) -> Timestamp {
        let (hands, elapsed) = self.hands();
        Timestamp(hands.base.saturating_add(elapsed))
    }

    /// Never answers less than this again: the largest instant that the store has seen.
    pub fn not_before(&self, at: Timestamp) {
        let (mut hands, elapsed) = self.hands();
        if at.0 > hands.now(elapsed) {
            hands.go_on_from(at.0, elapsed);
            hands.now(elapsed);
        }
    }

    /// Moves the clock by a measured difference to the database's. Forward it jumps; going back only slows it, once it
    /// has been read.
    pub fn adjust(&self, by_ms: i64) {
        let (mut hands, elapsed) = self.hands();
        let shown = hands.last.map(|_| hands.now(elapsed));
        hands.base = hands.base.saturating_add(by_ms);
        if let Some(shown) = shown {
            hands.go_on_from(shown, elapsed);
        }
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
    async fn it_follows_the_monotonic_clock() {
        let clock = Clock::starting_at(Timestamp(1_000));
        tokio::time::advance(Duration::from_millis(250)).await;
        assert_eq!(clock.now(), Timestamp(1_250));
        clock.adjust(500);
        assert_eq!(clock.now(), Timestamp(1_750));
    }

    #[tokio::test(start_paused = true)]
    async fn set_back_it_goes_on_slower_until_the_time_has_caught_up() {
        let clock = Clock::starting_at(Timestamp(1_000));
        assert_eq!(clock.now(), Timestamp(1_000));
        clock.adjust(-200);
        assert_eq!((clock.now(), clock.true_time()), (Timestamp(1_000), Timestamp(800)));
        tokio::time::advance(Duration::from_millis(400)).await;
        assert_eq!((clock.now(), clock.true_time()), (Timestamp(1_300), Timestamp(1_200)));
        tokio::time::advance(Duration::from_millis(400)).await;
        assert_eq!((clock.now(), clock.true_time()), (Timestamp(1_600), Timestamp(1_600)));
        tokio::time::advance(Duration::from_millis(400)).await;
        assert_eq!(clock.now(), Timestamp(2_000), "at full speed again");
    }

    #[tokio::test(start_paused = true)]
    async fn set_back_before_its_first_reading_it_is_right_at_once() {
        let clock = Clock::starting_at(Timestamp(300_000));
        clock.adjust(-280_000);
        assert_eq!((clock.now(), clock.true_time()), (Timestamp(20_000), Timestamp(20_000)));
    }

    /// What another server has committed is in the past, whatever this machine's clock says; and time goes on.
    #[tokio::test(start_paused = true)]
    async fn it_goes_on_from_the_largest_commit() {
        let clock = Clock::starting_at(Timestamp(1_000));
        clock.not_before(Timestamp(5_000));
        assert_eq!(clock.now(), Timestamp(5_000));
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!(clock.now(), Timestamp(8_000));
        clock.not_before(Timestamp(2_000));
        assert_eq!(clock.now(), Timestamp(8_000));
        tokio::time::advance(Duration::from_secs(16)).await;
        assert_eq!((clock.now(), clock.true_time()), (Timestamp(21_000), Timestamp(21_000)));
    }

    #[tokio::test(start_paused = true)]
    async fn it_never_goes_back_whatever_is_done_to_it() {
        let clock = Clock::starting_at(Timestamp(1_000_000));
        let mut last = clock.now();
        for step in [-500, 300, -10_000, 7, -1, 20_000, -20_000, 0, 3] {
            clock.adjust(step);
            for _ in 0..50 {
                tokio::time::advance(Duration::from_millis(3)).await;
                let now = clock.now();
                assert!(now >= last, "{now:?} after {last:?}");
                last = now;
            }
        }
    }
}
