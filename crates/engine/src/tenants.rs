//! Disabled tenants: nothing starts for them, whoever or whatever asks.
//!
//! Every start looks here, so the answer is remembered for a moment. On the server where a tenant is disabled it counts at
//! once, on others within [`TRUSTED`].

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use interlock_core::ids::TenantId;
use interlock_core::time::{Millis, Timestamp};
use interlock_store::{PutTenant, Tenant};

use crate::error::EngineError;
use crate::parts::Tenants;

/// How long what was read about a tenant counts.
const TRUSTED: Millis = Millis::from_secs(1);
/// Past this many tenants all are forgotten and read again.
const TENANTS_MAX: usize = 10_000;

/// What was last read about tenants: whether each is disabled, and when that was read.
#[derive(Default)]
pub struct DisabledTenants(RwLock<HashMap<TenantId, (bool, Timestamp)>>);

impl DisabledTenants {
    fn get(&self, tenant: TenantId, now: Timestamp) -> Option<bool> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&tenant).filter(|(_, read_at)| now.since(*read_at) < TRUSTED).map(|(disabled, _)| *disabled)
    }

    fn put(&self, tenant: TenantId, disabled: bool, now: Timestamp) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= TENANTS_MAX {
            known.clear();
        }
        known.insert(tenant, (disabled, now));
    }

    pub(crate) fn forget(&self, tenant: TenantId) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&tenant);
    }
}

impl Tenants {
    /// Makes a tenant, or changes the limits of the one with this id.
    pub async fn put(&self, tenant: Tenant) -> Result<(), EngineError> {
        let (id, weight) = (tenant.id, tenant.weight);
        self.0.0.store.write(PutTenant(tenant)).await?;
        self.0.0.dispatch.set_weight(id, weight);
        self.0.0.disabled_tenants.forget(id);
        Ok(())
    }

    /// Refuses a disabled tenant. One that does not exist is not refused here.
    pub async fn check_enabled(&self, tenant: TenantId) -> Result<(), EngineError> {
        let now = self.0.now();
        let disabled = if let Some(disabled) = self.0.0.disabled_tenants.get(tenant, now) {
            disabled
        } else {
            let found = self.0.0.store.tenant(tenant).await?;
            let disabled = found.is_some_and(|tenant| tenant.disabled_at.is_some());
            self.0.0.disabled_tenants.put(tenant, disabled, now);
            disabled
        };
        if disabled { Err(EngineError::TenantDisabled) } else { Ok(()) }
    }
}
