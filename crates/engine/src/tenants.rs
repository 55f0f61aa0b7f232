//! Switches of tenants that are looked at all the time: whether one is disabled, so that nothing starts for it, whether it
//! gives steps to workers elsewhere, and how these make their calls.
//!
//! Every start and every poll looks here, so the answer is remembered for a moment. On the server where a tenant is changed
//! it counts at once, on others within [`TRUSTED`]. That no run of a disabled tenant begins does not depend on it: the commit
//! looks again.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use interlock_boxed::boxed;
use interlock_core::ids::TenantId;
use interlock_core::time::{Millis, Timestamp};
use interlock_store::{
    AddTenant, AttachedWrites, AuditNote, ChangeTenant, Changed, FinishIdempotency, KeyRow, PutTenant, Stored, Tenant,
};
use serde_json::json;

use crate::audit::{Actor, AuditEvent};
use crate::error::EngineError;
use crate::parts::Tenants;

/// How long what was read about a tenant counts.
const TRUSTED: Millis = Millis::from_secs(1);
/// Past this many tenants all are forgotten and read again.
const TENANTS_MAX: usize = 10_000;

/// What was last read about a tenant.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
struct Switches {
    disabled: bool,
    orchestrates_workers: bool,
    has_channels: bool,
    has_broker: bool,
    read_at: Timestamp,
}

/// What was last read about tenants.
#[derive(Default)]
pub struct TenantSwitches(RwLock<HashMap<TenantId, Switches>>);

impl TenantSwitches {
    fn get(&self, tenant: TenantId, now: Timestamp) -> Option<Switches> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&tenant).filter(|switches| now.since(switches.read_at) < TRUSTED).copied()
    }

    fn put(&self, tenant: TenantId, switches: Switches) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= TENANTS_MAX {
            known.clear();
        }
        known.insert(tenant, switches);
    }

    pub(crate) fn forget(&self, tenant: TenantId) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&tenant);
    }
}

const CREATED: &str = "tenant.created";
const CHANGED: &str = "tenant.changed";

/// Who changes a tenant: a person or a key of this tenant or, with charge of the installation, of another one.
#[derive(Debug, Clone)]
pub struct TenantActor {
    pub tenant: TenantId,
    pub actor: Actor,
}

/// A tenant that is to be, with the key of its first admin.
#[derive(Debug, Clone)]
pub struct NewTenant {
    pub tenant: Tenant,
    pub key: KeyRow,
    /// What the tenant's log tells of the key.
    pub key_created: AuditEvent,
    pub by: TenantActor,
}

impl Tenants {
    /// Makes a tenant, or changes the limits of the one with this id, on the server's own account.
    #[boxed]
    pub async fn put(&self, tenant: Tenant) -> Result<(), EngineError> {
        let known = self.0.0.store.tenant(tenant.id).await?.is_some();
        let asked_by = TenantActor { tenant: tenant.id, actor: Actor::system() };
        let kind = if known { CHANGED } else { CREATED };
        let notes = self.notes(&tenant, kind, &asked_by);
        self.0.0.store.write_with(PutTenant(tenant.clone()), AttachedWrites { answer: None, notes }).await?;
        self.follow(&tenant).await;
        Ok(())
    }

    /// Makes a tenant together with its first key, whose creation is noted too.
    #[boxed]
    pub async fn add(&self, new: NewTenant, answer: Option<FinishIdempotency>) -> Result<(), EngineError> {
        let NewTenant { tenant, key, key_created, by } = new;
        let mut notes = self.notes(&tenant, CREATED, &by);
        notes.extend(self.0.note_of(tenant.id, key_created));
        let add = AddTenant { tenant: tenant.clone(), key };
        match self.0.0.store.write_with(add, AttachedWrites { answer, notes }).await? {
            Stored::Stored => {
                self.follow(&tenant).await;
                Ok(())
            }
            Stored::Duplicate => Err(EngineError::Overloaded),
        }
    }

