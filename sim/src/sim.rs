//! One simulated world: everything that the actors share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use interlock_core::ids::TenantId;
use interlock_engine::payloads::Objects;
use interlock_engine::{EncodedPlan, EngineError};
use interlock_store::{OutboxMessage, ReadError, Store, Tenant};
use tokio::sync::Notify;

/// More rows than any simulated world has.
pub const ALL: usize = 10_000;

use crate::archive::Archive;
use crate::books::Books;
use crate::check::Ledger;
use crate::damage::Damage;
use crate::dice::Dice;
use crate::given::GivenInputs;
use crate::hosts::Hosts;
use crate::sink::Sink;
use crate::swarm::{Fault, Swarm};
use crate::tally::Tally;
use crate::trace::{Trace, say};
use crate::triggers::Triggers;

pub struct Sim {
    pub swarm: Swarm,
    pub trace: Trace,
    pub tally: Tally,
    pub sink: Sink,
    pub hosts: Hosts,
    pub archive: Archive,
    pub damage: Damage,
    pub tenants: Vec<Tenant>,
    pub workflows: Vec<Arc<EncodedPlan>>,
    pub given: GivenInputs,
    /// Where payloads are that are too long for a row. It outlives every engine, as a bucket would.
    pub objects: Objects,
    /// The database, past all faults.
    checks: OnceLock<Store>,
    triggers: OnceLock<Triggers>,
    books: Mutex<Books>,
    ledger: Mutex<Ledger>,
    calm: AtomicBool,
    nonces: AtomicU64,
    broken: Mutex<Option<String>>,
    stop: Notify,
}

impl Sim {
    pub fn new(
        swarm: Swarm,
        (hosts, archive, damage): (Hosts, Archive, Damage),
        trace: Trace,
        tenants: Vec<Tenant>,
        workflows: Vec<Arc<EncodedPlan>>,
    ) -> Self {
        let caps: BTreeMap<TenantId, _> = tenants.iter().map(|tenant| (tenant.id, tenant.caps)).collect();
        let limits =
            workflows.iter().map(|encoded| (encoded.plan.workflow.clone(), encoded.plan.rules.caps())).collect();
        Self {
            sink: Sink::new(swarm.rate(Fault::ClockJump) == 0.0 && swarm.rate(Fault::Restore) == 0.0),
            swarm,
            trace,
            tally: Tally::default(),
            hosts,
            archive,
            damage,
            tenants,
            workflows,
            given: GivenInputs::default(),
            objects: Objects::memory(),
            checks: OnceLock::new(),
            triggers: OnceLock::new(),
            books: Mutex::default(),
            ledger: Mutex::new(Ledger::new(caps, limits)),
            calm: AtomicBool::new(false),
            nonces: AtomicU64::new(0),
            broken: Mutex::default(),
            stop: Notify::new(),
        }
    }

    pub fn set_checks(&self, store: Store) {
        let _ = self.checks.set(store);
    }

    /// The database, past all faults. There before any actor is.
    pub fn database(&self) -> &Store {
        self.checks.get().expect("it is opened before the actors start")
    }

    pub fn set_triggers(&self, triggers: Triggers) {
        let _ = self.triggers.set(triggers);
    }

    /// What starts runs by itself. There before any actor is.
    pub fn triggers(&self) -> &Triggers {
        self.triggers.get().expect("they are set up before the actors start")
    }

    /// The plans of all workflows, those of clients and those that start by themselves.
    pub fn plans(&self) -> impl Iterator<Item = &Arc<EncodedPlan>> {
        self.workflows.iter().chain(&self.triggers().plans)
    }

    pub fn books<T>(&self, write: impl FnOnce(&mut Books) -> T) -> T {
        write(&mut self.books.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn ledger<T>(&self, write: impl FnOnce(&mut Ledger) -> T) -> T {
        write(&mut self.ledger.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The queue of a step, of its rollback, or of what verifies that.
    pub fn queue_of(&self, workflow: &str, step: &str) -> Option<&String> {
        let plan = &self.plans().find(|known| known.plan.workflow == workflow)?.plan;
        let key = step.strip_prefix("rollback:").or(step.strip_prefix("verify:")).unwrap_or(step);
        plan.steps.iter().find(|spec| spec.key == key).map(|spec| &spec.queue)
    }

    /// A number that nothing else in this world has.
    pub fn next_nonce(&self) -> u64 {
        self.nonces.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether the faults are over.
    pub fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    pub fn become_calm(&self) {
        self.calm.store(true, Ordering::Relaxed);
        say!(self, "sim", "the faults are over");
    }

    /// Whether a fault happens here and now.
    pub fn strikes(&self, fault: Fault, dice: &Dice) -> bool {
        let rate = self.swarm.rate(fault);
        rate > 0.0 && !self.is_calm() && dice.chance(rate)
    }

    /// The same, and it is counted.
    pub fn fires(&self, fault: Fault, dice: &Dice) -> bool {
        let fires = self.strikes(fault, dice);
        if fires {
            self.tally.count(fault.name());
        }
        fires
    }

    /// A promise is broken: the seed has failed.
    pub fn broken(&self, what: String) {
        let mut broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        if broken.is_none() {
            say!(self, "sim", "BROKEN: {what}");
            *broken = Some(what);
            self.stop.notify_one();
        }
    }

    pub fn what_broke(&self) -> Option<String> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until something is broken.
    pub async fn until_broken(&self) {
        self.stop.notified().await;
    }

    /// The faults here are transient, so no caller must ever be told that the store itself is at its end.
    pub fn must_be_lawful(&self, error: &EngineError) {
        if matches!(error, EngineError::Read(ReadError::Corrupt(_))) && self.damage.is_any() {
            return;
        }
        if matches!(error, EngineError::Store(_) | EngineError::Read(_) | EngineError::Refused(_)) {
            self.broken(format!("an error that cannot happen here reached a caller: {error}"));
        }
    }

    /// After every commit: who holds what.
    pub async fn look_at_claims(&self) {
        if let Err(what) = crate::check::claims(self).await {
            self.broken(what);
        }
    }

    pub fn delivered(&self, message: &OutboxMessage) {
        self.tally.count("messages delivered");
        self.books(|books| books.delivered.insert(message.payload.as_str().to_owned()));
    }
}
