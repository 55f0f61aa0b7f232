//! A new run from a terminal one: the chain that lists show.

use interlock_boxed::boxed;
use interlock_core::decide::{self, Resumed};
use interlock_core::ids::{RunId, TenantId};
use interlock_core::limits;
use interlock_core::rejection::Rejection;
use interlock_core::run::change::Context;
use interlock_core::run::receipt::Receipt;
use interlock_core::run::{Run, Trigger};
use interlock_core::state::{ReceiptState, StepState};
use std::collections::BTreeSet;

use super::control::position_of;
use crate::commands::repeated::hash_of;
use crate::commands::start::{Continued, IdempotencyKey, Started};
use crate::error::EngineError;
use crate::parts::Runs;

impl Runs {
    /// Makes a new run of the same version that keeps the results of the steps before `from`, by default before the
    /// first that did not succeed. A run has one successor: once there is one, the next is made from that.
    #[boxed]
    pub async fn resume_as_new(
        &self,
        tenant: TenantId,
        run: RunId,
        from: Option<&str>,
        key: Option<IdempotencyKey>,
        by: Context,
    ) -> Result<Started, EngineError> {
        let old = self.0.0.store.load_runs(&[(tenant, run)]).await?.pop().ok_or(Rejection::UnknownRun { run })?;
        let from = from.map(|step| position_of(&old, step)).transpose()?;
        let asked = hash_of(&serde_json::json!({ "resumed_from": run, "from": from }))?;
        if let Some(first) = self.recorded(tenant, key.as_ref(), asked).await? {
            return Ok(first);
        }
        let workflow = &old.plan.workflow;
        if self.0.workflows().head(tenant, workflow).await?.is_some_and(|(head, _)| head.disabled) {
            return Err(EngineError::WorkflowDisabled { workflow: workflow.clone() });
        }
        let resumed = decide::resume(&old, from)?;
        self.check_effects(&old, &resumed).await?;
        let trigger = Trigger { kind: "resume".into(), reference: Some(run.to_string()) };
        let request = Continued { from: &old, trigger, key, asked, by }.request();
        let id = RunId(self.0.0.options.ids.fresh());
        self.start_from(id, request, resumed.into()).await
    }

    /// Refuses a run that would repeat a step of which an unsafe effect is in doubt: it would stop at once, until a person says
    /// what became of it. The same where only the claim is known, and its worker has reported after the end that it was done;
    /// effects that workers name themselves are found under their keys.
    async fn check_effects(&self, old: &Run, resumed: &Resumed) -> Result<(), EngineError> {
        let kept = |position: u32| {
            resumed.inherited.iter().any(|(at, step)| *at == position && step.state() != StepState::Pending)
        };
        let receipts = self.0.0.store.receipts(old.tenant, old.id).await?.into_iter().map(|row| row.receipt);
        let repeated: Vec<Receipt> = receipts.filter(|receipt| !kept(receipt.position)).collect();
        refuse_doubts(old, &repeated, Receipt::is_doubtful)?;
        let was_done =
            |receipt: &&Receipt| receipt.is_of_claim() && receipt.state == ReceiptState::Succeeded && receipt.late;
        let steps = steps_of(old, repeated.iter().filter(was_done));
        if steps.is_empty() { Ok(()) } else { Err(Rejection::ResumeFailed { run: old.id, steps }.into()) }
    }

    /// The last run of the chain that goes on from `run`.
    pub(super) async fn newest_successor(&self, tenant: TenantId, run: RunId) -> Result<RunId, EngineError> {
        let mut newest = run;
        for _ in 0..limits::RESUMES_MAX {
            match self.0.0.store.successor(tenant, newest).await? {
                Some(next) => newest = next,
                None => break,
            }
        }
        Ok(newest)
    }
}

/// Refuses with the steps whose effects are in doubt.
pub(super) fn refuse_doubts(
    run: &Run,
    receipts: &[Receipt],
    is_doubtful: impl Fn(&Receipt) -> bool,
) -> Result<(), EngineError> {
    let steps = steps_of(run, receipts.iter().filter(|receipt| is_doubtful(receipt)));
    if steps.is_empty() { Ok(()) } else { Err(Rejection::LeftInDoubt { run: run.id, steps }.into()) }
}

/// The keys of the steps that had these effects, each once.
pub(super) fn steps_of<'a>(run: &Run, receipts: impl Iterator<Item = &'a Receipt>) -> Vec<String> {
    let keys: BTreeSet<String> = receipts.map(|receipt| run.spec(receipt.position).key.clone()).collect();
    keys.into_iter().collect()
}
