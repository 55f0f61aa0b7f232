//! Repeating a call that got no answer. Every call of a worker is idempotent, so a repeat does no harm.

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use interlock_protocol::transport::TransportError;
use tokio::time::{sleep, timeout};

use crate::limits;

/// Spreads pauses, so that workers do not call in step. The seed makes a run repeatable.
#[derive(Debug)]
pub(crate) struct Jitter(Mutex<fastrand::Rng>);

impl Jitter {
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(fastrand::Rng::with_seed(seed)))
    }

    /// Between half of the pause and all of it.
    pub fn spread(&self, pause: Duration) -> Duration {
        let half = pause / 2;
        half + half.mul_f64(self.0.lock().unwrap_or_else(PoisonError::into_inner).f64())
    }
}

/// Growing pauses between tries.
pub(crate) struct Pauses<'a> {
    jitter: &'a Jitter,
    next: Duration,
}

impl<'a> Pauses<'a> {
    pub const fn new(jitter: &'a Jitter) -> Self {
        Self { jitter, next: limits::BACKOFF_FIRST }
    }

    pub async fn pause(&mut self) {
        sleep(self.jitter.spread(self.next)).await;
        self.next = (self.next * 2).min(limits::BACKOFF_MAX);
    }

    pub const fn reset(&mut self) {
        self.next = limits::BACKOFF_FIRST;
    }
}

/// Makes the call until it is answered, or until `worthwhile` says that an answer would be of no use any more.
pub(crate) async fn retry<T, Call, Calling>(
    jitter: &Jitter,
    worthwhile: impl Fn() -> bool,
    call: Call,
) -> Result<T, TransportError>
where
    Call: Fn() -> Calling,
    Calling: Future<Output = Result<T, TransportError>>,
{
    let mut pauses = Pauses::new(jitter);
    loop {
        let error = match timed(limits::CALL_TIMEOUT, call()).await {
            Err(TransportError::Unavailable(what)) => TransportError::Unavailable(what),
            answer => return answer,
        };
        if !worthwhile() {
            return Err(error);
        }
        pauses.pause().await;
    }
}

/// A call that takes too long counts as one without an answer.
pub(crate) async fn timed<T>(
    span: Duration,
    call: impl Future<Output = Result<T, TransportError>>,
) -> Result<T, TransportError> {
    timeout(span, call).await.unwrap_or_else(|_| {
        let what = format!("no answer within {} ms", span.as_millis());
        Err(TransportError::Unavailable(what))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn jitter_spreads_over_the_upper_half_and_repeats_by_seed() {
        let draws = |seed| {
            let jitter = Jitter::new(seed);
            (0..100).map(|_| jitter.spread(Duration::from_secs(1)).as_millis()).collect::<Vec<_>>()
        };
        assert_eq!(draws(7), draws(7));
        assert_ne!(draws(7), draws(8));
        assert!(draws(7).iter().all(|millis| (500..=1000).contains(millis)));
        assert!(draws(7).iter().any(|millis| *millis < 600) && draws(7).iter().any(|millis| *millis > 900));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_hangs_is_made_again() {
        let calls = AtomicU64::new(0);
        let jitter = Jitter::new(1);
        let answer = retry(
            &jitter,
            || true,
            || {
                let nth = calls.fetch_add(1, Ordering::Relaxed);
                async move {
                    if nth < 2 {
                        std::future::pending::<()>().await;
                    }
                    Ok(nth)
                }
            },
        );
        assert_eq!(answer.await, Ok(2));
    }
}
