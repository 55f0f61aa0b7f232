//! Room that sessions have offered: a start takes some of it, and claims its first step in its own commit.
//!
//! A poll says how much its worker can take. What it was not given yet is its offer, which stands while the poll waits
//! or claims, and for a moment after it was given something, since a worker with room left comes back at once: whatever
//! is handed over meanwhile goes out with its answer, or with that of the session's next poll.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use interlock_core::ids::{SessionId, TenantId};
use interlock_core::plan::StepSpec;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::work::Skills;

use super::session::SessionInfo;

/// How long an offer stands once its poll was answered with work.
const OFFER_KEPT: Millis = Millis(20);

#[derive(Default)]
pub struct Offers {
    offers: HashMap<SessionId, Offer>,
    /// Starts and claims that have taken room and are not committed yet.
    taken: HashMap<SessionId, usize>,
}

struct Offer {
    poll: u64,
    info: Arc<SessionInfo>,
    room: usize,
    /// How many steps the session has finished since it asked.
    freed: usize,
    /// It asked for more than one step.
    several: bool,
    /// Set once the poll was answered.
    until: Option<Timestamp>,
}

/// How a start asks for a place.
pub struct PlaceRequest {
    /// How many places others will take.
    pub ahead: usize,
    /// The tenant is over its share.
    pub over: bool,
    pub now: Timestamp,
}

impl Offers {
    /// What a poll for at most `max` steps has room for besides what is on its way to it.
    pub fn room(&self, session: SessionId, poll: u64, max: usize) -> usize {
        (max + self.freed_since(session, poll)).saturating_sub(self.taken.get(&session).copied().unwrap_or(0))
    }

    /// The poll has this much room left, and takes `taken` claims of its own with it.
    pub fn make(&mut self, session: SessionId, poll: u64, info: &Arc<SessionInfo>, room: usize, taken: usize) {
        let freed = self.freed_since(session, poll);
        let several = room + taken > 1;
        self.offers.insert(session, Offer { poll, info: Arc::clone(info), room, freed, several, until: None });
        if taken > 0 {
            *self.taken.entry(session).or_default() += taken;
        }
    }

    fn freed_since(&self, session: SessionId, poll: u64) -> usize {
        self.offers.get(&session).filter(|offer| offer.poll == poll).map_or(0, |offer| offer.freed)
    }

    /// The session has finished a step and got no other for it: one more place, which the poll under way cannot know of.
    /// Where none is under way, it counts for a worker that takes several at a time: one that takes a single step may
    /// be done with it, and not come back.
    pub fn freed(&mut self, session: SessionId) {
        let comes_back = |offer: &&mut Offer| offer.until.is_none() || offer.several;
        if let Some(offer) = self.offers.get_mut(&session).filter(comes_back) {
            offer.room += 1;
            offer.freed += 1;
        }
    }

    /// The poll was answered with work.
    pub fn answered(&mut self, session: SessionId, poll: u64, now: Timestamp) {
        if let Some(offer) = self.offers.get_mut(&session).filter(|offer| offer.poll == poll) {
            offer.until = Some(now + OFFER_KEPT);
        }
    }

    /// The poll is over: it was answered, or its caller went away.
    pub fn ended(&mut self, session: SessionId, poll: u64) {
        if self.offers.get(&session).is_some_and(|offer| offer.poll == poll && offer.until.is_none()) {
            self.offers.remove(&session);
        }
    }

    /// Takes a place for this step of this tenant, if there are more than others will take: of a session whose poll waits
    /// rather than of one that was just answered, and then of the one that has the most room.
    pub fn take(&mut self, spec: &StepSpec, tenant: TenantId, asked: PlaceRequest) -> Option<(SessionId, Arc<Skills>)> {
        let PlaceRequest { ahead, over, now } = asked;
        let room_of = |offer: &Offer| if offer.fits(spec, tenant, now) { offer.room_for(over) } else { 0 };
        let with_room = self.offers.iter().map(|(session, offer)| (room_of(offer), offer.until.is_none(), *session));
        let with_room: Vec<_> = with_room.filter(|(room, ..)| *room > 0).collect();
        if with_room.iter().map(|(room, ..)| room).sum::<usize>() <= ahead {
            return None;
        }
        let (.., session) = with_room.into_iter().max_by_key(|(room, waits, session)| (*waits, *room, *session))?;
        let offer = self.offers.get_mut(&session)?;
        offer.room -= 1;
        let skills = Arc::clone(&offer.info.skills);
        *self.taken.entry(session).or_default() += 1;
        Some((session, skills))
    }

