//! After a restore: what happened since the backup is not in the store, so runs that act on the outside stop and wait
//! for a person who can look.

use interlock_core::decide::Command;
use interlock_core::ids::{ReceiptId, RunId, TenantId};
use interlock_core::rejection::Rejection;
use interlock_core::run::Run;
use interlock_core::run::change::Context;
use interlock_core::state::{EffectClass, StepKind, StepState};
use interlock_store::{Changed, FinishRestore, Page, ReadError, RunFilter};
use std::ops::ControlFlow;

use crate::boxed;
use crate::error::EngineError;
use crate::parts::Runs;

const PAGE: usize = 200;

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
    pub async fn park_restored(&self) -> Result<Vec<ParkedRun>, EngineError> {
        let Some(epoch) = self.0.0.store.restoring().await? else { return Ok(Vec::new()) };
        let parked = self.park_all().await?;
        let finished = FinishRestore { epoch, now: self.0.now() };
        if self.0.0.store.write(finished).await? == Changed::Gone {
            return Err(EngineError::StaleEpoch);
        }
        Ok(parked)
    }

    async fn park_all(&self) -> Result<Vec<ParkedRun>, EngineError> {
        let mut parked = Vec::new();
        for tenant in self.0.0.store.tenants().await? {
            let mut after = None;
            loop {
                let page = Page { limit: PAGE, after };
                let runs = self.0.0.store.list_runs(tenant.id, &RunFilter::default(), page).await?;
                let Some(last) = runs.last() else { break };
                after = Some(last.run);
                let live: Vec<_> =
                    runs.iter().filter(|run| !run.state.is_terminal()).map(|run| (tenant.id, run.run)).collect();
                for run in self.readable(&live).await? {
                    if acts(&run) {
                        parked.push(self.park(&run).await?);
                    }
                }
            }
        }
        Ok(parked)
    }

    /// The runs that can be loaded. One that cannot is never dispatched either, and must not keep the others waiting.
    async fn readable(&self, runs: &[(TenantId, RunId)]) -> Result<Vec<Run>, EngineError> {
        match self.0.0.store.load_runs(runs).await {
            Err(ReadError::Corrupt(_)) => {}
            loaded => return Ok(loaded?),
        }
        let mut readable = Vec::with_capacity(runs.len());
        for (tenant, run) in runs {
            match self.0.0.store.load_runs(&[(*tenant, *run)]).await {
                Err(ReadError::Corrupt(error)) => {
                    tracing::error!(%tenant, %run, %error, "a restored run cannot be read, and was not parked");
                }
                loaded => readable.extend(loaded?),
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
        let receipts = self.0.0.store.receipts(run.tenant, run.id).await?;
        let open = receipts.iter().map(|row| &row.receipt);
        let open = open.filter(|receipt| receipt.is_open());
        let spec = run.spec(run.position);
        Ok(ParkedRun {
            tenant: run.tenant,
            run: run.id,
            workflow: run.plan.workflow.clone(),
            step: spec.key.clone(),
            step_state: run.current().state(),
            effect: spec.effect_class(),
            open_effects: open.map(|receipt| receipt.id).collect(),
        })
    }
}

/// Whether the run may have acted on the outside since the backup: a step that is still before it does, or one that is
/// behind it could have been undone.
fn acts(run: &Run) -> bool {
    (0..run.steps.len()).any(|position| {
        let spec = run.spec(position as u32);
        let pure = matches!(spec.kind(), StepKind::Transform | StepKind::Approval | StepKind::Wait);
        let reached = position < run.position as usize;
        !pure && spec.effect_class() != EffectClass::Read && (!reached || spec.rollback.is_some())
    })
}
