//! Asks targets what has become of calls whose worker was lost. Doubts are told by a hint when they arise; what a hint was lost
//! for is found by a look over all tenants, now and then.

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
/// Paused runs of a tenant that one look takes in.
const PAUSED_MAX: usize = 500;

pub(crate) async fn run(engine: Engine) {
    let mut scan_at = Timestamp(0);
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY.as_duration()) => {}
            () = engine.0.targets.doubts.freed.notified() => {}
            () = engine.0.stopping.cancelled() => return,
        }
        if !engine.reaches_targets() {
            continue;
        }
        if engine.now() >= scan_at && engine.noted("doubts", scan(&engine).await).is_some() {
            scan_at = engine.now() + SCAN_EVERY;
        }
        engine.probe_due_doubts();
    }
}

async fn scan(engine: &Engine) -> Result<(), EngineError> {
    let paused = RunFilter { states: vec![RunState::Paused], ..RunFilter::default() };
    for tenant in engine.0.store.tenants().await? {
        let rows = engine.0.store.list_runs(tenant.id, &paused, Page { limit: PAUSED_MAX, after: None }).await?;
        for row in rows {
            let run = engine.0.store.load_runs(&[(tenant.id, row.run)]).await?.pop();
            if let Some(at) = run.as_ref().and_then(Run::doubt_settles_at) {
                engine.0.targets.doubts.note(tenant.id, row.run, at);
            }
        }
    }
    Ok(())
}
