//! Runs in memory. A cell holds one run's state and serialises this server's commands on it; the version guard in
//! the store keeps it honest when another server has changed the run. Only runs that are being worked on stay here:
//! a million waiting runs cost no memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use interlock_core::ids::{RunId, TenantId};
use interlock_core::planted::{Bug, is_planted};
use interlock_core::run::Run;
use interlock_core::time::Timestamp;

const SHARDS: usize = 64;

/// A run's place in memory. Empty until it is loaded, and again after the store has refused a stale version.
#[derive(Default)]
pub struct Cell {
    pub run: Option<Box<Run>>,
    pub streak: Streak,
}

/// How long one session has been going on with this run without letting others in.
#[derive(Default, Clone, Copy)]
pub struct Streak {
    pub steps: u32,
    pub since: Timestamp,
}

pub type CellRef = Arc<tokio::sync::Mutex<Cell>>;
type RunKey = (TenantId, RunId);

pub struct Cells {
    shards: Vec<Mutex<BTreeMap<RunKey, CellRef>>>,
    per_shard_max: usize,
}

impl Cells {
    pub fn new(cells_max: usize) -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), per_shard_max: cells_max.div_ceil(SHARDS) }
    }

    fn shard(&self, run: RunId) -> MutexGuard<'_, BTreeMap<RunKey, CellRef>> {
        // The last byte of a UUIDv7 is random.
        let index = usize::from(run.as_bytes()[15]) % SHARDS;
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run's cell, made if it is not there.
    pub fn get(&self, tenant: TenantId, run: RunId) -> CellRef {
        if is_planted(Bug::TwoSetsOfOneRun) {
            return CellRef::default();
        }
        let mut shard = self.shard(run);
        if let Some(cell) = shard.get(&(tenant, run)) {
            return Arc::clone(cell);
        }
        let cell = CellRef::default();
        make_room(&mut shard, self.per_shard_max);
        shard.insert((tenant, run), Arc::clone(&cell));
        cell
    }

    /// Puts a run in that was just made.
    pub fn put(&self, run: Run) {
        let mut shard = self.shard(run.id);
        make_room(&mut shard, self.per_shard_max);
        let key = (run.tenant, run.id);
        let cell = Cell { run: Some(Box::new(run)), streak: Streak::default() };
        shard.insert(key, Arc::new(tokio::sync::Mutex::new(cell)));
    }

    /// Puts a run in that will be wanted soon, if there is room for it; it can always be loaded.
    pub fn offer(&self, run: Run) {
        let mut shard = self.shard(run.id);
        if shard.len() < self.per_shard_max {
            let key = (run.tenant, run.id);
            shard.entry(key).or_insert_with(|| {
                let cell = Cell { run: Some(Box::new(run)), streak: Streak::default() };
                Arc::new(tokio::sync::Mutex::new(cell))
            });
        }
    }

    pub fn holds(&self, tenant: TenantId, run: RunId) -> bool {
        self.shard(run).contains_key(&(tenant, run))
    }

    pub fn forget(&self, tenant: TenantId, run: RunId) {
        self.shard(run).remove(&(tenant, run));
    }

    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Drops the oldest run that no task of this server is working on right now; it is loaded again when it is needed.
fn make_room(shard: &mut BTreeMap<RunKey, CellRef>, cells_max: usize) {
    if shard.len() >= cells_max
        && let Some(idle) = shard.iter().find(|(_, cell)| Arc::strong_count(cell) == 1).map(|(key, _)| *key)
    {
        shard.remove(&idle);
    }
}
