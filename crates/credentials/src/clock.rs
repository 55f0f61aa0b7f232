//! The clocks of leases: wall time for records, tokio's for how old something is.

use std::sync::Arc;
use std::time::Duration;

use interlock_core::time::Timestamp;
use tokio::time::Instant;

/// Says what time it is. Ages are counted on tokio's clock, which a test can stop.
#[derive(Clone)]
pub struct Clock {
    wall: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl Clock {
    pub fn new(wall: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { wall: Arc::new(wall) }
    }

    pub fn now(&self) -> Timestamp {
        (self.wall)()
    }

    /// The moment after this span.
    pub(crate) fn after(span: Duration) -> Instant {
        Instant::now() + span
    }

    pub(crate) fn is_past(moment: Instant) -> bool {
        Instant::now() >= moment
    }
}
