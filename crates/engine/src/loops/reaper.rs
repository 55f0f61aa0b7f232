//! The reaper: steps whose worker is lost, and steps that run past their timeout. It waits one full lease after a
//! start and after the store was away, so that workers which could not renew get their chance.

use std::ops::ControlFlow;

use interlock_core::decide::Command;
use interlock_core::ids::SessionId;
use interlock_core::run::change::{ChangeSet, Context, SideWrite};
use interlock_core::state::AssignmentState;
use interlock_core::time::Timestamp;
use interlock_store::{Claimed, ExpireSessions};

use crate::Engine;
use crate::error::EngineError;
use crate::run_log::log_orphan;
use crate::set_aside::ItemOutcome;

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
        engine.workers().forget_silent_sessions();
        if engine.noted("reaper", reap(&engine, now, patient_until).await).is_none() {
            // Workers could not renew either: every session gets one more lease.
            patient_until = engine.now() + lease;
        }
    }
}

async fn reap(engine: &Engine, now: Timestamp, patient_until: Timestamp) -> Result<(), EngineError> {
    let store = &engine.0.store;
    if now < patient_until {
        return Ok(());
    }
    let batch_max = REAP_BATCH_MAX + engine.0.set_aside.count();
    for claim in store.timed_out_steps(now, batch_max).await? {
        let timeout = |position, attempt| Command::StepTimeout { position, attempt };
        engine.one_of_many(claim.tenant, claim.run, engine.give_up(&claim, timeout)).await?;
    }
    store.write(ExpireSessions { now }).await?;
    engine.workers().forget_expired_sessions().await?;
    loop {
        let batch_max = REAP_BATCH_MAX + engine.0.set_aside.count();
        let lost = store.lost_claims(now, batch_max).await?;
        let full = lost.len() >= batch_max;
        let mut reaped = 0;
        for claim in lost {
            let (tenant, run) = (claim.tenant, claim.run);
            if engine.0.set_aside.holds(tenant, run, now) {
                continue;
            }
            log_orphan(claim.at(), &engine.worker_name(claim.session));
            // Its poll may still be open, and must not be answered with the step that it has just lost.
            engine.workers().forget_session(claim.session);
            let expired = |position, attempt| Command::LeaseExpired { position, attempt };
            let worked = engine.one_of_many(tenant, run, engine.give_up(&claim, expired)).await?;
            reaped += usize::from(worked == ItemOutcome::Done);
        }
        if !full || reaped == 0 {
            break;
        }
    }
    let batch_max = REAP_BATCH_MAX + engine.0.set_aside.count();
    for row in store.lost_assignments(now, batch_max).await? {
        let lost = async {
            if engine.lose_assignment(&row, "its worker was lost").await? {
                engine.lost_in_background(row.session, row.run);
            }
            Ok::<(), EngineError>(())
        };
        engine.one_of_many(row.tenant, row.run, lost).await?;
    }
    Ok(())
}

/// The session that has lost the run with its step, where it had the run as a whole.
fn lost_with_step(change: &ChangeSet) -> Option<SessionId> {
    change.side.iter().find_map(|write| match write {
        SideWrite::PutAssignment(record) if record.state == AssignmentState::Lost => Some(record.session),
        _ => None,
    })
}

impl Engine {
    /// If the attempt ended by itself meanwhile, nothing is left to do.
    async fn give_up(
        &self,
        claim: &Claimed,
        command: impl Fn(u32, u32) -> Command + Send + Sync,
    ) -> Result<(), EngineError> {
        let given_up = self
            .execute(
                claim.tenant,
                claim.run,
                Context::TIMEOUT,
                |_| Ok(ControlFlow::Continue(command(claim.position, claim.attempt))),
                |_, change| lost_with_step(change),
            )
            .await;
        match given_up {
            Ok(Some(session)) => {
                self.lost_in_background(session, claim.run);
                Ok(())
            }
            Ok(None) | Err(EngineError::Rejected(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
