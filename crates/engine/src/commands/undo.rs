//! Undoing a run that has ended: it does not change any more, so a new run undoes it, newest effect first (decision 0044).

use interlock_boxed::boxed;
use interlock_core::decide::{self, Undoes};
use interlock_core::ids::{RunId, TenantId};
use interlock_core::rejection::Rejection;
use interlock_core::run::change::Context;
use interlock_core::run::receipt::Receipt;
use interlock_core::run::{Run, Trigger, UNDO_TRIGGER};
use interlock_core::state::ReceiptState;

use super::resume::{refuse_doubts, steps_of};
use crate::commands::repeated::hash_of;
use crate::commands::start::{Continued, Earlier, IdempotencyKey, Started};
use crate::error::EngineError;
use crate::parts::Runs;

/// A request to undo a run that has ended.
#[derive(Debug, Clone)]
pub struct UndoRequest {
    pub run: RunId,
    /// The position of the first step that is undone; those before it stand.
    pub from: u32,
    pub reason: String,
    pub key: Option<IdempotencyKey>,
}

impl Runs {
    /// The run that a request to undo this one is about: the newest run that undoes it, where there is one, else the
    /// run itself. Where a retry or a restart has gone on from it, its effects are that run's.
    #[boxed]
    pub async fn to_undo(&self, tenant: TenantId, run: RunId) -> Result<Run, EngineError> {
        let load = async |run| -> Result<Run, EngineError> {
            Ok(self.0.0.store.load_runs(&[(tenant, run)]).await?.pop().ok_or(Rejection::UnknownRun { run })?)
        };
        let found = load(run).await?;
        if !found.state.is_terminal() {
            return Ok(found);
        }
        match self.newest_successor(tenant, run).await? {
            newest if newest == run => Ok(found),
            newest => {
                let newest = load(newest).await?;
                if newest.header.is_undo() {
                    Ok(newest)
                } else {
                    Err(Rejection::Continued { run, by: newest.id }.into())
                }
            }
        }
    }

    /// Makes the run that undoes one which has succeeded. There is one at a time: the next goes on where it has ended.
    #[boxed]
    pub async fn undo_as_new(
        &self,
        tenant: TenantId,
        request: UndoRequest,
        by: Context,
    ) -> Result<Started, EngineError> {
        let UndoRequest { run, from, reason, key } = request;
        let asked = hash_of(&serde_json::json!({ "undoes": run, "from": from, "reason": reason }))?;
        if let Some(first) = self.recorded(tenant, key.as_ref(), asked).await? {
            return Ok(first);
        }
        let old = self.to_undo(tenant, run).await?;
        if !old.state.is_terminal() {
            return Err(Rejection::Continued { run, by: old.id }.into());
        }
        let trigger = Trigger { kind: UNDO_TRIGGER.into(), reference: Some(run.to_string()) };
        let request = Continued { from: &old, trigger, key, asked, by }.request();
        let resumed = decide::undo(&old, from)?;
        self.check_open_effects(&old).await?;
        let id = RunId(self.0.0.options.ids.fresh());
        let undoes = Some(Undoes { from, reason });
        self.start_from(id, request, Earlier { undoes, ..resumed.into() }).await
    }

    /// An effect in doubt, a late one included, is neither undone nor undone again.
    async fn check_open_effects(&self, old: &Run) -> Result<(), EngineError> {
        let rows = self.0.0.store.receipts(old.tenant, old.id).await?;
        let receipts: Vec<Receipt> = rows.into_iter().map(|row| row.receipt).collect();
        refuse_doubts(old, &receipts, Receipt::is_open)?;
        let forward = old.forward_len() as u32;
        // What undid a step has reported after its run was given up.
        let was_done = |receipt: &&Receipt| {
            let is_late = receipt.state == ReceiptState::Succeeded && receipt.late;
            is_late && receipt.is_of_claim() && receipt.position >= forward
        };
        let steps = steps_of(old, receipts.iter().filter(was_done));
        if steps.is_empty() { Ok(()) } else { Err(Rejection::ResumeFailed { run: old.id, steps }.into()) }
    }
}
