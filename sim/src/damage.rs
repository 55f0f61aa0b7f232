//! Rows that cannot be read: they were changed in the database by hand. Each stops its own run for as long as it
//! stands, and no other run. It is mended in the end, and the run goes on as if nothing had been.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use interlock_core::ids::{RunId, TenantId};
use interlock_core::state::RunState;
use interlock_store::{Page, RunFilter};
use tokio::time::sleep;

use crate::network::Caller;
use crate::sim::ALL;
use crate::sim::Sim;
use crate::trace::say;

/// What no JSON begins with.
const BROKEN: &str = "step_data = 'x' || coalesce(step_data, '')";
const MENDED: &str = "step_data = nullif(substr(step_data, 2), '')";
/// How long rows stand unreadable when the faults are over: longer than a dead worker's claim may last.
const STANDS_FOR: Duration = Duration::from_secs(45);

/// The runs that have such a row.
pub struct Damage {
    database: String,
    runs: Mutex<BTreeSet<(TenantId, RunId)>>,
    /// Those that have had one: engines look at them seldom, also for a while after they were mended.
    ever: Mutex<BTreeSet<(TenantId, RunId)>>,
}

impl Damage {
    pub fn new(database: &str) -> Self {
        Self { database: database.to_owned(), runs: Mutex::default(), ever: Mutex::default() }
    }

    fn runs<T>(&self, look: impl FnOnce(&mut BTreeSet<(TenantId, RunId)>) -> T) -> T {
        look(&mut self.runs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn holds(&self, tenant: TenantId, run: RunId) -> bool {
        self.runs(|runs| runs.contains(&(tenant, run)))
    }

    pub fn has_held(&self, tenant: TenantId, run: RunId) -> bool {
        self.ever.lock().unwrap_or_else(PoisonError::into_inner).contains(&(tenant, run))
    }

    pub fn is_any(&self) -> bool {
        self.runs(|runs| !runs.is_empty())
    }

    /// Whether a finding of the database's check is about one of these.
    pub fn explains(&self, row: &str) -> bool {
        self.runs(|runs| runs.iter().any(|(_, run)| run.to_string() == row))
    }

    fn change(&self, run: RunId, assignment: &str, only: &str) -> usize {
        let id = run.0.simple();
        let sql = format!("UPDATE run_live SET {assignment} WHERE run_id = x'{id}' AND {only}");
        interlock_store::change_memory(&self.database, &sql).unwrap_or(0)
    }

    fn break_one(&self, sim: &Sim, tenant: TenantId, run: RunId) {
        if self.change(run, BROKEN, "coalesce(substr(step_data, 1, 1), '') <> 'x'") == 1 {
            self.runs(|runs| runs.insert((tenant, run)));
            self.ever.lock().unwrap_or_else(PoisonError::into_inner).insert((tenant, run));
            sim.tally.count("rows made unreadable");
            say!(sim, "damage", "the row of {run} cannot be read any more");
        }
    }

    /// An engine that had the run in memory may have written the row anew; then there is nothing to mend.
    fn mend_all(&self, sim: &Sim) {
        for (tenant, run) in self.runs(|runs| runs.clone()) {
            self.change(run, MENDED, "substr(step_data, 1, 1) = 'x'");
            self.runs(|runs| runs.remove(&(tenant, run)));
            say!(sim, "damage", "the row of {run} is mended");
        }
    }
}

async fn live(sim: &Sim) -> Vec<(TenantId, RunId, RunState)> {
    let mut live = Vec::new();
    for tenant in &sim.tenants {
        let page = Page { limit: ALL, after: None };
        let Ok(runs) = sim.database().list_runs(tenant.id, &RunFilter::default(), page).await else { continue };
        let of_tenant = runs.into_iter().filter(|run| !run.state.is_terminal());
        live.extend(of_tenant.map(|run| (tenant.id, run.run, run.state)));
    }
    live
}

/// Breaks a row now and then, and mends it after a while.
pub async fn come_and_go(caller: Caller) {
    let Caller { sim, dice, .. } = &caller;
    while !sim.is_calm() {
        sleep(dice.millis(1_000..=6_000)).await;
        let live = live(sim).await;
        if live.is_empty() || sim.is_calm() {
            continue;
        }
        let (tenant, run, _) = *dice.pick(&live);
        sim.damage.break_one(sim, tenant, run);
        sleep(dice.millis(500..=9_000)).await;
        if !sim.is_calm() {
            sim.damage.mend_all(sim);
        }
    }
}

/// The worst moment: workers have died with what they held, engines come up with nothing in memory, and of what they find
/// some cannot be read. All the rest is taken from the dead in time.
pub async fn outlast(caller: &Caller, kill_workers: impl FnOnce()) {
    let Caller { sim, dice, .. } = caller;
    let mut running = live(sim).await;
    running.retain(|(.., state)| *state == RunState::Running);
    for _ in 0..2.min(running.len()) {
        let (tenant, run, _) = running.swap_remove(dice.between(0..=running.len() as u64 - 1) as usize);
        sim.damage.break_one(sim, tenant, run);
    }
    if !sim.damage.is_any() {
        return;
    }
    sim.tally.count("storms that ended on unreadable rows");
    sim.hosts.crash_all();
    kill_workers();
    sleep(STANDS_FOR).await;
    sim.damage.mend_all(sim);
}
