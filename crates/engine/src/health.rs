//! How an engine is doing.

use interlock_boxed::boxed;
use interlock_core::time::Timestamp;
use interlock_store::{ReadError, StoreHealth};

use crate::counters::Counters;
use crate::dispatch::Pressure;
use crate::loops::supervise::LoopHealth;
use crate::parts::EngineHealth;
use crate::set_aside::ItemSetAside;
use crate::traces::{Traces, TracesDropped};

impl EngineHealth {
    /// How the store is.
    pub fn store_health(&self) -> StoreHealth {
        self.0.0.store.health()
    }

    /// How many runs have a step in the hands of a worker that was not heard of for long, over all tenants.
    #[boxed]
    pub async fn orphans(&self, now: Timestamp) -> Result<u64, ReadError> {
        self.0.0.store.orphans(now - self.0.worker_settings().orphaned_after()).await
    }

    /// How the loops are doing.
    pub fn loops(&self) -> Vec<LoopHealth> {
        self.0.0.loops.health()
    }

    /// What this server cannot work on.
    pub fn set_aside(&self) -> Vec<ItemSetAside> {
        self.0.0.set_aside.list()
    }

    pub fn counters(&self) -> &Counters {
        &self.0.0.counters
    }

    /// What no collector was told of; nothing where none is named.
    pub fn traces_dropped(&self) -> TracesDropped {
        self.0.0.traces.as_ref().map_or_else(TracesDropped::default, Traces::dropped_in_all)
    }

    /// How often the bounds of dispatch have mattered since the engine was opened.
    pub fn pressure(&self) -> Pressure {
        self.0.0.dispatch.pressure()
    }
}
