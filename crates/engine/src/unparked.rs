//! Runs that a restore could not read, and so could not park: what they did since the backup is not known, and nothing of them may
//! go on before a person has looked. The store keeps a list of them. Each is parked when it is loaded for the first time, be it that
//! its row was mended or that a newer release reads it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use interlock_core::decide::{Command, CommandOrigin, DecideContext, decide};
use interlock_core::ids::{RunId, TenantId};
use interlock_core::rejection::Rejection;
use interlock_core::run::Run;
use interlock_core::run::change::Context;
use interlock_core::state::{EffectClass, StepKind};
use interlock_store::{DropUnparked, ReadError, Refusal};

use crate::Engine;
use crate::error::EngineError;

/// How many a restore may leave behind. Where there are more, the release that has made the backup is the one to start.
pub(crate) const UNPARKED_MAX: usize = 10_000;

/// The list as this server knows it: all that are on it, and perhaps some that another server has parked since. A restore is
/// finished before a server serves, so the list only shrinks.
#[derive(Default)]
pub(crate) struct Unparked {
    runs: Mutex<BTreeSet<(TenantId, RunId)>>,
    /// How many there are, so that the usual case takes no lock.
    count: AtomicUsize,
}

impl Unparked {
    fn runs(&self) -> MutexGuard<'_, BTreeSet<(TenantId, RunId)>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn learn(&self, listed: Vec<(TenantId, RunId)>) {
        let mut runs = self.runs();
        runs.extend(listed);
        self.count.store(runs.len(), Ordering::Relaxed);
    }

    pub fn holds(&self, tenant: TenantId, run: RunId) -> bool {
        self.count.load(Ordering::Relaxed) > 0 && self.runs().contains(&(tenant, run))
    }

    fn forget(&self, tenant: TenantId, run: RunId) {
        let mut runs = self.runs();
        runs.remove(&(tenant, run));
        self.count.store(runs.len(), Ordering::Relaxed);
    }
}

/// Whether the run may have acted on the outside since the backup: a step that is still before it does, or one that is
/// behind it could have been undone.
pub(crate) fn acts(run: &Run) -> bool {
    (0..run.steps.len()).any(|position| {
        let spec = run.spec(position as u32);
        let pure = matches!(spec.kind(), StepKind::Transform | StepKind::Approval | StepKind::Wait);
        let reached = position < run.position as usize;
        !pure && spec.effect_class() != EffectClass::Read && (!reached || spec.rollback.is_some())
    })
}

impl Engine {
    /// Reads the store's list.
    pub(crate) async fn learn_unparked(&self) -> Result<(), ReadError> {
        self.0.unparked.learn(self.0.store.unparked(UNPARKED_MAX).await?);
        Ok(())
    }

    /// Parks those that can be read by now; the others stay on the list.
    pub(crate) async fn park_readable(&self) -> Result<(), EngineError> {
        let listed: Vec<_> = self.0.unparked.runs().iter().copied().collect();
        for (tenant, run) in listed {
            let cell = self.0.cells.get(tenant, run);
            let loaded = self.load(&mut *cell.lock().await, tenant, run).await;
            match loaded {
                Ok(()) => {}
                // Its rows are gone.
                Err(EngineError::Rejected(Rejection::UnknownRun { .. })) => self.drop_unparked(tenant, run).await?,
                Err(EngineError::Read(ReadError::Corrupt(error))) => {
                    tracing::error!(%tenant, %run, %error, "a restored run cannot be read yet, and is not parked");
                }
                Err(error) if error.is_outage() => return Err(error),
                // It is parked when it is loaded next.
                Err(error) => tracing::warn!(%tenant, %run, %error, "a restored run could not be parked yet"),
            }
        }
        Ok(())
    }

    /// A run of the list was loaded for the first time: it is parked before anything else becomes of it.
    pub(crate) async fn park_late(&self, mut run: Box<Run>) -> Result<Box<Run>, EngineError> {
        let (tenant, id) = (run.tenant, run.id);
        if !self.0.store.is_unparked(tenant, id).await? {
            // Another server has parked it, and a person may have looked at it since.
            self.0.unparked.forget(tenant, id);
            return Ok(run);
        }
        if !run.state.is_terminal() && !run.notes.restored && acts(&run) {
            let asked = CommandOrigin { by: Context::operator("restore"), now: self.now() };
            let decided = decide(&run, Command::Park, DecideContext::default(), asked)?;
            let change = self.answer_all(decided).await?;
            match self.submit(change).await {
                Ok(change) => self.take_in(&mut run, &change),
                Err(EngineError::Refused(Refusal::Version)) => return Err(EngineError::Contended { run: id }),
                Err(error) => return Err(error),
            }
            tracing::warn!(%tenant, run = %id, "a restored run can be read again, and is parked: look at what happened since the backup");
        }
        self.drop_unparked(tenant, id).await?;
        Ok(run)
    }

    async fn drop_unparked(&self, tenant: TenantId, run: RunId) -> Result<(), EngineError> {
        self.0.store.write(DropUnparked { tenant, run }).await?;
        self.0.unparked.forget(tenant, run);
        Ok(())
    }
}
