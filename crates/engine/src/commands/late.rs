//! What a worker reports when its attempt is over, because another one has taken its place, the run has ended, or the worker has
//! reported something else before: it is refused, counted, and told in the audit log, since something may have been done that no
//! step shows.

use interlock_core::ids::ReceiptId;
use interlock_core::json::Json;
use interlock_core::rejection::Rejection;
use interlock_core::work::{AttemptRef, ReportedOutcome};
use interlock_store::AddAuditNote;
use serde_json::json;
use tracing::{info, warn};

use crate::audit::AuditEvent;
use crate::dispatch::session::SessionInfo;
use crate::parts::Workers;

const LATE_REPORT: &str = "report.late";

/// What is noted of a step that was given back when its attempt was over.
pub(super) const RELEASED: &str = "released";

/// What a report says has become of the attempt; nothing where the step is only given back.
pub(super) const fn result_of(outcome: &ReportedOutcome) -> Option<&'static str> {
    match outcome {
        ReportedOutcome::Completed { .. } => Some("completed"),
        ReportedOutcome::Waiting { .. } => Some("waiting"),
        ReportedOutcome::Retry { .. } => Some("retry"),
        ReportedOutcome::Dead { .. } => Some("dead"),
        ReportedOutcome::Released | ReportedOutcome::UnknownTask => None,
    }
}

/// A word of a worker that is refused.
pub(super) struct LateReport {
    pub at: AttemptRef,
    /// The effect that it is about, where it is about one.
    pub receipt: Option<ReceiptId>,
    pub result: &'static str,
}

/// Whether a report is refused because its attempt is over, or was reported otherwise.
pub(super) const fn is_too_late(why: &Rejection) -> bool {
    matches!(why, Rejection::StaleAttempt { .. } | Rejection::ReportedOtherwise { .. } | Rejection::Terminal { .. })
}

/// Whether the report gives back a step whose attempt has ended without a word from its worker.
pub(super) const fn is_late_release(outcome: &ReportedOutcome, why: &Rejection) -> bool {
    let is_unreported = matches!(why, Rejection::StaleAttempt { .. } | Rejection::Terminal { .. });
    is_unreported && matches!(outcome, ReportedOutcome::Released)
}

impl Workers {
    /// Whether the attempt may have begun an effect: it has a receipt, or a later attempt has taken that over. Where the receipts cannot
    /// be read, it may have.
    pub(super) async fn may_have_begun(&self, at: AttemptRef) -> bool {
        let Ok(receipts) = self.0.0.store.receipts(at.tenant, at.run).await else { return true };
        receipts.iter().any(|row| row.receipt.position == at.position && row.receipt.attempt >= at.attempt)
    }

    /// The session had the attempt. Where the note cannot be written, the server's log and the count still tell of it.
    pub(super) async fn late_report(&self, session: &SessionInfo, report: LateReport, why: &Rejection) {
        let LateReport { at, receipt, result } = report;
        let is_first = self.0.0.counters.late_report(at, receipt);
        let AttemptRef { tenant, run, position, attempt } = at;
        info!(%run, position, attempt, result, worker = session.worker, %why, "a late report is refused");
        if !is_first {
            return;
        }
        let mut details = json!({
            "position": position,
            "attempt": attempt,
            "result": result,
            "refused": why.code(),
            "worker": session.worker,
            "session": session.id.to_string(),
        });
        if let Some(receipt) = receipt {
            details["receipt"] = receipt.to_string().into();
        }
        if let Some(recorded) = recorded(why) {
            details["recorded"] = recorded.into();
        }
        let what = AuditEvent {
            kind: LATE_REPORT,
            initiator: "system",
            actor: None,
            subject: Some(run.to_string()),
            details: Json::trusted(details.to_string()),
        };
        let Some(note) = self.0.note_of(tenant, what) else { return };
        if let Err(error) = self.0.0.store.write(AddAuditNote(note)).await {
            warn!(%run, %error, "a late report could not be noted in the audit log");
        }
    }
}

/// What is recorded instead, where the worker has said something else before.
fn recorded(why: &Rejection) -> Option<&'static str> {
    match why {
        Rejection::ReportedOtherwise { recorded, .. } => Some(*recorded),
        Rejection::EffectRecorded { state, .. } | Rejection::OutcomeRecorded { state, .. } => Some(*state),
        _ => None,
    }
}
