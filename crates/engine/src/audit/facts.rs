//! Rows of the store as the facts that a bundle records and an entry pins.

use std::collections::BTreeMap;

use interlock_boxed::boxed;
use interlock_core::ids::{ApprovalId, ReceiptId, RunId};
use interlock_core::json::{Hash, HashHex};
use interlock_core::run::change::{key_in_words, key_name};
use interlock_core::run::receipt::Receipt;
use interlock_evidence::bundle::{
    ApprovalFacts, DecisionFacts, ReceiptFacts, RunFacts, StepFacts, model_steps, pinned_text,
};
use interlock_evidence::costs::CostFacts;
use interlock_evidence::credentials::CredentialFacts;
use interlock_evidence::details::{DoneStep, PayloadFacts, RowDetails};
use interlock_evidence::leave::LeaveFacts;
use interlock_evidence::model_attempts::ModelAttempts;
use interlock_store::{ApprovalRow, DecisionRow, JournalRow, ReadError, ReceiptRow, RunSummary, StepRow, TenantStore};

/// Decisions of one run that are read at most. A verifier of the run's evidence finds that those beyond are missing.
pub(super) const DECISIONS_MAX: usize = 50_000;

/// Decisions, receipts and approvals as texts to be pinned, by id.
#[derive(Default)]
pub(super) struct Pinnable(BTreeMap<String, String>);

impl Pinnable {
    #[boxed]
    pub async fn of_run(store: &TenantStore, run: RunId) -> Result<Self, ReadError> {
        let mut texts = BTreeMap::new();
        for row in store.receipts(run).await? {
            texts.insert(row.receipt.id.to_string(), pinned_text(&receipt(&row.receipt)));
        }
        for row in store.approvals_of(run).await? {
            texts.insert(row.id.to_string(), pinned_text(&approval(&row)));
        }
        for row in store.decisions_of(run, DECISIONS_MAX).await? {
            texts.insert(row.record.id.to_string(), pinned_text(&decision(&row)));
        }
        Ok(Self(texts))
    }

    pub fn text(&self, id: &str) -> Option<&str> {
        self.0.get(id).map(String::as_str)
    }
}

/// Whether an id is one of a receipt or an approval.
pub(super) fn is_pinned_kind(id: &str) -> bool {
    id.parse::<ReceiptId>().is_ok() || id.parse::<ApprovalId>().is_ok()
}

pub(super) fn receipt(receipt: &Receipt) -> ReceiptFacts {
    ReceiptFacts {
        receipt: receipt.id,
        position: receipt.position,
        iteration: receipt.iteration,
        attempt: receipt.attempt,
        key: receipt.key.clone(),
        effect: receipt.effect.to_string(),
        state: receipt.state.to_string(),
        request: PayloadFacts::of(&receipt.request),
        response: receipt.response.as_ref().map(PayloadFacts::of),
        intent_at: receipt.intent_at,
        outcome_at: receipt.outcome_at,
        late: receipt.late,
    }
}

pub(super) fn receipts(rows: &[ReceiptRow]) -> Vec<ReceiptFacts> {
    rows.iter().map(|row| receipt(&row.receipt)).collect()
}

/// What the rows of a run's journal say that it has cost.
pub(super) fn costs(rows: &[JournalRow]) -> Vec<CostFacts> {
    interlock_evidence::costs::costs(events(rows).iter())
}

/// How often these steps have asked models, and how many of these attempts have no known price, as the rows of its journal say.
pub(super) fn model_attempts(steps: &[StepFacts], rows: &[JournalRow]) -> Option<ModelAttempts> {
    interlock_evidence::model_attempts::model_attempts(&model_steps(steps), events(rows).iter())
}

/// Under which rules its steps and effects were let happen, as the rows of its journal say.
pub(super) fn leave(rows: &[JournalRow]) -> Vec<LeaveFacts> {
    interlock_evidence::leave::leave(events(rows).iter())
}

fn events(rows: &[JournalRow]) -> Vec<serde_json::Value> {
    rows.iter().flat_map(|row| row.events.decode::<Vec<serde_json::Value>>().unwrap_or_default()).collect()
}

