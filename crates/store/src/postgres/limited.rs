//! The limits of a group: which tenants and workflows in it have some, where those stand inside the transaction, and
//! which sets they admit. A group in which no workflow has limits costs nothing more than its tenants do. A tenant that is
//! disabled admits no run that begins.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use futures::future::OptionFuture;
use interlock_core::ids::TenantId;
use interlock_core::run::change::ClaimChange;
use interlock_core::tenant::caps::{Caps, Usage, WorkflowCaps};
use interlock_core::time::Timestamp;
use tokio_postgres::types::ToSql;

use super::connect::PgDb;
use crate::error::{DbError, Refusal};
use crate::sql::{Stmt, hot};
use crate::submit::{Lock, Outcome, Prepared};
use crate::tenants::begin_lock;
use crate::value::{Row, Value, args};

type WorkflowKey = (TenantId, String);

/// The tenants and workflows whose limits the sets of a group count against.
pub(super) struct Limited {
    tenants: BTreeSet<TenantId>,
    /// The locks of the tenants in whose name runs begin, in the order in which all take them.
    begins: BTreeSet<i64>,
    /// Workflows with limits, and whether their claims have to be counted.
    workflows: BTreeMap<WorkflowKey, bool>,
}

/// Their usage inside the transaction.
#[derive(Default)]
pub(super) struct Standings {
    /// Locks that were not to be had: one of their tenants is being disabled.
    disabling: HashSet<i64>,
    tenants: HashMap<TenantId, TenantStanding>,
    workflows: HashMap<WorkflowKey, WorkflowStanding>,
}

struct TenantStanding {
    caps: Caps,
    usage: Usage,
    rate_before: Timestamp,
    pending: u32,
    pending_max: Option<u32>,
    is_disabled: bool,
}

struct WorkflowStanding {
    usage: Usage,
    rate_before: Timestamp,
}

impl Limited {
    pub fn of(sets: &[(usize, &Prepared)]) -> Self {
        let mut limited = Self { tenants: BTreeSet::new(), begins: BTreeSet::new(), workflows: BTreeMap::new() };
        for (_, set) in sets {
            let change = &set.change;
            let begins = set.begins_run();
            if begins {
                limited.begins.insert(begin_lock(change.tenant));
            }
            if begins || matches!(change.claim, ClaimChange::Take { .. }) {
                limited.tenants.insert(change.tenant);
            }
            if let Some(WorkflowCaps { workflow, caps }) = change.workflow_caps.as_deref() {
                *limited.workflows.entry((change.tenant, workflow.clone())).or_default() |=
                    caps.max_concurrency.is_some();
            }
        }
        limited
    }

    /// Keeps tenants whose runs begin from being disabled, locks those that have limits, or whose workflows have, then looks
    /// where they stand.
    pub async fn standings(&self, db: &PgDb) -> Result<Standings, DbError> {
        if self.tenants.is_empty() {
            return Ok(Standings::default());
        }
        let begins: Vec<i64> = self.begins.iter().copied().collect();
        let begins_args: [&(dyn ToSql + Sync); 1] = [&begins];
        let ids: Vec<&[u8]> = self.tenants.iter().map(|tenant| tenant.as_bytes().as_slice()).collect();
        let owners: Vec<&[u8]> = self.workflows.keys().map(|(tenant, _)| tenant.as_bytes().as_slice()).collect();
        let names: Vec<&str> = self.workflows.keys().map(|(_, workflow)| workflow.as_str()).collect();
        let counted: Vec<i64> = self.workflows.values().map(|counted| i64::from(*counted)).collect();
        let both: [&(dyn ToSql + Sync); 2] = [&ids, &owners];
        let workflows: [&(dyn ToSql + Sync); 3] = [&owners, &names, &counted];
        let has_workflows = !self.workflows.is_empty();
        let (lock, lock_args) =
            if has_workflows { (&hot::WORKFLOW_LOCK, &both[..]) } else { (&hot::LIMITED_LOCK, &both[..1]) };
        let (disabling, locked, tenants, workflows) = futures::join!(
            OptionFuture::from((!begins.is_empty()).then(|| db.query_raw(&hot::BEGIN_LOCK, &begins_args))),
            db.query_raw(lock, lock_args),
            db.query_raw(&hot::LIMITED_USAGE, &both[..1]),
            OptionFuture::from(has_workflows.then(|| db.query_raw(&hot::WORKFLOW_USAGE, &workflows))),
        );
        let disabling = disabling.transpose()?.unwrap_or_default();
        locked?;
        let workflows = workflows.transpose()?.unwrap_or_default();
        Ok(Standings {
            disabling: disabling.into_iter().map(|mut row| row.int("k")).collect::<Result<_, _>>()?,
            tenants: tenants?.into_iter().map(standing).collect::<Result<_, _>>()?,
            workflows: workflows.into_iter().map(workflow_standing).collect::<Result<_, _>>()?,
        })
    }
}

