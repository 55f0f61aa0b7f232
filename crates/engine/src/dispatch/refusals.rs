//! Sessions that the policy keeps from steps, as this server has heard. A run notes only so many of them: those beyond are known
//! here alone, so that they do not come for the step again and again while it waits for a worker that may have it.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use interlock_core::ids::{RunId, SessionId};
use interlock_core::json::Hash;
use interlock_core::run::Run;

/// Steps of which refusals are remembered. One that is forgotten has its workers judged once more.
const STEPS_MAX: usize = 1_000;

/// A step that waits for a worker, and the rules under which some may not have it. Whom they kept from one attempt they may let
/// have the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RefusedStep {
    run: RunId,
    position: u32,
    iteration: u32,
    attempt: u32,
    bundle: Hash,
}

impl RefusedStep {
    /// The step that the run stands at.
    pub fn of(run: &Run, bundle: Hash) -> Self {
        let (position, step) = (run.position, run.current());
        Self { run: run.id, position, iteration: step.iteration, attempt: step.attempt, bundle }
    }
}

#[derive(Default)]
pub(super) struct Refusals(BTreeMap<RefusedStep, BTreeSet<SessionId>>);

impl Refusals {
    pub fn note(&mut self, step: RefusedStep, session: SessionId) {
        if !self.0.contains_key(&step) && self.0.len() >= STEPS_MAX {
            // Ids of runs begin with their time: the oldest goes.
            self.0.pop_first();
        }
        self.0.entry(step).or_default().insert(session);
    }

    pub fn of(&self, step: &RefusedStep) -> BTreeSet<SessionId> {
        self.0.get(step).cloned().unwrap_or_default()
    }

    /// Whom the step that the run stands at was refused, by whichever rules.
    pub fn under_any_rules(&self, run: &Run) -> BTreeSet<SessionId> {
        let (first, last) = (RefusedStep::of(run, Hash([0; 32])), RefusedStep::of(run, Hash([u8::MAX; 32])));
        self.0.range(first..=last).flat_map(|(_, sessions)| sessions).copied().collect()
    }

    /// Forgets what sessions other than these were refused.
    pub fn keep(&mut self, sessions: &HashSet<SessionId>) {
        self.retain(|session| sessions.contains(session));
    }

    pub fn forget(&mut self, session: SessionId) {
        self.retain(|other| *other != session);
    }

    fn retain(&mut self, keeps: impl Fn(&SessionId) -> bool) {
        self.0.retain(|_, sessions| {
            sessions.retain(&keeps);
            !sessions.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn step(run: u128, attempt: u32) -> RefusedStep {
        let (run, bundle) = (RunId(Uuid::from_u128(run)), Hash([1; 32]));
        RefusedStep { run, position: 0, iteration: 0, attempt, bundle }
    }

    fn session(number: u128) -> SessionId {
        SessionId(Uuid::from_u128(number))
    }

    #[test]
    fn whom_one_attempt_was_refused_may_come_for_the_next() {
        let mut refusals = Refusals::default();
        for number in 0..100 {
            refusals.note(step(1, 1), session(number));
        }
        assert_eq!(refusals.of(&step(1, 1)).len(), 100);
        assert!(refusals.of(&step(1, 2)).is_empty() && refusals.of(&step(2, 1)).is_empty());
        refusals.forget(session(7));
        assert!(!refusals.of(&step(1, 1)).contains(&session(7)));
        refusals.keep(&HashSet::from([session(3)]));
        assert_eq!(refusals.of(&step(1, 1)), BTreeSet::from([session(3)]));
        refusals.keep(&HashSet::new());
        assert!(refusals.0.is_empty());
    }

    #[test]
    fn so_many_steps_are_remembered() {
        let mut refusals = Refusals::default();
        for run in 0..=STEPS_MAX as u128 {
            refusals.note(step(run, 1), session(1));
        }
        assert_eq!(refusals.0.len(), STEPS_MAX);
        assert!(refusals.of(&step(0, 1)).is_empty(), "the oldest is forgotten");
    }
}
