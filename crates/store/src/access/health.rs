use interlock_boxed::boxed;
use interlock_core::ids::TenantId;
use interlock_core::state::RunState;
use interlock_core::time::Timestamp;

use crate::error::{ReadError, SubmitError};
use crate::store::Store;

/// How the store is: numbers and marks, no tenant's rows. For readiness and metrics.
#[derive(Clone)]
pub struct StoreHealth(Store);

impl Store {
    pub fn health(&self) -> StoreHealth {
        StoreHealth(self.across_tenants())
    }
}

impl StoreHealth {
    /// Refuses where commits have been failing for a while, with what the database says.
    pub fn takes_commits(&self) -> Result<(), SubmitError> {
        self.0.takes_commits()
    }

    /// The epoch of a restore that is not finished.
    #[boxed]
    pub async fn restoring(&self) -> Result<Option<u64>, ReadError> {
        self.0.restoring().await
    }

    /// How many rows were left out of the lists that this store has read.
    pub fn unreadable_rows(&self) -> usize {
        self.0.unreadable_rows().len()
    }

    /// How many runs live in each state, over all tenants.
    #[boxed]
    pub async fn live_by_state(&self) -> Result<Vec<(RunState, u64)>, ReadError> {
        self.0.live_by_state().await
    }

    /// How many runs of each tenant live in each state: so many of these numbers.
    #[boxed]
    pub async fn live_by_tenant(&self, limit: usize) -> Result<Vec<(TenantId, RunState, u64)>, ReadError> {
        self.0.live_by_tenant(limit).await
    }

    /// Since when committed events wait to be told to those who listen; nothing where none does.
    #[boxed]
    pub async fn unsealed_since(&self) -> Result<Option<Timestamp>, ReadError> {
        self.0.unsealed_since().await
    }
}
