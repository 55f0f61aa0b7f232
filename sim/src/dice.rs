//! Chance, by seed. Every actor throws its own dice, so that what one of them does leaves the others' luck alone.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A source of chance. Clones share one sequence.
#[derive(Debug, Clone)]
pub struct Dice(Arc<Mutex<fastrand::Rng>>);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))))
    }

    fn rng<T>(&self, throw: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        throw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Dice of one's own, drawn from these.
    pub fn fork(&self) -> Self {
        Self::new(self.rng(|rng| rng.u64(..)))
    }

    pub fn chance(&self, probability: f64) -> bool {
        self.rng(fastrand::Rng::f64) < probability
    }

    pub fn one_in(&self, n: u64) -> bool {
        self.rng(|rng| rng.u64(0..n)) == 0
    }

    pub fn between(&self, range: RangeInclusive<u64>) -> u64 {
        self.rng(|rng| rng.u64(range))
    }

    pub fn millis(&self, range: RangeInclusive<u64>) -> Duration {
        Duration::from_millis(self.between(range))
    }

    pub fn pick<'a, T>(&self, of: &'a [T]) -> &'a T {
        &of[self.between(0..=of.len() as u64 - 1) as usize]
    }

    /// One of several, each with its weight.
    pub fn weighted<T: Copy>(&self, of: &[(u64, T)]) -> T {
        let total: u64 = of.iter().map(|(weight, _)| weight).sum();
        let mut at = self.between(1..=total);
        for (weight, value) in of {
            if at <= *weight {
                return *value;
            }
            at -= weight;
        }
        of[of.len() - 1].1
    }
}
