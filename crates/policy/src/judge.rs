//! What a decision means to the core: leave to act, a refusal, or the gate that people must pass.

use interlock_core::governance::action::Action;
use interlock_core::governance::judge::{Decision, Judge};
use interlock_core::plan::{Gate, OnDenial, Work};
use interlock_core::run::Run;
use interlock_core::time::Millis;

use crate::bundle::Bundle;
use crate::decision::{Obligations, PolicyDecision, PolicyReason, Undecided, Verdict};
use crate::input::PolicyInput;

/// The reason that begins so is no decision: the policy could not decide.
pub const UNAVAILABLE: &str = "policy_unavailable";

impl Judge for Bundle {
    fn judge(&self, action: &Action, run: &Run) -> Decision {
        core_decision(self.decide(&PolicyInput::of(action, run)), run)
    }
}

/// A decision in the core's words. What could not be decided is refused.
pub fn core_decision(decided: Result<PolicyDecision, Undecided>, run: &Run) -> Decision {
    let decision = match decided {
        Ok(decision) => decision,
        Err(undecided) => return Decision::Deny { reasons: vec![format!("{UNAVAILABLE}: {undecided}")] },
    };
    let reasons = decision.reasons.iter().map(PolicyReason::to_string).collect();
    match (decision.verdict, decision.obligations) {
        (Verdict::Allow, _) => Decision::Allow,
        (Verdict::NeedsApproval, Some(due)) => Decision::NeedsApproval { gate: Box::new(due.gate(run)), reasons },
        (Verdict::Deny | Verdict::NeedsApproval, _) => Decision::Deny { reasons },
    }
}

impl Obligations {
    /// The gate that fulfils them. What follows a rejection is the workflow's business; where it does not say, a workflow
    /// with commands is paused for a directive, and others fail.
    pub fn gate(&self, run: &Run) -> Gate {
        let rules = run.plan.rules.approval.as_ref();
        let has_commands = run.plan.steps.iter().any(|step| matches!(step.work, Work::Command { .. }));
        let otherwise = if has_commands { OnDenial::Pause } else { OnDenial::Fail };
        Gate {
            approvers: self.approvers.clone(),
            quorum: self.quorum,
            message: None,
            on_reject: rules.and_then(|rules| rules.on_reject).unwrap_or(otherwise),
            on_expiry: rules.and_then(|rules| rules.on_expiry).unwrap_or(otherwise),
            escalate_after: Some(Millis::from_secs(self.escalate_after_s)),
            expires_after: Some(Millis::from_secs(self.expires_after_s)),
        }
    }
}
