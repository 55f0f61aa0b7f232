//! `dedupe: tenant`: the same effect of two runs, once (decision 0049). A run that is about to have such an effect
//! takes a hold on it, in the commit of its intent; a later run finds which run has it, or had it.

use std::ops::ControlFlow;

use interlock_core::decide::Command;
use interlock_core::ids::{ReceiptId, TenantId};
use interlock_core::json::Hash;
use interlock_core::rejection::Rejection;
use interlock_core::run::Run;
use interlock_core::run::change::Context;
use interlock_core::run::receipt::{EffectHold, Receipt};
use interlock_core::state::{EffectClass, ReceiptState, RunState, StepState};
use interlock_core::time::Millis;
use interlock_core::work::{AttemptRef, EffectAnswer, EffectIntent};
use interlock_store::PastHold;

use super::effect::AskedFor;
use crate::error::EngineError;
use crate::parts::Workers;

/// How many earlier tries are looked at with one read.
const HOLDS_AT_ONCE: u32 = 16;

/// An effect that counts as the same in the whole tenant.
#[derive(Clone, Copy)]
pub(super) struct SharedEffect {
    identity: Hash,
    window: Millis,
}

impl SharedEffect {
    /// What is the same: the operation with all that it is given, in one environment and sandbox.
    pub fn of(run: &Run, intent: &EffectIntent) -> Option<Self> {
        let spec = run.spec(intent.at.position);
        let window = spec.rules.dedupe_window().filter(|_| intent.effect != EffectClass::Read)?;
        let profile = run.plan.rules.profile.as_deref().unwrap_or_default();
        let identity = serde_json::json!([
            spec.kind().as_str(),
            run.plan.environment(),
            profile,
            intent.template,
            intent.request.as_str(),
        ]);
        Some(Self { identity: Hash::of(identity.to_string().as_bytes()), window })
    }
}

/// Whether a run may have the effect that is about to happen.
pub(super) enum EffectAvailability {
    /// This run's, with the hold that it takes; none where it has it already, or where every run has its own.
    Free(Option<Box<EffectHold>>),
    /// Another run has had it.
    Had(OtherEffect),
}

/// An effect of another run.
pub(super) struct OtherEffect {
    hold: PastHold,
    receipt: Receipt,
}

/// What became of an earlier effect that was the same.
enum PastEffect {
    /// It failed, was undone, or is forgotten.
    Gone,
    UnderWay,
    Done(Box<Receipt>),
}

impl Workers {
    /// Whether the run may have the effect whose intent it is about to record.
    pub(super) async fn hold(
        &self,
        asked: &AskedFor,
        tenant: TenantId,
        receipt: ReceiptId,
    ) -> Result<EffectAvailability, EngineError> {
        let (Some(shared), Some(run)) = (asked.shared, &asked.run) else { return Ok(EffectAvailability::Free(None)) };
        let mut past = self.0.0.store.holds_before(tenant, shared.identity, None, HOLDS_AT_ONCE).await?;
        let number = past.first().map_or(0, |hold| hold.number) + 1;
        let free = EffectHold { identity: shared.identity, number, receipt, at: self.0.now() };
        let Some(&hold) = past.first() else { return Ok(EffectAvailability::Free(Some(Box::new(free)))) };
        if (hold.run, hold.receipt) == (run.id, receipt) && self.is_open(tenant, &hold).await? {
            // A lost attempt of this very step has it; no other run gets it meanwhile. A run that continues another
            // takes a hold of its own: the receipt becomes its own too.
            return Ok(EffectAvailability::Free(None));
        }
        // A try that failed says nothing of the effect before it, which another window may still cover.
        while let Some(&oldest) = past.last() {
            for hold in past {
                match self.past_effect(run, tenant, &hold).await? {
                    PastEffect::Gone => {}
                    PastEffect::UnderWay => return Err(Rejection::EffectElsewhere { by: hold.run }.into()),
                    PastEffect::Done(receipt) => {
                        let happened_at = receipt.outcome_at.unwrap_or(receipt.intent_at);
                        if self.0.now() < happened_at + shared.window {
                            return Ok(EffectAvailability::Had(OtherEffect { hold, receipt: *receipt }));
                        }
                        // Those before it are older still.
                        return Ok(EffectAvailability::Free(Some(Box::new(free))));
                    }
                }
            }
            let before = Some(oldest.number);
            past = self.0.0.store.holds_before(tenant, shared.identity, before, HOLDS_AT_ONCE).await?;
        }
        Ok(EffectAvailability::Free(Some(Box::new(free))))
    }

