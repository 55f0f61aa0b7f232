//! The sweep that mends what a crash left undone: signals that no wait was paired with, subjects that nobody passed on.

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
        if let Err(error) = pass_on(&engine).await {
            tracing::warn!(%error, "subjects could not be passed on; it will be tried again");
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

async fn pass_on(engine: &Engine) -> Result<(), EngineError> {
    for (tenant, subject) in engine.0.store.untended_subjects(SWEEP_MAX).await? {
        engine.tend_subject(tenant, &subject).await?;
    }
    Ok(())
}
