//! Bundles the evidence of governed runs, within seconds of their end.

use std::time::Duration;

use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Json;
use interlock_store::{AddAuditNote, DropEvidenceDue};
use serde_json::json;

use crate::Engine;
use crate::audit::AuditEvent;
use crate::error::EngineError;
use crate::set_aside::Item;

const TOO_LARGE: &str = "evidence.too_large";
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

/// The run has no bundle and will have none: its log says so once, and whoever asks for the bundle is told what to do instead.
async fn too_large(engine: &Engine, tenant: TenantId, run: RunId, max: usize) -> Result<(), EngineError> {
    tracing::error!(%tenant, %run, max, "evidence is too long for a bundle; the audit log has its entries");
    let what = AuditEvent {
        kind: TOO_LARGE,
        initiator: "system",
        actor: None,
        subject: Some(run.to_string()),
        details: Json::trusted(json!({ "max_bytes": max }).to_string()),
    };
    if let Some(note) = engine.note_of(tenant, what) {
        engine.0.store.write(AddAuditNote(note)).await?;
    }
    Ok(())
}

/// Whether nothing is left to be told of the run.
async fn bundle(engine: &Engine, tenant: TenantId, run: RunId) -> Result<bool, EngineError> {
    match engine.audit().bundle(tenant, run).await {
        // Its run is gone, and so is what it would have told of.
        Ok(()) | Err(EngineError::Rejected(_)) => Ok(true),
        Err(EngineError::EvidenceTooLarge { max, .. }) => {
            too_large(engine, tenant, run, max).await?;
            Ok(true)
        }
        // The next look finds it in the log.
        Err(EngineError::EvidenceNotSealed { .. } | EngineError::EvidenceNotDue { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
