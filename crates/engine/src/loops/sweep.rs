//! The sweep that pairs signals with waits whose match was lost in a crash.

use std::time::Duration;

use interlock_core::planted::{Bug, is_planted};

use crate::Engine;
use crate::error::EngineError;

const SWEEP_EVERY: Duration = Duration::from_secs(5);
const SWEEP_MAX: usize = 256;

pub(crate) async fn run(engine: Engine) {
    loop {
        if let Err(error) = rematch(&engine).await {
            tracing::warn!(%error, "signals could not be matched; it will be tried again");
        }
        tokio::select! {
            biased;
            () = engine.0.stopping.cancelled() => return,
            () = tokio::time::sleep(SWEEP_EVERY) => {}
        }
    }
}

async fn rematch(engine: &Engine) -> Result<(), EngineError> {
    if is_planted(Bug::SignalNotMatched) {
        return Ok(());
    }
    for unmatched in engine.0.store.unmatched(SWEEP_MAX).await? {
        engine.match_signals(unmatched.tenant, &unmatched.signal_type, &unmatched.key).await?;
    }
    Ok(())
}
