//! Removes payloads that no run or signal refers to any more. An owner that is gone releases its reference; with the
//! last of them the object goes, and until it has gone no new reference to it is given.

use std::sync::PoisonError;

use interlock_core::time::Timestamp;
use interlock_store::{ForgetPayload, PayloadReleased, ReleasePayload};

use super::{Payloads, staging};
use crate::Engine;
use crate::error::EngineError;

const BATCH_MAX: usize = 100;

impl Payloads {
    /// Once a day, and when the server has started: a folder of many objects takes a while to go through.
    async fn sweep_staging(&self, now: Timestamp) -> Result<(), EngineError> {
        let is_due = |last: Option<Timestamp>| last.is_none_or(|last| now.since(last) >= staging::EVERY);
        {
            let mut last = self.staging_swept_at.lock().unwrap_or_else(PoisonError::into_inner);
            if !is_due(*last) {
                return Ok(());
            }
            *last = Some(now);
        }
        let removed = self.objects.remove_staging(now - staging::KEPT).await?;
        if removed > 0 {
            tracing::info!(removed, "files of payloads whose writing broke off were removed");
        }
        Ok(())
    }
}

pub(crate) async fn run(engine: &Engine) -> Result<(), EngineError> {
    let Some(payloads) = engine.payloads() else { return Ok(()) };
    payloads.sweep_staging(engine.now()).await?;
    let store = &engine.0.store;
    let before = engine.now() - payloads.on_its_way;
    loop {
        let unowned = store.payloads_unowned(before, BATCH_MAX).await?;
        let found = unowned.len();
        for row in unowned {
            if store.write(ReleasePayload { row, before }).await? == PayloadReleased::Last {
                payloads.objects.delete(row.tenant, row.sha256).await?;
                store.write(ForgetPayload { tenant: row.tenant, sha256: row.sha256 }).await?;
            }
        }
        if found < BATCH_MAX || engine.0.stopping.is_cancelled() {
            return Ok(());
        }
    }
}
