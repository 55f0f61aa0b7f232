//! What a decision means to the core: leave to act, a refusal, or the gate that people must pass.

use std::sync::Arc;

use interlock_core::governance::action::Action;
use interlock_core::governance::judge::{Decision, Judge, Ruling};
use interlock_core::json::{HashHex, Json};
use interlock_core::plan::{Gate, OnDenial, Plan, Work};
use interlock_core::run::Run;
use interlock_core::run::approval::Terms;
use interlock_core::run::decision::Basis;
use interlock_core::time::Millis;

use crate::bundle::{Bundle, EVALUATOR};
use crate::decision::{Excluded, Obligations, PolicyDecision, PolicyReason, Undecided, Verdict};
use crate::input::PolicyInput;

impl Judge for Bundle {
    fn judge(&self, action: &Action, run: &Run) -> Ruling {
        self.rule_on(&PolicyInput::of(action, run.spec(action.step), run), &run.plan)
    }
}

impl Bundle {
    /// The decision on an input document of a run, in the core's words, and what it rests on.
    pub fn rule_on(&self, input: &PolicyInput, plan: &Plan) -> Ruling {
        let text = input.text();
        let decided = self.decide_text(&text);
        let basis = Basis {
            bundle: HashHex(self.hash()),
            evaluator: EVALUATOR.to_owned(),
            input: Json::trusted(text),
            answer: decided.as_ref().ok().and_then(|decision| Json::of(decision).ok()),
            shadow: None,
            tier: decided.as_ref().map_or_else(|_| String::new(), |decision| decision.tier.to_string()),
        };
        Ruling { decision: core_decision(decided, plan), basis: Some(Arc::new(basis)), standing: None }
    }
}

/// A decision in the core's words.
pub fn core_decision(decided: Result<PolicyDecision, Undecided>, plan: &Plan) -> Decision {
    let decision = match decided {
        Ok(decision) => decision,
        Err(undecided) => return Decision::Undecided { why: undecided.to_string() },
    };
    let reasons = decision.reasons.iter().map(PolicyReason::to_string).collect();
    match (decision.verdict, decision.obligations) {
        (Verdict::Allow, _) => Decision::Allow,
        (Verdict::NeedsApproval, Some(due)) => {
            let terms = Terms { tier: Some(decision.tier), ..due.terms(plan) };
            Decision::NeedsApproval { terms: Box::new(terms), reasons }
        }
        (Verdict::Deny | Verdict::NeedsApproval, _) => Decision::Deny { reasons },
    }
}

impl Obligations {
    /// Whom they have asked.
    pub fn terms(&self, plan: &Plan) -> Terms {
        Terms {
            gate: self.gate(plan),
            and_from: Vec::new(),
            excludes_author: self.exclude.contains(&Excluded::Author),
            forbids_self: !self.self_approval,
            tier: None,
        }
    }

    /// The gate that fulfils them. What follows a rejection is the workflow's business; where it does not say, a workflow
    /// with commands is paused for a directive, and others fail.
    pub fn gate(&self, plan: &Plan) -> Gate {
        let rules = plan.rules.approval.as_ref();
        let has_commands = plan.steps.iter().any(|step| matches!(step.work, Work::Command { .. }));
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
