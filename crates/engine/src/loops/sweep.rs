//! The sweep that mends what a crash left undone: signals that no wait was paired with, subjects that were not passed
//! on to the next run.

use std::time::Duration;

use interlock_core::planted::{Bug, is_planted};

use crate::Engine;
use crate::error::EngineError;

const SWEEP_EVERY: Duration = Duration::from_secs(5);
const SWEEP_MAX: usize = 256;

pub(crate) async fn run(engine: Engine) {
    loop {
        engine.noted("signals", rematch(&engine).await);
        engine.noted("subjects", pass_on(&engine).await);
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
    let mut outage = None;
    for unmatched in engine.0.store.unmatched(SWEEP_MAX).await? {
        let matched = engine.signals().match_signals(unmatched.tenant, &unmatched.signal_type, &unmatched.key).await;
        outage = keep_outage(matched).or(outage);
    }
    outage.map_or(Ok(()), Err)
}

/// What is wrong with one signal or subject must not stop the sweep of the others.
fn keep_outage(result: Result<(), EngineError>) -> Option<EngineError> {
    let error = result.err()?;
    if error.is_outage() {
        return Some(error);
    }
    tracing::debug!(%error, "one of those to be swept could not be dealt with");
    None
}

async fn pass_on(engine: &Engine) -> Result<(), EngineError> {
    let mut outage = None;
    for (tenant, subject) in engine.0.store.untended_subjects(SWEEP_MAX).await? {
        outage = keep_outage(engine.tend_subject(tenant, &subject).await).or(outage);
    }
    outage.map_or(Ok(()), Err)
}
