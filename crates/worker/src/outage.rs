//! A server that cannot be reached: said once, and once more when it is over.

use std::sync::{Mutex, MutexGuard, PoisonError};

use interlock_protocol::transport::TransportError;
use tokio::time::Instant;
use tracing::{debug, warn};

#[derive(Debug, Default)]
pub(crate) struct Outage(Mutex<Option<Instant>>);

impl Outage {
    /// A call got no answer.
    pub fn met(&self, error: &TransportError) {
        let mut since = self.since();
        if since.is_some() {
            debug!(%error, "still no answer");
        } else {
            warn!(%error, "the server does not answer; trying again until it does");
        }
        since.get_or_insert_with(Instant::now);
    }

    /// A call was answered.
    pub fn over(&self) {
        if let Some(since) = self.since().take() {
            // At the level of its beginning, so that a log that has one has both.
            warn!(seconds = since.elapsed().as_secs(), "the server answers again");
        }
    }

    fn since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