    /// Of the sessions whose poll waits and that can take a run, the one that has the most room for its size; of several such the
    /// nearest, and then one without a fault. One that was offline a moment ago comes after all others. None where the asking
    /// session stands as well.
    pub fn freer(
        &self,
        asking: &SessionInfo,
        now: Timestamp,
        can_take: impl Fn(&SessionInfo) -> bool,
    ) -> Option<Arc<SessionInfo>> {
        // The place that the run itself would take is gone from its offer.
        let own = asking.rank(self.offers.get(&asking.id).map_or(1, |offer| offer.room + 1), now);
        let waiting = self.offers.iter().filter(|(_, offer)| offer.until.is_none() && offer.room > 0);
        let ranked = waiting.map(|(session, offer)| (offer.info.rank(offer.room, now), *session, &offer.info));
        let better = ranked.filter(|(rank, session, info)| {
            *session != asking.id && *rank > own && info.takes_work() && can_take(info)
        });
        better.max_by_key(|(rank, session, _)| (*rank, *session)).map(|(.., info)| Arc::clone(info))
    }

    /// So many starts or claims are committed and handed over, or came to nothing.
    pub fn settle(&mut self, session: SessionId, settled: usize) {
        if let Some(taken) = self.taken.get_mut(&session) {
            *taken = taken.saturating_sub(settled);
            if *taken == 0 {
                self.taken.remove(&session);
            }
        }
    }

    pub fn forget(&mut self, session: SessionId) {
        self.offers.remove(&session);
    }

    pub fn keep(&mut self, sessions: &HashSet<SessionId>) {
        self.offers.retain(|session, _| sessions.contains(session));
    }
}

impl Offer {
    /// What is left for a tenant that is over its share, or for one that is not.
    fn room_for(&self, over: bool) -> usize {
        if over { self.room.saturating_sub(self.info.kept()) } else { self.room }
    }

