//! Leave that stands: a bundle allows an action of a workflow version whatever is bound to it, so it need not be asked
//! again for every run.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use interlock_core::governance::action::Action;
use interlock_core::json::Hash;
use interlock_core::run::Run;
use interlock_core::state::EffectClass;

/// Past this many plans the memory is emptied, which costs asking once more.
const PLANS_MAX: usize = 4_096;
/// Different actions of one step that are remembered.
const ACTIONS_MAX: usize = 64;

#[derive(Default)]
pub(crate) struct StandingLeave(RwLock<HashMap<(Hash, Hash), Steps>>);

/// By position: what is done there, and in which class.
type Steps = HashMap<u32, Vec<(String, EffectClass)>>;

impl StandingLeave {
    /// Whether the bundle is known to allow the action in every run of the plan. What undoes something is no part of a
    /// plan.
    pub fn allows(&self, bundle: Hash, action: &Action, run: &Run) -> bool {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let Some(steps) = known.get(&(bundle, run.header.plan_hash.0)).filter(|_| is_of_plan(action, run)) else {
            return false;
        };
        let same =
            |(operation, effect): &(String, EffectClass)| *operation == action.operation && *effect == action.effect;
        steps.get(&action.step).is_some_and(|actions| actions.iter().any(same))
    }

    pub fn note(&self, bundle: Hash, plan: Hash, action: &Action) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= PLANS_MAX {
            known.clear();
        }
        let actions = known.entry((bundle, plan)).or_default().entry(action.step).or_default();
        let new = (action.operation.clone(), action.effect);
        if actions.len() < ACTIONS_MAX && !actions.contains(&new) {
            actions.push(new);
        }
    }
}

pub(super) fn is_of_plan(action: &Action, run: &Run) -> bool {
    (action.step as usize) < run.plan.steps.len()
}
