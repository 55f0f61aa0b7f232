//! Whose commands a worker of all tenants runs: those of the only tenant that there is.
//!
//! The worker inside a server serves every tenant and runs commands on the server's host, by one list of what it lets through. With
//! a second tenant that list would be the second tenant's as well. So while the store has several tenants that are not disabled, such
//! a worker is given no command and no run as a whole; workers of one tenant are.
//!
//! Each claim of a command by such a worker, and each offer that it takes, reads the store first. A run is never there before its
//! tenant is, so whichever server has made the second tenant, no claim of its commands misses it. What remains is one order of two
//! things that happen at the same time: a command of the first tenant that was claimed just before the second tenant was there is
//! run to its end. Where the store cannot be read, nothing is given out.
//!
//! [`SoleTenant`] remembers what was read last, for the questions of dispatch that read nothing. It may be out of date, and decides
//! nothing alone: a worker that comes for a command in vain is told so by the store, and one that could have come again does so
//! after its next heartbeat.

use std::sync::{PoisonError, RwLock};

use interlock_boxed::boxed;
use interlock_core::ids::{SessionId, TenantId};

use crate::Engine;
use crate::error::EngineError;
use crate::parts::Workers;

/// Why a worker of all tenants is given no command and no run, in words.
pub const SEVERAL_TENANTS: &str = "it is inside a server and serves all tenants, and there are several: commands are for workers of \
                                   one tenant";

/// What was last read; none where there are several tenants, or nothing was read.
#[derive(Debug, Default)]
pub struct SoleTenant(RwLock<Option<TenantId>>);

impl SoleTenant {
    pub(crate) fn is(&self, tenant: TenantId) -> bool {
        *self.0.read().unwrap_or_else(PoisonError::into_inner) == Some(tenant)
    }

    /// Answers whether commands can be had that could not before.
    fn set(&self, sole: Option<TenantId>) -> bool {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_news = sole.is_some() && *known != sole;
        *known = sole;
        is_news
    }
}

impl Engine {
    /// Reads which tenant is the only one.
    pub(crate) async fn read_sole_tenant(&self) -> Result<Option<TenantId>, EngineError> {
        let read = self.0.store.sole_tenant().await;
        let sole = read.as_ref().copied().unwrap_or_default();
        if self.0.sole_tenant.set(sole) {
            self.0.dispatch.let_in();
        }
        Ok(read?)
    }

    /// The same for a claim: where the store cannot be read, there are several as far as anybody knows.
    pub(crate) async fn sole_tenant_for_claim(&self) -> Option<TenantId> {
        self.read_sole_tenant().await.unwrap_or_else(|error| {
            tracing::debug!(%error, "which tenants there are could not be read; the server's own worker is given no commands");
            None
        })
    }
}

impl Workers {
    /// The tenant whose commands a worker of all tenants runs; none where there are several.
    #[boxed]
    pub async fn sole_tenant(&self) -> Result<Option<TenantId>, EngineError> {
        self.0.read_sole_tenant().await
    }

    /// A worker of all tenants keeps the runs of the only tenant. Others that it has as a whole go to other workers.
    pub(crate) async fn keep_runs_of_sole_tenant(&self, session: SessionId) -> Result<(), EngineError> {
        let sole = self.0.read_sole_tenant().await?;
        self.lose_assignments_where(session, SEVERAL_TENANTS, |tenant| Some(tenant) != sole).await
    }
}
