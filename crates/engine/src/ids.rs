//! Fresh ids. The only place that draws random numbers; a simulation seeds it.

use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;

use crate::clock::Clock;

/// Makes UUIDv7s from the engine's clock and a random generator of its own.
#[derive(Clone)]
pub struct IdSource {
    clock: Clock,
    random: Arc<Mutex<fastrand::Rng>>,
}

impl IdSource {
    pub fn new(clock: Clock) -> Self {
        Self::with_random(clock, fastrand::Rng::new())
    }

    pub fn seeded(clock: Clock, seed: u64) -> Self {
        Self::with_random(clock, fastrand::Rng::with_seed(seed))
    }

    fn with_random(clock: Clock, random: fastrand::Rng) -> Self {
        Self { clock, random: Arc::new(Mutex::new(random)) }
    }

    pub fn fresh(&self) -> Uuid {
        let mut bytes = [0u8; 10];
        self.random.lock().unwrap_or_else(PoisonError::into_inner).fill(&mut bytes);
        uuid::Builder::from_unix_timestamp_millis(self.clock.now().0.max(0) as u64, &bytes).into_uuid()
    }
}
