//! Steps that were claimed for a session in the commit that made them ready, until its poll takes them along.

use std::collections::HashMap;

use interlock_core::ids::SessionId;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::work::{Assignment, AttemptRef};

use crate::Engine;

/// A worker that did not come back for so long may have lost the claim meanwhile.
const FRESH: Millis = Millis(1_000);

#[derive(Default)]
pub(crate) struct Handed(HashMap<SessionId, Vec<(Timestamp, Assignment)>>);

impl Handed {
    pub fn put(&mut self, session: SessionId, assignments: impl IntoIterator<Item = Assignment>, now: Timestamp) {
        for assignment in assignments {
            self.0.entry(session).or_default().push((now, assignment));
        }
    }

    pub fn take(&mut self, session: SessionId) -> Vec<(Timestamp, Assignment)> {
        self.0.remove(&session).unwrap_or_default()
    }

    pub fn forget(&mut self, session: SessionId) {
        self.0.remove(&session);
    }
}

impl Engine {
    /// Those that the session still holds: what lay here for long may have been given back, or given up, meanwhile.
    pub(crate) async fn still_held(&self, session: SessionId, handed: Vec<(Timestamp, Assignment)>) -> Vec<Assignment> {
        let now = self.now();
        let mut held = Vec::with_capacity(handed.len());
        for (since, assignment) in handed {
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
