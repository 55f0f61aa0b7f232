//! Caps: how many claims a tenant may take now. The store calls this inside the claiming transaction, with the
//! tenant's row locked, so the answer holds at every instant and across servers.

use crate::time::{Millis, Timestamp};

/// A tenant's limits. `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caps {
    pub max_concurrency: Option<u32>,
    pub max_runs_per_min: Option<u32>,
}

impl Caps {
    pub const fn is_unlimited(&self) -> bool {
        self.max_concurrency.is_none() && self.max_runs_per_min.is_none()
    }
}

/// Where the tenant stands inside the transaction.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    pub live_claims: u32,
    /// The instant at which the next run may start if none had been saved up (a virtual schedule, GCRA).
    pub rate_next_at: Timestamp,
}

const MINUTE: Millis = Millis::from_mins(1);

impl Usage {
    /// Takes one claim if the caps admit it. `first`: the claim starts a run, which the rate counts.
    pub fn admit(&mut self, caps: &Caps, first: bool, now: Timestamp) -> bool {
        if caps.max_concurrency.is_some_and(|max| self.live_claims >= max) {
            return false;
        }
        if let (true, Some(per_min)) = (first, caps.max_runs_per_min) {
            if per_min == 0 {
                return false;
            }
            // A full minute's worth may start at once; after that they are spaced evenly.
            let next_at = self.rate_next_at.max(now);
            if next_at.since(now).0 + MINUTE.0 / u64::from(per_min) > MINUTE.0 {
                return false;
            }
            self.rate_next_at = next_at + Millis(MINUTE.0 / u64::from(per_min));
        }
        self.live_claims += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrency_is_a_ceiling() {
        let caps = Caps { max_concurrency: Some(3), max_runs_per_min: None };
        let mut usage = Usage { live_claims: 1, rate_next_at: Timestamp(0) };
        let admitted = (0..10).filter(|_| usage.admit(&caps, false, Timestamp(0))).count();
        assert_eq!(admitted, 2);
    }

    #[test]
    fn the_rate_holds_over_any_minute_and_counts_only_new_runs() {
        let caps = Caps { max_concurrency: None, max_runs_per_min: Some(30) };
        let mut usage = Usage { live_claims: 0, rate_next_at: Timestamp(0) };
        let mut starts = Vec::new();
        for second in 0..300 {
            let now = Timestamp(1_000_000 + second * 1000);
            while usage.admit(&caps, true, now) {
                starts.push(now);
            }
            assert!(usage.admit(&caps, false, now));
        }
        // A burst of 30 at most, then two seconds apart.
        let in_first_minute = starts.iter().filter(|at| at.0 < 1_060_000).count();
        assert!((30..=60).contains(&in_first_minute), "{in_first_minute}");
        assert!(starts.len() <= 30 + 150, "{}", starts.len());
    }
}
