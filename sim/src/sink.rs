//! The outside world that effects act on. It honours keys where the class says that it does, counts everything, and
//! remembers of every call whether the caller learned what became of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use interlock_core::ids::{RunId, TenantId};
use interlock_core::state::EffectClass;
use interlock_core::work::AttemptRef;

/// A call as it goes out.
#[derive(Debug, Clone)]
pub struct Call {
    pub at: AttemptRef,
    pub key: String,
    pub class: EffectClass,
    pub scope: Scope,
}

/// What makes two effects the same one, whoever performs them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    pub tenant: TenantId,
    pub root: RunId,
    pub step: String,
    pub iteration: u32,
    pub number: u32,
}

/// What the world does with a call, and what of it gets back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Done,
    Refused,
    /// It happened, and the answer was lost.
    DoneUnheard,
    /// It never arrived, and nobody knows.
    LostUnheard,
}

impl Fate {
    const fn happens(self) -> bool {
        matches!(self, Self::Done | Self::DoneUnheard)
    }

    pub const fn is_heard(self) -> bool {
        matches!(self, Self::Done | Self::Refused)
    }
}

pub struct Sink {
    state: Mutex<State>,
    /// Whether a step's effect may not come after its undoing. A clock that jumps ends leases early, and a restore
    /// brings steps back: only without them does that hold.
    in_order: bool,
}

#[derive(Default)]
struct State {
    /// By tenant and key.
    effects: BTreeMap<(TenantId, String), Effect>,
    keys: BTreeMap<Scope, String>,
    /// Steps that a rollback has begun to undo.
    undone: BTreeSet<(RunId, String)>,
    calls: u64,
}

#[derive(Debug, Default)]
struct Effect {
    happened: u32,
    /// Calls whose fate nobody has found out.
    unheard: u32,
    is_unsafe: bool,
    /// Attempts of which somebody was believed that they did not have it.
    denied: BTreeSet<(RunId, u32)>,
}

impl Sink {
    pub fn new(in_order: bool) -> Self {
        Self { state: Mutex::default(), in_order }
    }

    fn state<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A call leaves its worker. An error is a broken promise of the engine.
    pub fn sent(&self, call: &Call) -> Result<(), String> {
        self.state(|state| {
            state.calls += 1;
            let known = state.keys.entry(call.scope.clone()).or_insert_with(|| call.key.clone());
            if *known != call.key {
                return Err(format!("P3: one effect under two keys: {known} and {} ({:?})", call.key, call.scope));
            }
            if let Some(step) = call.scope.step.strip_prefix("rollback:") {
                state.undone.insert((call.at.run, step.to_owned()));
            } else if self.in_order && state.undone.contains(&(call.at.run, call.scope.step.clone())) {
                return Err(format!("P3: {} is sent after it was undone, by {:?}", call.key, call.at));
            }
            let effect = state.effects.entry((call.scope.tenant, call.key.clone())).or_default();
            effect.unheard += 1;
            if call.class != EffectClass::Unsafe {
                return Ok(());
            }
            effect.is_unsafe = true;
            match (effect.happened, effect.unheard) {
                (0, 1) => Ok(()),
                (0, _) => Err(format!("P3: a blind retry of an unsafe effect: {}, by {:?}", call.key, call.at)),
                _ => Err(format!("P3: an unsafe effect is sent again: {}, by {:?}", call.key, call.at)),
            }
        })
    }

    /// The call has reached the other side, or was lost on its way.
    pub fn arrived(&self, call: &Call, fate: Fate) -> Result<(), String> {
        self.state(|state| {
            let effect = state.effects.entry((call.scope.tenant, call.key.clone())).or_default();
            // The world drops a repeat that carries a key it knows.
            if !fate.happens() || (effect.happened > 0 && call.class != EffectClass::Unsafe) {
                return Ok(());
            }
            effect.happened += 1;
            if call.class == EffectClass::Unsafe && effect.happened > 1 {
                return Err(format!("P3: an unsafe effect happens twice: {}, by {:?}", call.key, call.at));
            }
            if effect.denied.range((call.at.run, call.at.attempt)..=(call.at.run, u32::MAX)).next().is_some() {
                let (key, at) = (&call.key, call.at);
                return Err(format!("P3: {key} happens after everybody believed that it did not, by {at:?}"));
            }
            Ok(())
        })
    }

    /// The answer has reached the caller.
    pub fn heard(&self, tenant: TenantId, key: &str) {
        self.state(|state| {
            if let Some(effect) = state.effects.get_mut(&(tenant, key.to_owned())) {
                effect.unheard = effect.unheard.saturating_sub(1);
            }
        });
    }

    /// A person looks whether it happened. What they found out is no longer unknown.
    pub fn look_into(&self, tenant: TenantId, key: &str) -> bool {
        self.state(|state| {
            let Some(effect) = state.effects.get_mut(&(tenant, key.to_owned())) else { return false };
            effect.unheard = 0;
            effect.happened > 0
        })
    }

    /// The engine has believed that this attempt did not have the effect.
    pub fn believed_absent(&self, tenant: TenantId, key: &str, attempt: (RunId, u32)) {
        self.state(|state| {
            if let Some(effect) = state.effects.get_mut(&(tenant, key.to_owned())) {
                effect.denied.insert(attempt);
            }
        });
    }

    /// The store is as it was before: what was believed since is forgotten, and the same attempts are handed out again.
    pub fn beliefs_are_lost(&self) {
        self.state(|state| state.effects.values_mut().for_each(|effect| effect.denied.clear()));
    }

    /// The keys of a run's unsafe effects that have happened, or may have.
    pub fn unsafe_keys(&self, tenant: TenantId, root: RunId) -> Vec<String> {
        self.state(|state| {
            let of_run = state.keys.iter().filter(|(scope, _)| scope.tenant == tenant && scope.root == root);
            of_run
                .filter(|(_, key)| {
                    let effect = state.effects.get(&(tenant, (*key).clone()));
                    effect.is_some_and(|effect| effect.is_unsafe && effect.happened + effect.unheard > 0)
                })
                .map(|(_, key)| key.clone())
                .collect()
        })
    }

    pub fn happened(&self, tenant: TenantId, key: &str) -> u32 {
        self.state(|state| state.effects.get(&(tenant, key.to_owned())).map_or(0, |effect| effect.happened))
    }

    pub fn calls(&self) -> u64 {
        self.state(|state| state.calls)
    }
}
