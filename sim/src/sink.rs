//! The outside world that effects act on. It honours keys where the class says that it does, counts everything, and
//! remembers of every call whether the caller learned what became of it. A worker that does not name its effects has keys
//! of its own: what an unsafe effect has done is counted by its scope, whichever worker performs it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use interlock_core::ids::{ReceiptId, RunId, TenantId};
use interlock_core::state::EffectClass;
use interlock_core::work::AttemptRef;

/// A call as it goes out.
#[derive(Debug, Clone)]
pub struct Call {
    pub at: AttemptRef,
    pub key: String,
    pub class: EffectClass,
    pub scope: Scope,
    /// The key is the engine's, and not the worker's own.
    pub is_named: bool,
}

/// What makes two effects the same one, whichever worker performs them.
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
    /// It never arrived, and the caller does not know.
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

/// What stands between the key of a claim and the number of an effect of its attempt.
pub const PART: char = '+';

/// The effects under a key, or under the key of their claim.
fn under<'a>(
    effects: &'a mut BTreeMap<(TenantId, String), Effect>,
    tenant: TenantId,
    key: &'a str,
) -> impl Iterator<Item = (&'a (TenantId, String), &'a mut Effect)> {
    let from = (tenant, key.to_owned());
    let under = effects.range_mut(from..).take_while(move |((of, found), _)| *of == tenant && found.starts_with(key));
    under.filter(move |((_, found), _)| found[key.len()..].is_empty() || found[key.len()..].starts_with(PART))
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
    /// Unsafe effects, under whichever key.
    deeds: BTreeMap<Scope, UnsafeEffect>,
    /// Steps that a rollback has begun to undo.
    undone: BTreeSet<(RunId, String)>,
    /// Attempts that are told that an effect did not happen, which an earlier attempt has had.
    refused_after: BTreeSet<(ReceiptId, u32)>,
    calls: u64,
}

impl State {
    /// Whether something has been sent that undoes the call's step.
    fn is_undone(&self, call: &Call) -> bool {
        self.undone.contains(&(call.at.run, call.scope.step.clone()))
    }
}

/// What an unsafe effect has done.
#[derive(Debug, Default)]
struct UnsafeEffect {
    happened: u32,
    /// Calls whose fate the caller does not know.
    unheard: u32,
}

