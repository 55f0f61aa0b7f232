//! Asks targets what has become of calls whose worker was lost. Doubts are told by a hint when they arise; what a hint was lost
//! for is found by a look over all tenants, now and then.

use std::collections::BTreeMap;

use interlock_core::ids::{RunId, TenantId};
use interlock_core::run::Run;
use interlock_core::state::RunState;
use interlock_core::time::{Millis, Timestamp};
use interlock_store::{Page, RunFilter};

use crate::Engine;
use crate::error::EngineError;

/// How often it is looked which doubts are due.
const LOOK_EVERY: Millis = Millis::from_secs(2);
/// How often all paused runs are looked at.
const SCAN_EVERY: Millis = Millis::from_mins(10);
/// Paused runs of a tenant that one round takes in. Where there are more, the next round goes on behind them.
const PAUSED_MAX: usize = 500;

pub(crate) async fn run(engine: Engine) {
    let mut scan = Scan::default();
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY.as_duration()) => {}
            () = engine.0.targets.doubts.freed.notified() => {}
            () = engine.0.stopping.cancelled() => return,
        }
        if !engine.reaches_targets() {
            continue;
        }
        if scan.is_due(engine.now()) {
            engine.noted("doubts", scan.round(&engine).await);
        }
        engine.probe_due_doubts();
    }
}

/// The look at all paused runs, round by round.
#[derive(Default)]
struct Scan {
    /// When the next one begins.
    next_at: Timestamp,
    /// The tenants that this one is not through with, each with the run behind which it goes on.
    left: BTreeMap<TenantId, Option<RunId>>,
}

impl Scan {
    fn is_due(&self, now: Timestamp) -> bool {
        !self.left.is_empty() || now >= self.next_at
    }

    async fn round(&mut self, engine: &Engine) -> Result<(), EngineError> {
        if self.left.is_empty() {
            self.left = engine.0.store.tenants().await?.into_iter().map(|tenant| (tenant.id, None)).collect();
            self.next_at = engine.now() + SCAN_EVERY;
        }
        let paused = RunFilter { states: vec![RunState::Paused], ..RunFilter::default() };
        let tenants: Vec<_> = self.left.iter().map(|(tenant, after)| (*tenant, *after)).collect();
        for (tenant, after) in tenants {
            let rows = engine.0.store.list_runs(tenant, &paused, Page { limit: PAUSED_MAX, after }).await?;
            for row in &rows {
                engine.one_of_many(tenant, row.run, note_doubt(engine, tenant, row.run)).await?;
            }
            match rows.last() {
                Some(last) if rows.len() == PAUSED_MAX => self.left.insert(tenant, Some(last.run)),
                _ => self.left.remove(&tenant),
            };
        }
        Ok(())
    }
}

async fn note_doubt(engine: &Engine, tenant: TenantId, id: RunId) -> Result<(), EngineError> {
    let run = engine.0.store.load_runs(&[(tenant, id)]).await?.pop();
    if let Some(at) = run.as_ref().and_then(Run::doubt_settles_at) {
        engine.0.targets.doubts.note(tenant, id, at);
    }
    Ok(())
}
