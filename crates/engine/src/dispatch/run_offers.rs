//! Runs that sessions are asked to take as a whole, until their poll takes the question along. One that is lost here runs out
//! in the store, and another worker is asked.

use std::collections::{HashMap, HashSet};

use interlock_core::ids::SessionId;
use interlock_core::work::offer::RunOffer;

#[derive(Default)]
pub(super) struct RunOffers(HashMap<SessionId, Vec<RunOffer>>);

impl RunOffers {
    pub fn put(&mut self, session: SessionId, offer: RunOffer) {
        self.0.entry(session).or_default().push(offer);
    }

    pub fn has_some(&self, session: SessionId) -> bool {
        self.0.contains_key(&session)
    }

    pub fn take(&mut self, session: SessionId) -> Vec<RunOffer> {
        self.0.remove(&session).unwrap_or_default()
    }

    pub fn keep(&mut self, sessions: &HashSet<SessionId>) {
        self.0.retain(|session, _| sessions.contains(session));
    }
}