#[derive(Debug, Default)]
struct Effect {
    happened: u32,
    /// Calls whose fate the caller does not know.
    unheard: u32,
    /// Of an unsafe one.
    scope: Option<Scope>,
    /// Attempts whose resolution was accepted: this effect did not happen.
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
            if call.is_named {
                let known = state.keys.entry(call.scope.clone()).or_insert_with(|| call.key.clone());
                if *known != call.key {
                    return Err(format!("P3: one effect under two keys: {known} and {} ({:?})", call.key, call.scope));
                }
            }
            if let Some(step) = call.scope.step.strip_prefix("rollback:") {
                state.undone.insert((call.at.run, step.to_owned()));
            } else if self.in_order && state.is_undone(call) {
                return Err(format!("P3: {} is sent after it was undone, by {:?}", call.key, call.at));
            }
            let effect = state.effects.entry((call.scope.tenant, call.key.clone())).or_default();
            effect.unheard += 1;
            if call.class != EffectClass::Unsafe {
                return Ok(());
            }
            effect.scope = Some(call.scope.clone());
            let deed = state.deeds.entry(call.scope.clone()).or_default();
            deed.unheard += 1;
            match (deed.happened, deed.unheard) {
                (0, 1) => Ok(()),
                (0, _) => Err(format!("P3: a blind retry of an unsafe effect: {}, by {:?}", call.key, call.at)),
                _ => Err(format!("P3: an unsafe effect is sent again: {}, by {:?}", call.key, call.at)),
            }
        })
    }

    /// The call has reached the other side, or was lost on its way.
    pub fn arrived(&self, call: &Call, fate: Fate) -> Result<(), String> {
        self.state(|state| {
            if fate.happens() && self.in_order && state.is_undone(call) {
                return Err(format!("P3: {} arrives after it was undone, by {:?}", call.key, call.at));
            }
            let effect = state.effects.entry((call.scope.tenant, call.key.clone())).or_default();
            // The world drops a repeat that carries a key it knows.
            if !fate.happens() || (effect.happened > 0 && call.class != EffectClass::Unsafe) {
                return Ok(());
            }
            effect.happened += 1;
            if call.class == EffectClass::Unsafe {
                let deed = state.deeds.entry(call.scope.clone()).or_default();
                deed.happened += 1;
                if deed.happened > 1 {
                    return Err(format!("P3: an unsafe effect happens twice: {}, by {:?}", call.key, call.at));
                }
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
            let State { effects, deeds, .. } = state;
            if let Some(effect) = effects.get_mut(&(tenant, key.to_owned())) {
                effect.unheard = effect.unheard.saturating_sub(1);
                if let Some(deed) = effect.scope.as_ref().and_then(|scope| deeds.get_mut(scope)) {
                    deed.unheard = deed.unheard.saturating_sub(1);
                }
            }
        });
    }

    /// A person looks whether it happened. What they found out is no longer unknown. The key of a claim stands for all
    /// effects of its attempt.
    pub fn look_into(&self, tenant: TenantId, key: &str) -> bool {
        self.state(|state| {
            let State { effects, deeds, .. } = state;
            let mut happened = false;
            for (_, effect) in under(effects, tenant, key) {
                effect.unheard = 0;
                happened |= effect.happened > 0;
                if let Some(deed) = effect.scope.as_ref().and_then(|scope| deeds.get_mut(scope)) {
                    deed.unheard = 0;
                }
            }
            happened
        })
    }

    /// The engine has believed that this attempt did not have the effect.
    pub fn believed_absent(&self, tenant: TenantId, key: &str, attempt: (RunId, u32)) {
        self.state(|state| {
            under(&mut state.effects, tenant, key).for_each(|(_, effect)| {
                effect.denied.insert(attempt);
            });
        });
    }

    /// An attempt is about to say that it has not had the effect.
    pub fn refused(&self, class: EffectClass, (tenant, key): (TenantId, &str), receipt: ReceiptId, attempt: u32) {
        self.state(|state| {
            // Of a read nothing can have become.
            if class != EffectClass::Read
                && state.effects.get(&(tenant, key.to_owned())).is_some_and(|effect| effect.happened > 0)
            {
                state.refused_after.insert((receipt, attempt));
            }
        });
    }

    /// Whether the attempt said so of an effect that an earlier one has had.
    pub fn was_refused_after(&self, receipt: ReceiptId, attempt: u32) -> bool {
        self.state(|state| state.refused_after.contains(&(receipt, attempt)))
    }

    /// The store is as it was before: what was believed since is forgotten, and the same attempts are handed out again.
    pub fn beliefs_are_lost(&self) {
        self.state(|state| state.effects.values_mut().for_each(|effect| effect.denied.clear()));
    }

    /// The keys of the receipts of a run's unsafe effects that have happened, or may have.
    pub fn unsafe_keys(&self, tenant: TenantId, root: RunId) -> Vec<String> {
        let is_of_run = |scope: &Scope| scope.tenant == tenant && scope.root == root;
        self.state(|state| {
            let of_run = state.effects.iter().filter(|(_, effect)| effect.scope.as_ref().is_some_and(is_of_run));
            let done = of_run.filter(|(_, effect)| effect.happened + effect.unheard > 0);
            done.map(|((_, key), _)| key.split(PART).next().unwrap_or_default().to_owned()).collect()
        })
    }

    pub fn happened(&self, tenant: TenantId, key: &str) -> u32 {
        self.state(|state| state.effects.get(&(tenant, key.to_owned())).map_or(0, |effect| effect.happened))
    }

    pub fn calls(&self) -> u64 {
        self.state(|state| state.calls)
    }
}