    fn fits(&self, spec: &StepSpec, tenant: TenantId, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until) && self.info.takes_work() && self.info.takes_at_once(tenant, spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const TENANT: TenantId = TenantId(Uuid::from_u128(1));
    const NOW: Timestamp = Timestamp(1_000);
    const AT_ONCE: PlaceRequest = PlaceRequest { ahead: 0, over: false, now: NOW };

    fn take(offers: &mut Offers, queue: &str, tenant: TenantId, asked: PlaceRequest) -> Option<SessionId> {
        let spec = StepSpec { queue: queue.into(), ..StepSpec::task("a", "work") };
        offers.take(&spec, tenant, asked).map(|(session, _)| session)
    }

    fn session(number: u128) -> SessionId {
        SessionId(Uuid::from_u128(number))
    }

    fn offering(room: usize) -> Offers {
        let mut offers = Offers::default();
        offers.make(session(1), 1, &SessionInfo::new(None, vec!["q".into()], 1, false), room, 0);
        offers
    }

    #[test]
    fn the_freest_session_that_can_take_a_run_is_asked() {
        let of_four = || SessionInfo::new(None, vec!["q".into()], 4, false);
        let asking = of_four();
        let mut offers = Offers::default();
        offers.make(session(1), 1, &of_four(), 2, 0);
        offers.make(session(2), 1, &of_four(), 3, 0);
        let best = Arc::clone(&offers.offers[&session(2)].info);
        assert!(offers.freer(&asking, NOW, |_| true).is_some_and(|found| Arc::ptr_eq(&found, &best)));
        let next = offers.freer(&asking, NOW, |info| !std::ptr::eq(info, &raw const *best));
        assert!(next.is_some_and(|found| !Arc::ptr_eq(&found, &best)));
        assert!(offers.freer(&asking, NOW, |_| false).is_none());
        // One that was just answered may not come back for the question in time.
        offers.answered(session(2), 1, NOW);
        offers.answered(session(1), 1, NOW);
        assert!(offers.freer(&asking, NOW, |_| true).is_none());
        // The one that asks is not passed over for another that is as free.
        let mut alike = Offers::default();
        alike.make(asking.id, 1, &asking, 2, 1);
        alike.make(session(1), 1, &of_four(), 3, 0);
        assert!(alike.freer(&asking, NOW, |_| true).is_none());
        // Of those that are as free, the nearest.
        let near = of_four();
        near.set_round_trip(Millis(3));
        alike.make(session(2), 1, &near, 3, 0);
        assert!(alike.freer(&asking, NOW, |_| true).is_some_and(|found| Arc::ptr_eq(&found, &near)));
    }

    #[test]
    fn who_was_offline_a_moment_ago_is_asked_after_all_others() {
        let of_four = || SessionInfo::new(None, vec!["q".into()], 4, false);
        let (back, stays) = (of_four(), of_four());
        back.ask_last_until(NOW + Millis(1));
        // It has come for the run, and has much more room.
        let mut offers = Offers::default();
        offers.make(back.id, 1, &back, 3, 1);
        offers.make(session(1), 1, &stays, 1, 0);
        assert!(offers.freer(&back, NOW, |_| true).is_some_and(|found| Arc::ptr_eq(&found, &stays)));
        assert!(offers.freer(&back, NOW, |_| false).is_none(), "it is asked where no other can take the run");
        // Nor is one that was there passed over for it.
        let mut offers = Offers::default();
        offers.make(stays.id, 1, &stays, 0, 1);
        offers.make(session(1), 1, &back, 4, 0);
        assert!(offers.freer(&stays, NOW, |_| true).is_none());
        let later = NOW + Millis(1);
        assert!(offers.freer(&stays, later, |_| true).is_some_and(|found| Arc::ptr_eq(&found, &back)));
    }

    #[test]
    fn room_is_given_once() {
        let mut offers = offering(2);
        assert_eq!(take(&mut offers, "q", TENANT, AT_ONCE), Some(session(1)));
        assert_eq!(take(&mut offers, "q", TENANT, AT_ONCE), Some(session(1)));
        assert_eq!(take(&mut offers, "q", TENANT, AT_ONCE), None);
        assert_eq!(offers.room(session(1), 1, 2), 0, "both are still on their way");
        offers.settle(session(1), 1);
        assert_eq!(offers.room(session(1), 1, 2), 1);
        offers.freed(session(1));
        assert_eq!(offers.room(session(1), 1, 2), 2, "the poll could not know");
        assert_eq!(offers.room(session(1), 2, 2), 1, "the next one did");
        assert_eq!(take(&mut offers, "q", TENANT, AT_ONCE), Some(session(1)));
    }

    #[test]
    fn only_who_serves_the_queue_and_the_tenant_gets_it() {
        let mut offers = offering(1);
        offers.make(session(2), 2, &SessionInfo::new(Some(TENANT), vec!["other".into()], 1, false), 5, 0);
        assert_eq!(take(&mut offers, "nobody's", TENANT, AT_ONCE), None);
        assert_eq!(take(&mut offers, "other", TenantId(Uuid::from_u128(9)), AT_ONCE), None);
        assert_eq!(take(&mut offers, "other", TENANT, AT_ONCE), Some(session(2)));
    }

    #[test]
    fn the_roomiest_comes_first_and_a_draining_one_never() {
        let mut offers = offering(1);
        offers.make(session(2), 2, &SessionInfo::new(None, vec!["q".into()], 1, false), 3, 0);
        offers.make(session(3), 3, &SessionInfo::new(None, vec!["q".into()], 1, true), 9, 0);
        assert_eq!(take(&mut offers, "q", TENANT, AT_ONCE), Some(session(2)));
    }

    #[test]
    fn an_offer_ends_with_its_poll() {
        let mut offers = offering(5);
        offers.ended(session(1), 2);
        assert!(take(&mut offers, "q", TENANT, AT_ONCE).is_some(), "another poll's offer stands");
        offers.ended(session(1), 1);
        assert_eq!(take(&mut offers, "q", TENANT, AT_ONCE), None);
    }

    #[test]
    fn an_offer_stands_for_a_moment_after_it_was_answered() {
        let mut offers = offering(5);
        offers.answered(session(1), 1, NOW);
        offers.ended(session(1), 1);
        assert!(
            take(&mut offers, "q", TENANT, PlaceRequest { now: NOW + Millis(OFFER_KEPT.0 - 1), ..AT_ONCE }).is_some()
        );
        assert_eq!(take(&mut offers, "q", TENANT, PlaceRequest { now: NOW + OFFER_KEPT, ..AT_ONCE }), None);
        offers.make(session(2), 2, &SessionInfo::new(None, vec!["q".into()], 1, false), 1, 0);
        assert_eq!(
            take(&mut offers, "q", TENANT, AT_ONCE),
            Some(session(2)),
            "one that waits is better, whatever its room"
        );
    }

    #[test]
    fn a_worker_that_takes_single_steps_offers_nothing_until_it_asks_again() {
        for (taken, expected) in [(1, None), (2, Some(session(1)))] {
            let mut offers = Offers::default();
            offers.make(session(1), 1, &SessionInfo::new(None, vec!["q".into()], 9, false), 0, taken);
            offers.answered(session(1), 1, NOW);
            offers.ended(session(1), 1);
            offers.freed(session(1));
            assert_eq!(take(&mut offers, "q", TENANT, AT_ONCE), expected, "it asked for {taken}");
        }
    }

    #[test]
    fn what_others_will_take_is_not_given() {
        let mut offers = offering(2);
        assert_eq!(take(&mut offers, "q", TENANT, PlaceRequest { ahead: 2, ..AT_ONCE }), None);
        assert!(take(&mut offers, "q", TENANT, PlaceRequest { ahead: 1, ..AT_ONCE }).is_some());
        assert_eq!(take(&mut offers, "q", TENANT, PlaceRequest { ahead: 1, ..AT_ONCE }), None);
    }

    #[test]
    fn who_is_over_its_share_leaves_the_last_places() {
        let mut offers = Offers::default();
        offers.make(session(1), 1, &SessionInfo::new(None, vec!["q".into()], 32, false), 3, 0);
        let mut given = |over| take(&mut offers, "q", TENANT, PlaceRequest { over, ..AT_ONCE });
        assert_eq!(given(true), Some(session(1)));
        assert_eq!(given(true), None);
        assert_eq!(given(false), Some(session(1)));
        assert_eq!(given(false), Some(session(1)));
        assert_eq!(given(false), None);
    }
}
