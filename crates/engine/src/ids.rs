//! Fresh ids. The only place that draws random numbers; a simulation seeds it.

use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;

use crate::clock::Clock;

/// Makes UUIDv7s from the engine's clock and a random generator of its own. Each is larger than the one before it, so
/// that what was made later sorts later, also within a millisecond.
#[derive(Clone)]
pub struct IdSource {
    clock: Clock,
    last: Arc<Mutex<Last>>,
}

struct Last {
    random: fastrand::Rng,
    millis: u64,
    /// Counts within the millisecond, in the twelve bits behind it.
    count: u16,
}

/// Where a millisecond's count begins at most: half of the bits are left to count.
const FIRST_COUNT_MAX: u16 = 0x7ff;
const COUNT_MAX: u16 = 0xfff;

impl IdSource {
    pub fn new(clock: Clock) -> Self {
        Self::with_random(clock, fastrand::Rng::new())
    }

    pub fn seeded(clock: Clock, seed: u64) -> Self {
        Self::with_random(clock, fastrand::Rng::with_seed(seed))
    }

    fn with_random(clock: Clock, random: fastrand::Rng) -> Self {
        Self { clock, last: Arc::new(Mutex::new(Last { random, millis: 0, count: 0 })) }
    }

    pub fn fresh(&self) -> Uuid {
        let now = self.clock.now().0.max(0) as u64;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = [0u8; 10];
        last.random.fill(&mut bytes);
        if now > last.millis || last.count == COUNT_MAX {
            // A millisecond that is used up borrows from the next one.
            last.millis = now.max(last.millis + 1);
            last.count = u16::from_be_bytes([bytes[0], bytes[1]]) & FIRST_COUNT_MAX;
        } else {
            last.count += 1;
        }
        bytes[..2].copy_from_slice(&last.count.to_be_bytes());
        uuid::Builder::from_unix_timestamp_millis(last.millis, &bytes).into_uuid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_core::time::Timestamp;

    #[tokio::test(start_paused = true)]
    async fn what_is_made_later_sorts_later() {
        let source = IdSource::seeded(Clock::starting_at(Timestamp(1_720_000_000_000)), 7);
        let ids: Vec<Uuid> = (0..10_000).map(|_| source.fresh()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
        assert!(ids.iter().all(|id| id.get_version_num() == 7));
    }
}