    /// Changes the limits and settings of a tenant that is still as it was `read`. [`Changed::Gone`] where it is not: nothing
    /// is changed then, and what was decided about it meanwhile stands.
    #[boxed]
    pub async fn change(&self, read: Tenant, tenant: Tenant, by: &TenantActor) -> Result<Changed, EngineError> {
        let notes = self.notes(&tenant, CHANGED, by);
        let change = ChangeTenant { read, tenant: tenant.clone() };
        let answer = self.0.0.store.write_with(change, AttachedWrites { answer: None, notes }).await?;
        if answer == Changed::Done {
            self.follow(&tenant).await;
        }
        Ok(answer)
    }

    /// What changes counts on this server at once.
    async fn follow(&self, tenant: &Tenant) {
        self.0.0.dispatch.set_weight(tenant.id, tenant.weight);
        self.0.0.tenant_switches.forget(tenant.id);
        let is_on = tenant.settings.worker_orchestration;
        self.0.0.sessions.hold_back(tenant.id, !is_on);
        if is_on {
            self.0.0.dispatch.let_in();
        }
        if self.0.0.sessions.run_commands_of_all() {
            self.0.sole_tenant_for_claim().await;
        }
    }

    /// For the tenant's own log; and for that of the tenant whose people did it, where that is another.
    fn notes(&self, tenant: &Tenant, kind: &'static str, by: &TenantActor) -> Vec<AuditNote> {
        let details = json!({
            "name": tenant.name,
            "max_concurrency": tenant.caps.max_concurrency,
            "max_runs_per_min": tenant.caps.max_runs_per_min,
            "pending_runs_max": tenant.pending_runs_max,
            "weight": tenant.weight,
            "settings": tenant.settings,
            "disabled": tenant.disabled_at.is_some(),
        });
        let elsewhere = Some(by.tenant).filter(|other| *other != tenant.id);
        let logs = std::iter::once(tenant.id).chain(elsewhere);
        logs.filter_map(|log| self.0.note_of(log, by.actor.did(kind, tenant.id, &details))).collect()
    }

    /// Refuses a disabled tenant. One that does not exist is not refused here.
    #[boxed]
    pub async fn check_enabled(&self, tenant: TenantId) -> Result<(), EngineError> {
        if self.switches(tenant).await?.disabled { Err(EngineError::TenantDisabled) } else { Ok(()) }
    }

    /// Whether workers elsewhere are given the tenant's steps.
    #[boxed]
    pub async fn orchestrates_workers(&self, tenant: TenantId) -> Result<bool, EngineError> {
        Ok(self.switches(tenant).await?.orchestrates_workers)
    }

    /// Whether its workers may make their calls over a WebSocket.
    #[boxed]
    pub async fn has_channels(&self, tenant: TenantId) -> Result<bool, EngineError> {
        Ok(self.switches(tenant).await?.has_channels)
    }

    /// Whether its workers may make their calls over the broker.
    #[boxed]
    pub async fn has_broker(&self, tenant: TenantId) -> Result<bool, EngineError> {
        Ok(self.switches(tenant).await?.has_broker)
    }

    async fn switches(&self, tenant: TenantId) -> Result<Switches, EngineError> {
        let read_at = self.0.now();
        if let Some(switches) = self.0.0.tenant_switches.get(tenant, read_at) {
            return Ok(switches);
        }
        let found = self.0.0.store.tenant(tenant).await?;
        let switches = Switches {
            disabled: found.as_ref().is_some_and(|tenant| tenant.disabled_at.is_some()),
            // What is not known gets nothing.
            orchestrates_workers: found.as_ref().is_some_and(|tenant| tenant.settings.worker_orchestration),
            has_channels: found.as_ref().is_some_and(|tenant| tenant.settings.worker_channel),
            has_broker: found.is_some_and(|tenant| tenant.settings.worker_broker),
            read_at,
        };
        self.0.0.tenant_switches.put(tenant, switches);
        Ok(switches)
    }
}
