//! Steps that were claimed for a session in the commit that made them ready, until its poll takes them along.

use std::collections::{HashMap, HashSet};

use interlock_core::ids::SessionId;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::work::{Assignment, AttemptRef};

use crate::Engine;

/// A worker that did not come back for so long may have lost the claim meanwhile.
const FRESH: Millis = Millis(1_000);

#[derive(Default)]
pub(crate) struct PendingDeliveries(HashMap<SessionId, Vec<(Timestamp, Assignment)>>);

impl PendingDeliveries {
    pub fn put(&mut self, session: SessionId, assignments: impl IntoIterator<Item = Assignment>, now: Timestamp) {
        for assignment in assignments {
            self.0.entry(session).or_default().push((now, assignment));
        }
    }

    /// Takes at most `max`, the oldest first; the rest stays for the session's next poll.
    pub fn take(&mut self, session: SessionId, max: usize) -> Vec<(Timestamp, Assignment)> {
        let Some(waiting) = self.0.get_mut(&session) else { return Vec::new() };
        if waiting.len() > max {
            return waiting.drain(..max).collect();
        }
        self.0.remove(&session).unwrap_or_default()
    }

    /// Takes one out, if it is still here.
    pub fn remove(&mut self, session: SessionId, at: AttemptRef) -> bool {
        let Some(waiting) = self.0.get_mut(&session) else { return false };
        let found = waiting.iter().position(|(_, assignment)| assignment.at == at);
        found.map(|index| waiting.remove(index)).is_some()
    }

    pub fn keep(&mut self, sessions: &HashSet<SessionId>) {
        self.0.retain(|session, _| sessions.contains(session));
    }

    pub fn forget(&mut self, session: SessionId) {
        self.0.remove(&session);
    }
}

impl Engine {
    /// Those that the session still holds: what lay here for long may have been given back, or given up, meanwhile.
    pub(crate) async fn still_held(
        &self,
        session: SessionId,
        deliveries: Vec<(Timestamp, Assignment)>,
    ) -> Vec<Assignment> {
        let now = self.now();
        let mut held = Vec::with_capacity(deliveries.len());
        for (since, assignment) in deliveries {
            if now.since(since) < FRESH || self.holds_claim(session, assignment.at).await {
                held.push(assignment);
            }
        }
        held
    }

    async fn holds_claim(&self, session: SessionId, at: AttemptRef) -> bool {
        let cell = self.0.cells.get(at.tenant, at.run);
        let mut cell = cell.lock().await;
        if self.load(&mut cell, at.tenant, at.run).await.is_err() {
            return false;
        }
        let Some(run) = cell.run.as_deref().filter(|run| !run.state.is_terminal()) else { return false };
        let step = run.current();
        run.position == at.position && step.attempt == at.attempt && step.session() == Some(session)
    }
}