/// The credentials that the steps of a run were given, as the rows of its journal say.
pub(super) fn credentials(rows: &[JournalRow]) -> Vec<CredentialFacts> {
    let contexts: Vec<serde_json::Value> =
        rows.iter().filter_map(|row| row.context_meta.as_ref()?.to_value().ok()).collect();
    interlock_evidence::credentials::credentials(contexts.iter())
}

pub(super) fn approval(row: &ApprovalRow) -> ApprovalFacts {
    ApprovalFacts {
        approval: row.id,
        position: row.position,
        purpose: row.purpose.to_string(),
        state: row.state.to_string(),
        quorum: row.quorum,
        approvers: row.approvers.clone(),
        excluded: row.excluded.clone(),
        message: row.message.clone(),
        action: row.action.as_ref().map(PayloadFacts::of),
        requested_at: row.requested_at,
        expires_at: row.expires_at,
        resolved_at: row.resolved_at,
        votes: row.votes.clone(),
    }
}

pub(super) fn decision(row: &DecisionRow) -> DecisionFacts {
    let DecisionRow { at, record, .. } = row;
    DecisionFacts {
        decision: record.id,
        position: record.position,
        iteration: record.iteration,
        attempt: record.attempt,
        operation: record.operation.clone(),
        verdict: record.verdict.clone(),
        tier: record.basis.tier.clone(),
        action: record.action,
        bundle: record.basis.bundle,
        evaluator: record.basis.evaluator.clone(),
        input: PayloadFacts::of(&record.basis.input),
        answer: record.basis.answer.as_ref().and_then(|answer| answer.to_value().ok()),
        at: *at,
    }
}

pub(super) fn step(row: &StepRow) -> StepFacts {
    StepFacts {
        position: row.position,
        key: row.key.clone(),
        kind: row.kind.clone(),
        state: row.state.to_string(),
        attempt: row.attempt,
        failures: row.failures,
        iteration: row.iteration,
        started_at: row.started_at,
        finished_at: row.finished_at,
        output: row.output.as_ref().map(PayloadFacts::of),
        error: row.error.as_ref().and_then(|error| error.to_value().ok()),
    }
}

pub(super) fn run(run: &RunSummary, plan: Option<Hash>) -> RunFacts {
    RunFacts {
        tenant: run.tenant,
        run: run.run,
        workspace: run.workspace.clone(),
        workflow: run.workflow.clone(),
        workflow_version: run.workflow_version,
        plan: plan.map(HashHex),
        subject: run.subject.clone(),
        trigger: run.trigger_type.clone(),
        started_by: run.started_by.clone(),
        root_run_id: run.root_run_id,
        resumed_from: run.resumed_from,
        state: run.state.to_string(),
        reason: run.reason.as_ref().map(ToString::to_string),
        created_at: run.created_at,
        finished_at: run.finished_at.unwrap_or_default(),
        version: run.version,
        inputs: PayloadFacts::of(&run.inputs),
        output: run.output.as_ref().map(PayloadFacts::of),
        error: run.error.as_ref().and_then(|error| error.to_value().ok()),
    }
}

/// Who caused what a row of the journal tells: a person, or the key that no person owns by its name.
pub(super) fn actor(row: &JournalRow) -> Option<String> {
    let key = || row.context_meta.as_ref().and_then(key_name).map(|name| key_in_words(&name, None));
    row.person.clone().or_else(key)
}

/// The text whose salted hash stands for a row of the journal.
pub(super) fn row_details(row: &JournalRow) -> String {
    let done = row.done_position.zip(row.done_state.clone()).map(|(position, state)| DoneStep {
        attempt: row.done_attempt.unwrap_or_default(),
        failures: row.done_failures.unwrap_or_default(),
        iteration: row.done_iteration.unwrap_or_default(),
        position,
        state,
    });
    let details = RowDetails {
        context: row.context_meta.clone(),
        done,
        error: row.error.clone(),
        events: row.events.clone(),
        input: row.input.as_ref().map(PayloadFacts::of),
        output: row.output.as_ref().map(PayloadFacts::of),
        why: row.why.clone(),
    };
    details.to_text()
}
