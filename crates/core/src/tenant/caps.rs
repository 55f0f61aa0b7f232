//! Caps: how many claims a tenant, or a workflow in it, may take now. The store calls this inside the claiming
//! transaction, with the tenant's row locked, so the answer holds at every instant and across servers.

use crate::time::{Millis, Timestamp};

/// The limits of a tenant or of a workflow. `None` means no limit.
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

/// A workflow's own limits, which hold over all its runs in the tenant, whatever their version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowCaps {
    pub workflow: String,
    pub caps: Caps,
}

/// The limit that is reached, so that a claim is not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReachedCap {
    /// Until another claim ends.
    Concurrency {
        max: u32,
    },
    Rate {
        max: u32,
        until: Timestamp,
    },
}

/// Where the tenant or the workflow stands inside the transaction.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    pub live_claims: u32,
    /// The instant at which the next run may start if none had been saved up (a virtual schedule, GCRA).
    pub rate_next_at: Timestamp,
}

const MINUTE: Millis = Millis::from_mins(1);

impl Usage {
    /// Takes one claim if the caps admit it. `first`: the claim starts a run, which the rate counts.
    pub fn admit(&mut self, caps: &Caps, first: bool, now: Timestamp) -> Result<(), ReachedCap> {
        if let Some(max) = caps.max_concurrency.filter(|max| self.live_claims >= *max) {
            return Err(ReachedCap::Concurrency { max });
        }
        if let (true, Some(max)) = (first, caps.max_runs_per_min) {
            // A full minute's worth may start at once; after that they are spaced evenly. None ever fits where none may.
            let spacing = Millis(MINUTE.0.checked_div(u64::from(max)).unwrap_or(2 * MINUTE.0));
            let next_at = self.rate_next_at.max(now);
            let early = (next_at.since(now).0 + spacing.0).saturating_sub(MINUTE.0);
            if early > 0 {
                return Err(ReachedCap::Rate { max, until: now + Millis(early) });
            }
            self.rate_next_at = next_at + spacing;
        }
        self.live_claims += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrency_is_a_ceiling() {
        let caps = Caps { max_concurrency: Some(3), max_runs_per_min: None };
        let mut usage = Usage { live_claims: 1, rate_next_at: Timestamp(0) };
        let admitted = (0..10).filter(|_| usage.admit(&caps, false, Timestamp(0)).is_ok()).count();
        assert_eq!(admitted, 2);
        assert_eq!(usage.admit(&caps, true, Timestamp(0)), Err(ReachedCap::Concurrency { max: 3 }));
    }

    #[test]
    fn the_rate_holds_over_any_minute_and_counts_only_new_runs() {
        let caps = Caps { max_concurrency: None, max_runs_per_min: Some(30) };
        let mut usage = Usage { live_claims: 0, rate_next_at: Timestamp(0) };
        let mut starts = Vec::new();
        for second in 0..300 {
            let now = Timestamp(1_000_000 + second * 1000);
            while usage.admit(&caps, true, now).is_ok() {
                starts.push(now);
            }
            assert!(usage.admit(&caps, false, now).is_ok());
        }
        // A burst of 30 at most, then two seconds apart.
        let in_first_minute = starts.iter().filter(|at| at.0 < 1_060_000).count();
        assert!((30..=60).contains(&in_first_minute), "{in_first_minute}");
        assert!(starts.len() <= 30 + 150, "{}", starts.len());
    }

    #[test]
    fn a_rate_that_holds_says_until_when() {
        let caps = Caps { max_concurrency: None, max_runs_per_min: Some(2) };
        let mut usage = Usage { live_claims: 0, rate_next_at: Timestamp(0) };
        let now = Timestamp(1_000_000);
        assert!(usage.admit(&caps, true, now).is_ok() && usage.admit(&caps, true, now).is_ok());
        let Err(ReachedCap::Rate { max: 2, until }) = usage.admit(&caps, true, now) else { panic!("a third one fits") };
        assert!(usage.admit(&caps, true, Timestamp(until.0 - 1)).is_err());
        assert!(usage.admit(&caps, true, until).is_ok());
        let none = Caps { max_concurrency: None, max_runs_per_min: Some(0) };
        assert!(usage.admit(&none, true, Timestamp(i64::MAX / 2)).is_err());
    }
}
