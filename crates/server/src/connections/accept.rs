//! Accepting that fails: logged once, tried again with a growing pause.

use std::io;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Failures in a row.
#[derive(Default)]
pub struct AcceptFailures {
    count: u64,
    pause: Duration,
}

impl AcceptFailures {
    /// Connections are accepted again.
    pub fn over(&mut self) {
        if self.count > 0 {
            tracing::info!(failures = self.count, "connections are accepted again");
            *self = Self::default();
        }
    }

    /// Notes a failure and waits, unless only that one connection failed.
    pub async fn pause(&mut self, error: &io::Error, shutdown: &CancellationToken) {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
        if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted) {
            return;
        }
        if self.count == 0 {
            tracing::error!(%error, "connections cannot be accepted; tried again until they can");
        }
        self.count += 1;
        self.pause = (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
        shutdown.run_until_cancelled(tokio::time::sleep(self.pause)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_pause_grows_to_its_bound_and_starts_anew() {
        let (mut failures, shutdown) = (AcceptFailures::default(), CancellationToken::new());
        let began = tokio::time::Instant::now();
        failures.pause(&io::Error::from(io::ErrorKind::ConnectionReset), &shutdown).await;
        assert_eq!((began.elapsed(), failures.count), (Duration::ZERO, 0), "one peer's failure pauses nobody");
        for _ in 0..10 {
            failures.pause(&io::Error::other("too many open files"), &shutdown).await;
        }
        assert_eq!((failures.pause, failures.count), (PAUSE_MAX, 10));
        failures.over();
        assert_eq!((failures.pause, failures.count), (Duration::ZERO, 0));
    }
}
