//! Bundles the evidence of governed runs, within seconds of their end.

use std::time::Duration;

use interlock_store::DropEvidenceDue;

use crate::Engine;
use crate::error::EngineError;

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
    let mut failed = None;
    for (tenant, run, noted_at) in engine.0.store.evidence_due(RUNS_MAX).await? {
        if engine.0.stopping.is_cancelled() {
            return Ok(());
        }
        match engine.audit().bundle(tenant, run).await {
            // Its run is gone, and so is what it would have told of.
            Ok(()) | Err(EngineError::Rejected(_)) => {
                engine.0.store.write(DropEvidenceDue { tenant, run, noted_at }).await?;
            }
            // The next look finds it in the log.
            Err(EngineError::EvidenceNotSealed { .. } | EngineError::EvidenceNotDue { .. }) => {}
            Err(error) => {
                tracing::warn!(%run, %error, "a run's evidence cannot be bundled; it is tried again");
                failed = Some(error);
            }
        }
    }
    failed.map_or(Ok(()), Err)
}
