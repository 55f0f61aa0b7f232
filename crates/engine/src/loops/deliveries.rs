//! Takes over deliveries that were not finished: their server died, or starting their runs failed for a while.

use std::time::Duration;

use interlock_core::limits;
use interlock_core::planted::{Bug, is_planted};
use interlock_store::{DeliveryBegun, DeliveryRow, RetakeDelivery};

use crate::Engine;
use crate::commands::process;
use crate::error::EngineError;

const DUE_BATCH_MAX: usize = 32;
const LOOK_EVERY: Duration = Duration::from_secs(5);

pub(crate) async fn run(engine: Engine) {
    loop {
        engine.noted("deliveries", Box::pin(take_over(&engine)).await);
        tokio::select! {
            biased;
            () = engine.0.stopping.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

async fn take_over(engine: &Engine) -> Result<(), EngineError> {
    if is_planted(Bug::DeliveryNotTakenOver) {
        return Ok(());
    }
    let mut outage = None;
    for row in engine.0.store.due_deliveries(engine.now(), DUE_BATCH_MAX).await? {
        let key = row.at.key.clone();
        match one(engine, row).await {
            Ok(()) => {}
            Err(error) if error.is_outage() => outage = Some(error),
            // It has moved on to its next try, so that it cannot fill the log.
            Err(error) => tracing::warn!(delivery = key, %error, "a delivery could not be taken over"),
        }
    }
    outage.map_or(Ok(()), Err)
}

async fn one(engine: &Engine, row: DeliveryRow) -> Result<(), EngineError> {
    let now = engine.now();
    let retake = RetakeDelivery { at: row.at.clone(), now, lock_until: now + limits::IDEMPOTENCY_LOCK };
    let DeliveryBegun::Begun(attempt) = engine.0.store.write(retake).await? else {
        return Ok(());
    };
    if row.at.is_signal() {
        tracing::info!(signal = row.at.key, attempt, "a signal is taken over");
        return engine.signals().announce_again(&row, attempt).await;
    }
    let Some(endpoint) = engine.0.store.inbound_endpoint(row.at.endpoint).await? else { return Ok(()) };
    tracing::info!(delivery = row.at.key, attempt, "a delivery is taken over");
    // Its failure is on record; the next one has its own chance.
    let _ = process::process(engine, &endpoint, &row, attempt).await;
    Ok(())
}