fn standing(mut row: Row) -> Result<(TenantId, TenantStanding), DbError> {
    let tenant: TenantId = row.id("tenant_id")?;
    let caps =
        Caps { max_concurrency: row.opt_num("max_concurrency")?, max_runs_per_min: row.opt_num("max_runs_per_min")? };
    let rate_next_at = row.time("rate_next_at")?;
    let pending_max = row.opt_num("pending_runs_max")?;
    let usage = Usage { live_claims: row.num("claims")?, rate_next_at };
    let pending = row.num("pending")?;
    let is_disabled = row.opt_time("disabled_at")?.is_some();
    Ok((tenant, TenantStanding { caps, usage, rate_before: rate_next_at, pending, pending_max, is_disabled }))
}

fn workflow_standing(mut row: Row) -> Result<(WorkflowKey, WorkflowStanding), DbError> {
    let key = (row.id("tenant_id")?, row.text("workflow")?);
    let live_claims = row.num("claims")?;
    let rate_next_at = row.time("rate_next_at")?;
    let usage = Usage { live_claims, rate_next_at };
    Ok((key, WorkflowStanding { usage, rate_before: rate_next_at }))
}

impl Standings {
    /// The sets with which runs begin of a tenant that is being disabled: what becomes of them is known once that is
    /// committed, or not.
    pub fn blocked(&self, sets: &[(usize, &Prepared)]) -> HashMap<usize, Outcome> {
        if self.disabling.is_empty() {
            return HashMap::new();
        }
        let waits = |set: &Prepared| set.begins_run() && self.disabling.contains(&begin_lock(set.change.tenant));
        let waiting = sets.iter().filter(|(_, set)| waits(set));
        waiting.map(|(index, _)| (*index, Outcome::Blocked(Lock::Tenant))).collect()
    }

    /// Takes a place for every set that needs one, in the order of their arrival. What this group releases counts only
    /// once it is committed.
    pub fn admit(&mut self, sets: &[(usize, &Prepared)]) -> HashMap<usize, Outcome> {
        let refusals = sets.iter().filter_map(|(index, set)| self.refusal(set).map(|refusal| (*index, refusal)));
        refusals.map(|(index, refusal)| (index, Outcome::Refused(refusal))).collect()
    }

    fn refusal(&mut self, set: &Prepared) -> Option<Refusal> {
        let change = &set.change;
        let mut tenant = self.tenants.get_mut(&change.tenant);
        if tenant.as_ref().is_some_and(|standing| standing.is_disabled) && set.begins_run() {
            return Some(Refusal::TenantDisabled);
        }
        if change.start.is_some()
            && let Some(standing) = &mut tenant
        {
            if standing.pending_max.is_some_and(|max| standing.pending >= max) {
                return Some(Refusal::TooManyPending);
            }
            standing.pending += 1;
        }
        let ClaimChange::Take { first } = change.claim else { return None };
        // Only what both admit takes a place of either.
        let mut of_tenant = tenant.as_ref().map(|standing| standing.usage);
        if let (Some(standing), Some(usage)) = (&tenant, &mut of_tenant)
            && !standing.caps.is_unlimited()
            && usage.admit(&standing.caps, first, change.at).is_err()
        {
            return Some(Refusal::Throttled);
        }
        if let Some(WorkflowCaps { workflow, caps }) = change.workflow_caps.as_deref()
            && let Some(standing) = self.workflows.get_mut(&(change.tenant, workflow.clone()))
            && let Err(held) = standing.usage.admit(caps, first, change.at)
        {
            return Some(Refusal::WorkflowThrottled { held });
        }
        if let (Some(standing), Some(usage)) = (tenant, of_tenant) {
            standing.usage = usage;
        }
        None
    }

    /// The writes of the virtual schedules that have moved.
    pub fn rates(&self) -> Vec<(&'static Stmt, Vec<Value>)> {
        let moved = |usage: &Usage, before: Timestamp| usage.rate_next_at != before;
        let tenants = self.tenants.iter().filter(|(_, standing)| moved(&standing.usage, standing.rate_before));
        let tenants =
            tenants.map(|(tenant, standing)| (&hot::RATE_UPDATE, args![standing.usage.rate_next_at, *tenant]));
        let workflows = self.workflows.iter().filter(|(_, standing)| moved(&standing.usage, standing.rate_before));
        let workflows = workflows.map(|((tenant, workflow), standing)| {
            (&hot::WORKFLOW_RATE_PUT, args![*tenant, workflow, standing.usage.rate_next_at])
        });
        tenants.chain(workflows).collect()
    }
}
