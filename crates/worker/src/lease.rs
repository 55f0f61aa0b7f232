//! Until when the session's lease surely holds, on the worker's own clock.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::limits;

/// The lease as the worker sees it: counted from the instant a renewal was *sent*, so it never ends later here than
/// at the server.
#[derive(Debug)]
pub(crate) struct Lease {
    granted: watch::Sender<GrantedLease>,
    send_margin: Duration,
}

#[derive(Debug, Clone, Copy)]
struct GrantedLease {
    until: Instant,
    span: Duration,
}

impl Lease {
    pub fn new(sent_at: Instant, span: Duration) -> Self {
        Self {
            granted: watch::Sender::new(GrantedLease { until: sent_at + span, span }),
            // A short lease, as tests have it, must leave room for sending as well.
            send_margin: limits::SEND_MARGIN.min(span / 4),
        }
    }

    pub fn renew(&self, sent_at: Instant, span: Duration) {
        self.granted.send_replace(GrantedLease { until: sent_at + span, span });
    }

    /// How long the last renewal counts, from the instant at which it was sent.
    pub fn span(&self) -> Duration {
        self.granted.borrow().span
    }

    pub fn holds(&self) -> bool {
        Instant::now() < self.granted.borrow().until
    }

    /// Whether an effect that starts now is surely still this session's while its first bytes go out.
    pub fn covers_a_send(&self) -> bool {
        Instant::now() + self.send_margin <= self.granted.borrow().until
    }

    /// Returns once the lease has run out without a renewal.
    pub async fn ran_out(&self) {
        let mut granted = self.granted.subscribe();
        loop {
            let at = granted.borrow_and_update().until;
            tokio::select! {
                biased;
                changed = granted.changed() => changed.expect("the sender lives in `self`"),
                () = sleep_until(at) => return,
            }
        }
    }

    /// Returns at the next renewal.
    pub async fn renewed(&self) {
        let mut granted = self.granted.subscribe();
        granted.changed().await.expect("the sender lives in `self`");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lease_runs_out_unless_it_is_renewed() {
        let begun = Instant::now();
        let lease = Lease::new(begun, Duration::from_secs(20));
        assert!(lease.holds() && lease.covers_a_send());

        tokio::time::advance(Duration::from_secs(16)).await;
        assert!(lease.holds() && !lease.covers_a_send());

        lease.renew(Instant::now(), Duration::from_secs(20));
        assert!(lease.covers_a_send());
        lease.ran_out().await;
        assert_eq!(begun.elapsed().as_secs(), 36);
        assert!(!lease.holds());

        lease.renew(Instant::now(), Duration::from_secs(8));
        assert_eq!(lease.span(), Duration::from_secs(8), "as the server said last");
    }
}
