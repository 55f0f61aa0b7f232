//! Shares of the workers, per tenant. A session that serves many tenants keeps a few of its places for those that take
//! less than their share: a quiet tenant finds one free then, however much the others ask for.
//!
//! Places taken are counted over the last window or two. Where only one tenant takes any, nothing is kept from it.

use std::collections::{HashMap, HashSet};

use interlock_core::ids::TenantId;
use interlock_core::time::{Millis, Timestamp};

/// Counts are forgotten after one to two of these.
const WINDOW: Millis = Millis(1_000);
/// For so long it is not worked out anew who is over and who is quiet.
const KNOWN_FOR: Millis = Millis(20);
/// Below this part of its share a tenant is quiet,
const QUIET_ONE_IN: u64 = 4;
/// where so many places were taken lately; an engine can be told another number.
pub const BUSY_FROM_PLACES: u64 = 200;
/// One place in so many is kept.
const KEPT_ONE_IN: usize = 16;
/// A smaller session keeps none: one of its places would be too much of it.
const KEEPING_SLOTS_MIN: usize = 8;

/// How many places of so many are kept for those below their share.
pub fn kept(slots: usize) -> usize {
    if slots < KEEPING_SLOTS_MIN { 0 } else { (slots / KEPT_ONE_IN).max(1) }
}

pub struct Shares {
    /// No tenant is quiet where fewer places were taken lately.
    busy_from_places: u64,
    current: HashMap<TenantId, TakenPlaces>,
    before: HashMap<TenantId, TakenPlaces>,
    /// When the current window began.
    since: Timestamp,
    over: HashSet<TenantId>,
    quiet: HashSet<TenantId>,
    /// When those were worked out.
    known_at: Timestamp,
}

#[derive(Default, Clone, Copy)]
struct TakenPlaces {
    places: u64,
    weight: u64,
}

impl Default for Shares {
    fn default() -> Self {
        Self::new(BUSY_FROM_PLACES)
    }
}

impl Shares {
    pub fn new(busy_from_places: u64) -> Self {
        Self {
            busy_from_places,
            current: HashMap::new(),
            before: HashMap::new(),
            since: Timestamp::default(),
            over: HashSet::new(),
            quiet: HashSet::new(),
            known_at: Timestamp::default(),
        }
    }

    /// The tenant has taken a place.
    pub fn took(&mut self, tenant: TenantId, weight: u32, now: Timestamp) {
        self.turn(now);
        let taken = self.current.entry(tenant).or_default();
        taken.places += 1;
        taken.weight = weight.into();
    }

    /// Whether the tenant has taken more than its share of what was taken lately. Never, where there is only one.
    pub fn is_over(&mut self, tenant: TenantId, now: Timestamp) -> bool {
        self.work_out(now);
        self.over.contains(&tenant)
    }

    /// Whether the tenant takes far less than its share while others take much.
    pub fn is_quiet(&mut self, tenant: TenantId, now: Timestamp) -> bool {
        self.work_out(now);
        self.quiet.contains(&tenant)
    }

    /// Begins a new window if it is time.
    fn turn(&mut self, now: Timestamp) {
        let passed = now.since(self.since);
        if passed < WINDOW {
            return;
        }
        self.before = std::mem::take(&mut self.current);
        if passed >= Millis(2 * WINDOW.0) {
            self.before.clear();
        }
        self.since = now;
    }

    fn work_out(&mut self, now: Timestamp) {
        if now.since(self.known_at) < KNOWN_FOR {
            return;
        }
        self.known_at = now;
        self.turn(now);
        let mut lately = self.before.clone();
        for (tenant, taken) in &self.current {
            let sum = lately.entry(*tenant).or_default();
            *sum = TakenPlaces { places: sum.places + taken.places, weight: taken.weight };
        }
        let places: u64 = lately.values().map(|taken| taken.places).sum();
        let weights: u64 = lately.values().map(|taken| taken.weight).sum();
        let who = |wanted: &dyn Fn(&TakenPlaces) -> bool| {
            lately.iter().filter(|(_, taken)| wanted(taken)).map(|(tenant, _)| *tenant).collect()
        };
        self.over = who(&|taken| taken.places * weights > places * taken.weight);
        let is_quiet = |taken: &TakenPlaces| taken.places * weights * QUIET_ONE_IN < places * taken.weight;
        self.quiet = if places < self.busy_from_places { HashSet::new() } else { who(&is_quiet) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn tenant(number: u128) -> TenantId {
        TenantId(Uuid::from_u128(number))
    }

    fn took(shares: &mut Shares, number: u128, weight: u32, places: usize, now: Timestamp) {
        (0..places).for_each(|_| shares.took(tenant(number), weight, now));
    }

    #[test]
    fn a_tenant_alone_is_never_over_its_share() {
        let mut shares = Shares::default();
        took(&mut shares, 1, 1, 100, Timestamp(10_000));
        assert!(!shares.is_over(tenant(1), Timestamp(10_100)));
    }

    #[test]
    fn who_takes_more_than_the_others_is_over_until_that_is_forgotten() {
        let mut shares = Shares::default();
        took(&mut shares, 1, 1, 100, Timestamp(10_000));
        took(&mut shares, 2, 1, 1, Timestamp(10_000));
        assert!(shares.is_over(tenant(1), Timestamp(10_900)));
        assert!(!shares.is_over(tenant(2), Timestamp(10_900)));
        assert!(shares.is_over(tenant(1), Timestamp(11_900)), "the last window counts as well");
        assert!(!shares.is_over(tenant(1), Timestamp(13_900)));
    }

    #[test]
    fn a_share_is_as_large_as_the_weight() {
        let mut shares = Shares::default();
        took(&mut shares, 1, 3, 60, Timestamp(10_000));
        took(&mut shares, 2, 1, 40, Timestamp(10_000));
        assert!(!shares.is_over(tenant(1), Timestamp(10_100)));
        assert!(shares.is_over(tenant(2), Timestamp(10_100)));
    }

    #[test]
    fn quiet_is_who_takes_little_while_others_take_much() {
        let mut shares = Shares::default();
        took(&mut shares, 1, 1, 1_000, Timestamp(10_000));
        took(&mut shares, 2, 1, 50, Timestamp(10_000));
        let quiet = |shares: &mut Shares, number, at| shares.is_quiet(tenant(number), Timestamp(at));
        assert!(quiet(&mut shares, 2, 10_100));
        assert!(!quiet(&mut shares, 1, 10_100));
        took(&mut shares, 2, 1, 500, Timestamp(10_200));
        assert!(!quiet(&mut shares, 2, 10_300), "it takes its share by now");
        assert!(!quiet(&mut shares, 3, 10_300), "of one that took nothing nothing is known");

        let mut little = Shares::default();
        took(&mut little, 1, 1, 100, Timestamp(10_000));
        took(&mut little, 2, 1, 1, Timestamp(10_000));
        assert!(!quiet(&mut little, 2, 10_100));

        let mut soon = Shares::new(100);
        took(&mut soon, 1, 1, 100, Timestamp(10_000));
        took(&mut soon, 2, 1, 1, Timestamp(10_000));
        assert!(quiet(&mut soon, 2, 10_100), "as many as this engine was told are much");
    }

    #[test]
    fn only_a_session_with_places_to_spare_keeps_some() {
        assert_eq!([1, 7, 8, 32, 64, 256].map(kept), [0, 0, 1, 2, 4, 16]);
    }
}
