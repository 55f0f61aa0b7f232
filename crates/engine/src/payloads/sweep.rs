//! Removes payloads that nobody refers to any more. An owner that is gone releases its reference; with the last of them
//! the object goes, and until it has gone nobody gets a new reference to it.

use interlock_store::{ForgetPayload, PayloadReleased, ReleasePayload};

use crate::Engine;
use crate::error::EngineError;

const BATCH_MAX: usize = 100;

pub(crate) async fn run(engine: &Engine) -> Result<(), EngineError> {
    let Some(payloads) = engine.payloads() else { return Ok(()) };
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