    async fn receipt_of(&self, tenant: TenantId, hold: &PastHold) -> Result<Option<Receipt>, EngineError> {
        let receipts = self.0.0.store.receipts(tenant, hold.run).await?;
        Ok(receipts.into_iter().map(|row| row.receipt).find(|receipt| receipt.id == hold.receipt))
    }

    async fn is_open(&self, tenant: TenantId, hold: &PastHold) -> Result<bool, EngineError> {
        let receipt = self.receipt_of(tenant, hold).await?;
        Ok(receipt.is_some_and(|receipt| receipt.is_open()))
    }

    /// What became of the effect that a hold is about. What a run of the same chain did is its own, which its own keys tell.
    async fn past_effect(&self, run: &Run, tenant: TenantId, hold: &PastHold) -> Result<PastEffect, EngineError> {
        let load = async |id| -> Result<Option<Run>, EngineError> {
            Ok(self.0.0.store.load_runs(&[(tenant, id)]).await?.pop())
        };
        let Some(holder) = load(hold.run).await? else { return Ok(PastEffect::Gone) };
        if holder.root() == run.root() {
            return Ok(PastEffect::Gone);
        }
        let Some(receipt) = self.receipt_of(tenant, hold).await? else { return Ok(PastEffect::Gone) };
        match receipt.state {
            ReceiptState::Intent | ReceiptState::InDoubt => return Ok(PastEffect::UnderWay),
            ReceiptState::Failed => return Ok(PastEffect::Gone),
            ReceiptState::Succeeded => {}
        }
        let state_in = |run: &Run| run.steps.get(receipt.position as usize).map(interlock_core::run::Step::state);
        let newest = self.0.runs().newest_successor(tenant, hold.run).await?;
        let newest = if newest == hold.run { None } else { load(newest).await? };
        let undone = newest.as_ref().is_some_and(|newest| state_in(newest) == Some(StepState::RolledBack));
        let is_being_undone = |run: &Run| run.state == RunState::RollingBack;
        Ok(match state_in(&holder) {
            _ if undone => PastEffect::Gone,
            // In a moment it may not have happened.
            _ if newest.as_ref().is_some_and(is_being_undone) || is_being_undone(&holder) => PastEffect::UnderWay,
            // What was canceled or skipped behind it has not undone it.
            Some(StepState::Succeeded | StepState::Canceled | StepState::Skipped) => {
                PastEffect::Done(Box::new(receipt))
            }
            // The call was made, and its step has not said yet whether that is what was wanted.
            Some(state) if !state.is_finished() => PastEffect::UnderWay,
            _ => PastEffect::Gone,
        })
    }

    /// Notes that another run has had the effect, and answers with what it was told. Answers nothing if the run is no longer at
    /// the version that was seen.
    pub(super) async fn deduplicate(
        &self,
        intent: &EffectIntent,
        asked: &AskedFor,
        OtherEffect { hold, receipt }: OtherEffect,
    ) -> Result<Option<EffectAnswer>, EngineError> {
        let AttemptRef { tenant, run, position, attempt } = intent.at;
        let noted = self.0.execute(
            tenant,
            run,
            Context::SYSTEM,
            |facts| {
                if facts.run().version != asked.version {
                    return Ok(ControlFlow::Break(false));
                }
                let (receipt, run) = (hold.receipt, hold.run);
                Ok(ControlFlow::Continue(Command::Deduplicate { position, attempt, receipt, run }))
            },
            |_, _| true,
        );
        let noted = noted.await?;
        Ok(noted.then_some(EffectAnswer::Performed { receipt: hold.receipt, response: receipt.response }))
    }
}
