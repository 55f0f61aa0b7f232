//! What is said about the broker: once that it cannot be reached, once that it can again; and about messages that are not
//! believed no more often than once a minute.

use std::sync::atomic::Ordering;
use std::time::Duration;

use interlock_broker::BrokerError;
use tokio::time::Instant;

use super::Broker;
use crate::metrics::BrokerResult;

const SAID_EVERY: Duration = Duration::from_mins(1);

/// Says that the broker is not connected when it is dropped: however reading ends, by a panic too.
pub(super) struct ConnectedWhileHeld<'a>(&'a Broker);

impl Drop for ConnectedWhileHeld<'_> {
    fn drop(&mut self) {
        self.0.is_connected.store(false, Ordering::Relaxed);
    }
}

impl Broker {
    /// The broker counts as connected only while this is held.
    pub(super) fn connected_while_held(&self) -> ConnectedWhileHeld<'_> {
        ConnectedWhileHeld(self)
    }

    pub(super) fn reached(&self) {
        if !self.is_connected.swap(true, Ordering::Relaxed) {
            tracing::info!(broker = %self.address, "reading workers' calls from the broker");
        }
    }

    pub(super) fn lost(&self, error: &BrokerError, was_said: &mut bool) {
        let was_connected = self.is_connected.swap(false, Ordering::Relaxed);
        if was_connected || !*was_said {
            tracing::warn!(broker = %self.address, %error, "the broker is not reached: workers make requests meanwhile");
        }
        *was_said = true;
    }
}

/// Messages that were not believed since it was last said.
#[derive(Default)]
pub struct RejectedMessages {
    count: u64,
    said_at: Option<Instant>,
}

impl RejectedMessages {
    pub fn met(&mut self, result: BrokerResult, now: Instant) {
        self.count += 1;
        if self.said_at.is_some_and(|at| now.duration_since(at) < SAID_EVERY) {
            return;
        }
        let (count, result) = (std::mem::take(&mut self.count), result.as_str());
        tracing::warn!(count, result, "messages from the broker are not believed, and dropped");
        self.said_at = Some(now);
    }
}
