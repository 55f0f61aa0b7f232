//! Bundles the evidence of governed runs, within seconds of their end.

use std::time::Duration;

use interlock_core::ids::{RunId, TenantId};
use interlock_store::DropEvidenceDue;

use crate::Engine;
use crate::error::EngineError;
use crate::set_aside::Item;

const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Runs taken at a time.
const RUNS_MAX: usize = 64;

pub(crate) async fn run(engine: Engine) {
    loop {
        engine.noted("evidence", work(&engine).await);
        tokio::select! {
            biased;
            () = engine.0.stopping.cancelled() => return,
            () = engine.0.wake_evidence.notified() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

async fn work(engine: &Engine) -> Result<(), EngineError> {
    loop {
        let limit = RUNS_MAX + engine.0.set_aside.count();
        let mut bundled = 0;
        for (tenant, run, noted_at) in engine.0.store.evidence_due(limit).await? {
            if engine.0.stopping.is_cancelled() {
                return Ok(());
            }
            let work = async {
                if bundle(engine, tenant, run).await? {
                    engine.0.store.write(DropEvidenceDue { tenant, run, noted_at }).await?;
                    bundled += 1;
                }
                Ok(())
            };
            engine.one_of_many(tenant, Item::Evidence(run), work).await?;
        }
        if bundled == 0 {
            return Ok(());
        }
    }
}

/// Whether nothing is left to be told of the run.
async fn bundle(engine: &Engine, tenant: TenantId, run: RunId) -> Result<bool, EngineError> {
    match engine.audit().bundle(tenant, run).await {
        // Its run is gone, and so is what it would have told of.
        Ok(()) | Err(EngineError::Rejected(_)) => Ok(true),
        // The next look finds it in the log.
        Err(EngineError::EvidenceNotSealed { .. } | EngineError::EvidenceNotDue { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
