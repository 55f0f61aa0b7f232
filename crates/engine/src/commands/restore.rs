//! After a restore: what happened since the backup is not in the store, so runs that act on the outside stop and wait
//! for a person who can look.

use interlock_boxed::boxed;
use interlock_core::decide::Command;
use interlock_core::ids::{ReceiptId, RunId, TenantId};
use interlock_core::rejection::Rejection;
use interlock_core::run::Run;
use interlock_core::run::change::Context;
use interlock_core::state::{EffectClass, StepState};
use interlock_store::{Changed, CorruptRow, FinishRestore, ReadError};
use std::ops::ControlFlow;

use crate::error::EngineError;
use crate::parts::Runs;
use crate::unparked::{UNPARKED_MAX, acts};

const PAGE: usize = 200;

/// What a restore has found.
#[derive(Debug, Clone, Default)]
pub struct RestoredRuns {
    pub parked: Vec<ParkedRun>,
    /// Live runs that cannot be read. Each is parked once it can be, before it goes on.
    pub unreadable: Vec<UnreadableRun>,
}

/// A live run of a restored store that cannot be read, and why.
#[derive(Debug, Clone)]
pub struct UnreadableRun {
    pub tenant: TenantId,
    pub run: RunId,
    pub why: CorruptRow,
}

/// A run that was parked, and what it may have done since the backup was made.
#[derive(Debug, Clone)]
pub struct ParkedRun {
    pub tenant: TenantId,
    pub run: RunId,
    pub workflow: String,
    /// The step that the backup shows the run at.
    pub step: String,
    pub step_state: StepState,
    pub effect: EffectClass,
    /// Effects whose intent is in the backup and whose outcome is not.
    pub open_effects: Vec<ReceiptId>,
}

impl Runs {
    /// Finishes a restore: pauses every live run that has a step with side effects still before it or under way, and takes
    /// the store's mark away. May be broken off and called again; without a mark there is nothing to do.
    #[boxed]
    pub async fn park_restored(&self) -> Result<RestoredRuns, EngineError> {
        let Some(epoch) = self.0.0.store.restoring().await? else { return Ok(RestoredRuns::default()) };
        let found = self.park_all().await?;
        let unparked = found.unreadable.iter().map(|unreadable| (unreadable.tenant, unreadable.run)).collect();
        let finished = FinishRestore { epoch, now: self.0.now(), unparked };
        if self.0.0.store.write(finished).await? == Changed::Gone {
            return Err(EngineError::StaleEpoch);
        }
        self.0.learn_unparked().await?;
        Ok(found)
    }

    async fn park_all(&self) -> Result<RestoredRuns, EngineError> {
        let mut found = RestoredRuns::default();
        let mut after = None;
        loop {
            let live = self.0.0.store.live_runs_after(after, PAGE).await?;
            let Some(last) = live.last() else { return Ok(found) };
            after = Some(*last);
            // Another process may have finished it meanwhile: what runs by now is none of the restore's.
            if self.0.0.store.restoring().await?.is_none() {
                return Ok(found);
            }
            for run in self.readable(&live, &mut found.unreadable).await? {
                if acts(&run) {
                    found.parked.push(self.park(&run).await?);
                }
            }
        }
    }

    /// The live runs that can be loaded. One that cannot must not keep the others waiting, and is noted.
    async fn readable(
        &self,
        runs: &[(TenantId, RunId)],
        unreadable: &mut Vec<UnreadableRun>,
    ) -> Result<Vec<Run>, EngineError> {
        let live = |runs: Vec<Run>| runs.into_iter().filter(|run| !run.state.is_terminal());
        match self.0.0.store.load_runs(runs).await {
            Err(ReadError::Corrupt(_)) => {}
            loaded => return Ok(live(loaded?).collect()),
        }
        let mut readable = Vec::with_capacity(runs.len());
        for (tenant, run) in runs.iter().copied() {
            match self.0.0.store.load_runs(&[(tenant, run)]).await {
                Err(ReadError::Corrupt(why)) => {
                    tracing::error!(%tenant, %run, error = %why, "a restored run cannot be read, and is not parked yet");
                    unreadable.push(UnreadableRun { tenant, run, why });
                    if unreadable.len() > UNPARKED_MAX {
                        return Err(EngineError::Store(format!(
                            "more than {UNPARKED_MAX} runs of the restored store cannot be read, and nothing is handed out \
                             before they can: start the release that has made the backup"
                        )));
                    }
                }
                loaded => readable.extend(live(loaded?)),
            }
        }
        Ok(readable)
    }

    async fn park(&self, run: &Run) -> Result<ParkedRun, EngineError> {
        let paused = self
            .0
            .execute(
                run.tenant,
                run.id,
                Context::operator("restore"),
                |facts| {
                    // A restore that was broken off has parked it before.
                    let parked = facts.run().notes.restored;
                    Ok(if parked { ControlFlow::Break(()) } else { ControlFlow::Continue(Command::Park) })
                },
                |_, _| (),
            )
            .await;
        match paused {
            // It has ended meanwhile, so it begins nothing.
            Ok(()) | Err(EngineError::Rejected(Rejection::Terminal { .. })) => {}
            Err(error) => return Err(error),
        }
        let spec = run.spec(run.position);
        Ok(ParkedRun {
            tenant: run.tenant,
            run: run.id,
            workflow: run.plan.workflow.clone(),
            step: spec.key.clone(),
            step_state: run.current().state(),
            effect: spec.effect_class(),
            open_effects: self.open_effects(run).await?,
        })
    }

    /// They are only told, so a receipt that cannot be read holds up no restore.
    async fn open_effects(&self, run: &Run) -> Result<Vec<ReceiptId>, EngineError> {
        match self.0.0.store.receipts(run.tenant, run.id).await {
            Ok(rows) => Ok(rows.iter().filter(|row| row.receipt.is_open()).map(|row| row.receipt.id).collect()),
            Err(ReadError::Corrupt(error)) => {
                let run = run.id;
                tracing::error!(%run, %error, "the open effects of a restored run cannot be told: a receipt cannot be read");
                Ok(Vec::new())
            }
            Err(error) => Err(error.into()),
        }
    }
}
