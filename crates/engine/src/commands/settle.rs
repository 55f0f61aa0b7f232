//! Effects that outlived their run: it was canceled while they were in doubt. The run does not change any more; its
//! receipt is settled all the same, so that a run made from it knows whether to perform the effect.

use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::machine::receipt::{ReceiptEvent, next};
use interlock_core::machine::step::Resolution;
use interlock_core::rejection::Rejection;
use interlock_core::run::Run;
use interlock_core::run::receipt::Receipt;
use interlock_store::{AttachedWrites, AuditNote, Changed, SettleReceipt};

use super::RunStatus;
use super::control::ResolveRequest;
use crate::Engine;
use crate::audit::{AuditEvent, SETTLED};
use crate::error::EngineError;

impl Engine {
    /// Answers false if the receipt was settled before.
    pub(super) async fn settle(
        &self,
        tenant: TenantId,
        run: RunId,
        mut receipt: Receipt,
        (event, reason): (ReceiptEvent, Option<&str>),
    ) -> Result<bool, EngineError> {
        let Some(state) = next(receipt.state, event) else { return Ok(false) };
        receipt.state = state;
        receipt.outcome_at = Some(self.now());
        receipt.late = true;
        // The instant of the note is the outcome's, by which the evidence of the run finds it.
        let note = self.note_of(
            tenant,
            AuditEvent {
                kind: SETTLED,
                initiator: "system",
                actor: None,
                subject: Some(run.to_string()),
                details: Json::trusted(details(&receipt, reason).to_string()),
            },
        );
        let note = note.map(|note| AuditNote { at: receipt.outcome_at.unwrap_or(note.at), ..note });
        let settle = SettleReceipt { tenant, run, receipt };
        let along = AttachedWrites { answer: None, notes: note.into_iter().collect() };
        let settled = self.0.store.write_with(settle, along).await?;
        Ok(settled == Changed::Done)
    }

    /// A person says what became of the effects that a step of an ended run left open.
    pub(super) async fn resolve_ended(
        &self,
        run: &Run,
        position: u32,
        request: &ResolveRequest,
    ) -> Result<RunStatus, EngineError> {
        let receipts = self.0.store.receipts(run.tenant, run.id).await?;
        let open = receipts
            .into_iter()
            .map(|row| row.receipt)
            .filter(|receipt| receipt.position == position && receipt.is_open());
        let event = match request.resolution {
            Resolution::Happened => ReceiptEvent::Succeeded,
            Resolution::DidNotHappen | Resolution::Failed => ReceiptEvent::Failed,
        };
        let mut settled = false;
        for mut receipt in open {
            // Its worker may not have heard of the end yet, and what it has sent may be on its way.
            let options = &self.0.options;
            let after_end = run.finished_at.unwrap_or_default() + options.session_lease + options.effect_settles_after;
            let known_at = receipt.deniable_from(run, after_end);
            if event == ReceiptEvent::Failed && self.now() < known_at {
                let after = known_at.since(self.now());
                return Err(
                    Rejection::EffectUnderWay { run: run.id, step: run.spec(position).key.clone(), after }.into()
                );
            }
            if event == ReceiptEvent::Succeeded {
                receipt.response.clone_from(&request.output);
            }
            settled |= self.settle(run.tenant, run.id, receipt, (event, Some(&request.reason))).await?;
        }
        if settled { Ok(RunStatus::of(run)) } else { Err(Rejection::Terminal { run: run.id, state: run.state }.into()) }
    }
}

/// What the log says of a receipt that was settled after its run's end.
fn details(receipt: &Receipt, reason: Option<&str>) -> serde_json::Value {
    let mut details = serde_json::json!({ "receipt": receipt.id.to_string(), "state": receipt.state.to_string() });
    if let Some(reason) = reason {
        details["reason"] = reason.into();
    }
    details
}
