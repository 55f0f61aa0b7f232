//! What goes with every call of a worker, whichever way it takes: the name by which a repeat is known, and its trace.
//!
//! A name is not stored in the database. It spells out what the server tells a repeat by: an attempt has one report, an effect of it one
//! intent, a receipt one outcome, a chunk of output one number, an offer one answer. Registrations, polls and heartbeats have a
//! fresh name each; of the first two a server remembers the names for a while, and discards a repeat.

use interlock_core::ids::SessionId;

use crate::agent::{AttemptRef, EffectIntent, EffectOutcome, OfferAnswer, OutputBatch, Report};

/// The headers of a request.
pub mod header {
    pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
    /// Names the call in the server's log. It has the same value.
    pub const REQUEST_ID: &str = "x-request-id";
    pub const TRACEPARENT: &str = "traceparent";
}

/// What goes with a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallContext {
    pub idempotency_key: String,
    /// W3C trace context.
    pub traceparent: String,
}

/// Names of calls.
pub mod key {
    use super::{AttemptRef, EffectIntent, EffectOutcome, OfferAnswer, OutputBatch, Report, SessionId};

    fn of_attempt(call: &str, at: AttemptRef) -> String {
        format!("{call}:{}:{}:{}", at.run, at.position, at.attempt)
    }

    pub fn report(report: &Report) -> String {
        of_attempt("complete", report.at)
    }

    pub fn intent(intent: &EffectIntent) -> String {
        format!("{}:{}", of_attempt("effect", intent.at), intent.number)
    }

    pub fn outcome(outcome: &EffectOutcome) -> String {
        format!("outcome:{}", outcome.receipt)
    }

    pub fn output(batch: &OutputBatch) -> String {
        let first = batch.chunks.first().map_or(0, |chunk| chunk.seq);
        format!("{}:{first}", of_attempt("output", batch.at))
    }

    pub fn offer(answer: &OfferAnswer) -> String {
        format!("offer:{}:{}:{}", answer.run, answer.epoch, answer.number)
    }

    pub fn unregister(session: SessionId) -> String {
        format!("unregister:{session}")
    }
}

#[cfg(test)]
mod tests {
    use interlock_core::ids::{RunId, TenantId};
    use interlock_core::work::ReportedOutcome;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_repeat_has_the_name_of_the_first_and_another_attempt_has_not() {
        let report = |attempt: u32, claim_next: bool| {
            let at = AttemptRef { tenant: TenantId(Uuid::nil()), run: RunId(Uuid::nil()), position: 2, attempt };
            let outcome = ReportedOutcome::Released;
            key::report(&Report { at, epoch: 1, outcome, claim_next, cost: None, credentials: Vec::new() })
        };
        assert_eq!(report(1, true), "complete:run_00000000000000000000000000000000:2:1");
        assert_eq!(report(1, true), report(1, false));
        assert_ne!(report(1, true), report(2, true));
    }
}
