//! Room that sessions have offered: a start takes some of it, and claims its first step in its own commit.
//!
//! A poll says how much its worker can take. What it was not given yet is its offer, which stands while the poll waits
//! or claims: whatever is handed over meanwhile goes out with its answer, or with that of the session's next poll.

use std::collections::HashMap;
use std::sync::Arc;

use interlock_core::ids::{SessionId, TenantId};

use crate::sessions::SessionInfo;

#[derive(Default)]
pub struct Offers {
    offers: HashMap<SessionId, Offer>,
    /// Starts that have taken room and are not committed yet.
    taken: HashMap<SessionId, usize>,
}

struct Offer {
    poll: u64,
    info: Arc<SessionInfo>,
    room: usize,
}

impl Offers {
    /// What a poll for at most `max` steps has room for besides the starts that are on their way to it.
    pub fn room(&self, session: SessionId, max: usize) -> usize {
        max.saturating_sub(self.taken.get(&session).copied().unwrap_or(0))
    }

    /// The poll has this much room left.
    pub fn make(&mut self, session: SessionId, poll: u64, info: &Arc<SessionInfo>, room: usize) {
        self.offers.insert(session, Offer { poll, info: Arc::clone(info), room });
    }

    /// The session has finished a step and got no other for it: one more place, which the poll under way cannot know of.
    pub fn freed(&mut self, session: SessionId) {
        if let Some(offer) = self.offers.get_mut(&session) {
            offer.room += 1;
        }
    }

    /// The poll was answered, or its caller went away.
    pub fn ended(&mut self, session: SessionId, poll: u64) {
        if self.offers.get(&session).is_some_and(|offer| offer.poll == poll) {
            self.offers.remove(&session);
        }
    }

    /// Takes a place from the session that has the most room for this queue and tenant.
    pub fn take(&mut self, queue: &str, tenant: TenantId) -> Option<SessionId> {
        let fits = self.offers.iter_mut().filter(|(_, offer)| offer.fits(queue, tenant));
        let (session, offer) = fits.max_by_key(|(session, offer)| (offer.room, **session))?;
        offer.room -= 1;
        *self.taken.entry(*session).or_default() += 1;
        Some(*session)
    }

    /// The start is committed and handed over, or came to nothing.
    pub fn settle(&mut self, session: SessionId) {
        if let Some(taken) = self.taken.get_mut(&session) {
            *taken -= 1;
            if *taken == 0 {
                self.taken.remove(&session);
            }
        }
    }

    pub fn forget(&mut self, session: SessionId) {
        self.offers.remove(&session);
    }
}

impl Offer {
    fn fits(&self, queue: &str, tenant: TenantId) -> bool {
        self.room > 0
            && self.info.takes_work()
            && self.info.tenant.is_none_or(|only| only == tenant)
            && self.info.queues.iter().any(|name| name == queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const TENANT: TenantId = TenantId(Uuid::from_u128(1));

    fn session(number: u128) -> SessionId {
        SessionId(Uuid::from_u128(number))
    }

    fn offering(room: usize) -> Offers {
        let mut offers = Offers::default();
        offers.make(session(1), 1, &SessionInfo::new(None, vec!["q".into()], false), room);
        offers
    }

    #[test]
    fn room_is_given_once() {
        let mut offers = offering(2);
        assert_eq!(offers.take("q", TENANT), Some(session(1)));
        assert_eq!(offers.take("q", TENANT), Some(session(1)));
        assert_eq!(offers.take("q", TENANT), None);
        assert_eq!(offers.room(session(1), 2), 0, "both are still on their way");
        offers.settle(session(1));
        assert_eq!(offers.room(session(1), 2), 1);
        offers.freed(session(1));
        assert_eq!(offers.take("q", TENANT), Some(session(1)));
    }

    #[test]
    fn only_who_serves_the_queue_and_the_tenant_gets_it() {
        let mut offers = offering(1);
        offers.make(session(2), 2, &SessionInfo::new(Some(TENANT), vec!["other".into()], false), 5);
        assert_eq!(offers.take("nobody's", TENANT), None);
        assert_eq!(offers.take("other", TenantId(Uuid::from_u128(9))), None);
        assert_eq!(offers.take("other", TENANT), Some(session(2)));
    }

    #[test]
    fn the_roomiest_comes_first_and_a_draining_one_never() {
        let mut offers = offering(1);
        offers.make(session(2), 2, &SessionInfo::new(None, vec!["q".into()], false), 3);
        offers.make(session(3), 3, &SessionInfo::new(None, vec!["q".into()], true), 9);
        assert_eq!(offers.take("q", TENANT), Some(session(2)));
    }

    #[test]
    fn an_offer_ends_with_its_poll() {
        let mut offers = offering(5);
        offers.ended(session(1), 2);
        assert!(offers.take("q", TENANT).is_some(), "another poll's offer stands");
        offers.ended(session(1), 1);
        assert_eq!(offers.take("q", TENANT), None);
    }
}
