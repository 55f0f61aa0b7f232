//! The reaper: steps whose worker is lost, and steps that run past their timeout. It waits one full lease after a
//! start and after the store was away, so that workers which could not renew get their chance.

use std::ops::ControlFlow;

use interlock_core::change::Context;
use interlock_core::decide::Command;
use interlock_core::time::Timestamp;
use interlock_store::{Claimed, Op};

use crate::Engine;
use crate::error::EngineError;

const REAP_BATCH_MAX: usize = 256;

pub(crate) async fn run(engine: Engine) {
    let lease = engine.0.options.session_lease;
    let mut patient_until = engine.now() + lease;
    let every = engine.0.options.reap_every;
    let mut last = engine.now();
    loop {
        tokio::select! {
            biased;
            () = engine.0.stopping.cancelled() => return,
            () = tokio::time::sleep(every.as_duration()) => {}
        }
        let now = engine.now();
        // The clock jumped, or this process stood still: leases may look older than they are.
        if now.since(last).0 > every.0 + lease.0 / 2 {
            patient_until = now + lease;
        }
        last = now;
        engine.forget_silent_sessions();
        if let Err(error) = reap(&engine, now, patient_until).await {
            tracing::warn!(%error, "the reaper could not work; it gives everybody one more lease");
            patient_until = engine.now() + lease;
        }
    }
}

async fn reap(engine: &Engine, now: Timestamp, patient_until: Timestamp) -> Result<(), EngineError> {
    let store = &engine.0.store;
    if now < patient_until {
        return Ok(());
    }
    for claim in store.timed_out_steps(now, REAP_BATCH_MAX).await? {
        settle(engine.give_up(&claim, |position, attempt| Command::StepTimeout { position, attempt }).await)?;
    }
    store.execute(Op::ExpireSessions { now }).await?;
    loop {
        let lost = store.lost_claims(now, REAP_BATCH_MAX).await?;
        let full = lost.len() == REAP_BATCH_MAX;
        for claim in lost {
            let (run, step, attempt) = (claim.run, claim.position, claim.attempt);
            tracing::info!(event = "orphan_detected", %run, step, attempt, "the worker of a step is lost");
            settle(engine.give_up(&claim, |position, attempt| Command::LeaseExpired { position, attempt }).await)?;
        }
        if !full {
            return Ok(());
        }
    }
}

/// The attempt ended by itself meanwhile: nothing is left to do.
fn settle(result: Result<(), EngineError>) -> Result<(), EngineError> {
    match result {
        Err(EngineError::Rejected(_)) => Ok(()),
        other => other,
    }
}

impl Engine {
    async fn give_up(
        &self,
        claim: &Claimed,
        command: impl Fn(u32, u32) -> Command + Send + Sync,
    ) -> Result<(), EngineError> {
        self.execute(
            claim.tenant,
            claim.run,
            Context::TIMEOUT,
            |_| Ok(ControlFlow::Continue(command(claim.position, claim.attempt))),
            |_, _| (),
        )
        .await
    }
}
