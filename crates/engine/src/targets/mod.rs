//! What the server itself asks of other systems: the state that an action would change, for people who are asked about it, and
//! what has become of a call whose worker was lost. It reads, under the same rules and with the same secrets as the worker that would act, and never changes anything.
//!
//! A server asks only where it was given connections ([`Engine::reach_targets`]). Nothing waits for an answer: what cannot be
//! read is said, and neither allows nor forbids anything.

mod present;
mod probe;

use std::sync::{Arc, OnceLock};

use interlock_connectors::send::Caller;
use tokio::sync::Semaphore;

use crate::Engine;

/// Targets that are asked at once; what comes while so many are asked is left unread.
const ASKED_AT_ONCE_MAX: usize = 32;

#[derive(Debug)]
pub(crate) struct Targets {
    caller: OnceLock<Caller>,
    places: Arc<Semaphore>,
    pub doubts: probe::Doubts,
}

impl Default for Targets {
    fn default() -> Self {
        let places = Arc::new(Semaphore::new(ASKED_AT_ONCE_MAX));
        Self { caller: OnceLock::new(), places, doubts: probe::Doubts::default() }
    }
}

impl Engine {
    /// Lets this server ask other systems, by these connections. The first ones count.
    pub fn reach_targets(&self, caller: Caller) {
        let _ = self.0.targets.caller.set(caller);
    }

    pub(crate) fn reaches_targets(&self) -> bool {
        self.0.targets.caller.get().is_some()
    }
}
