//! What a simulation has exercised. A batch of seeds in which too little happened proves nothing and fails.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// What begins with this is no sum.
const MAXIMUM_PREFIX: &str = "most ";

#[derive(Default)]
pub struct Tally(Mutex<Counts>);

/// How often each thing happened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<&'static str, u64>);

impl Tally {
    pub fn count(&self, what: &'static str) {
        self.add(what, 1);
    }

    pub fn add(&self, what: &'static str, by: u64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).0.entry(what).or_default() += by;
    }

    /// Keeps the largest.
    pub fn most(&self, what: &'static str, count: u64) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let most = counts.0.entry(what).or_default();
        *most = count.max(*most);
    }

    pub fn of(&self, what: &str) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(what)
    }

    pub fn counts(&self) -> Counts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Counts {
    pub fn get(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    pub fn merge(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            let known = self.0.entry(what).or_default();
            *known = if what.starts_with(MAXIMUM_PREFIX) { *count.max(known) } else { *known + count };
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, count) in &self.0 {
            writeln!(f, "  {count:>9} {what}")?;
        }
        Ok(())
    }
}
