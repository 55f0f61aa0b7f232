//! What a workflow says about permission: how it is approved, how far it may go, who may carry it out. Declared
//! values only ever tighten what policy demands, so a plan carries them to wherever a verdict is made.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::limits;
use crate::plan::OnDenial;
use crate::state::{UnknownName, names};
use crate::tenant::caps::Caps;
use crate::time::Millis;

names!(
    /// When people are asked (validation modes).
    ValidationMode, "validation mode", {
        PerStep = "per_step",
        PerPhase = "per_phase",
        CriticalOnly = "critical_only",
        /// Once, before the last step; only for what cannot reach far.
        FinalOnly = "final_only",
    }
);

names!(
    /// Which part of a runbook a step belongs to.
    StepPhase, "phase", {
        Prechecks = "prechecks",
        Main = "main",
        Postchecks = "postchecks",
    }
);

names!(
    /// What a start does when its subject has an active run already.
    OnConflict, "conflict rule", {
        /// Refuse, and name the active run.
        Reject = "reject",
        /// Start when the active run has ended.
        Queue = "queue",
        /// Send the active run a signal instead.
        Signal = "signal",
        /// Cancel the active run, then start.
        CancelPrevious = "cancel_previous",
    }
);

names!(
    /// Where a repeated effect counts as the same one.
    Dedupe, "dedupe scope", {
        Run = "run",
        Tenant = "tenant",
    }
);

names!(
    /// The directory that a run's commands share, on one worker.
    Workdir, "workdir rule", {
        /// Given up when the run has waited for two minutes: the commands after that begin in an empty one.
        Run = "run",
        /// Kept however long the run waits.
        Keep = "keep",
    }
);

/// The rules of a whole workflow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanRules {
    /// Environment, sandbox contract, command scope and rollback rule in one name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalRules>,
    /// Live claims of all runs of the workflow together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_max: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_per_min_max: Option<u32>,
    /// What the attempts of one run may cost, in millionths of `spend_unit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend_max_micros: Option<u64>,
    /// The unit of that and of every cost that is reported, such as `USD`. A report in another one is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend_unit: Option<String>,
}

impl PlanRules {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The limits over all runs of the workflow.
    pub const fn caps(&self) -> Caps {
        Caps { max_concurrency: self.concurrency_max, max_runs_per_min: self.runs_per_min_max }
    }

    pub fn is_prod(&self) -> bool {
        self.profile.as_deref().is_some_and(is_prod)
    }
}

/// The profiles that are shipped, the strictest first.
pub const PROFILES: &[&str] = &["prod-critical", "prod-standard", "staging-standard", "dev-flex"];

/// Profiles whose name begins with `prod-` have the strict rules of production.
pub fn is_prod(profile: &str) -> bool {
    profile.starts_with("prod-")
}

/// Who is asked, when, and what follows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRules {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ValidationMode>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_reject: Option<OnDenial>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_expiry: Option<OnDenial>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate_after: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_after: Option<Millis>,
}

/// The rules of one step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StepRules {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<StepPhase>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub critical: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub destructive: bool,
    /// How sure the proposer of the step is, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence_score: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_approve_threshold: Option<f64>,
    /// Names of credentials, never their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires: Option<Requires>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency: Option<IdempotencyRule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<Workdir>,
}

impl StepRules {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What a worker must offer to be given the step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Requires {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_segment: Option<String>,
    /// How long its calls to the server may take to be answered. A worker of which that is not known does not have the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_latency: Option<Millis>,
    /// Labels that it has registered with, with these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// When two effects are one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IdempotencyRule {
    /// A template; the connector's own where omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub dedupe: Dedupe,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Millis>,
}

impl IdempotencyRule {
    /// Whether it says no more than is kept: a key of the workflow's own is not.
    pub fn is_kept(&self) -> bool {
        let window_fits = match self.dedupe {
            Dedupe::Run => self.window.is_none(),
            Dedupe::Tenant => self.window.is_some_and(|window| window.0 > 0 && window <= limits::DEDUPE_WINDOW_MAX),
        };
        self.key.is_none() && window_fits
    }
}

impl StepRules {
    /// For how long the effect of another run of the tenant counts as the step's own.
    pub fn dedupe_window(&self) -> Option<Millis> {
        self.idempotency.as_ref().filter(|rule| rule.dedupe == Dedupe::Tenant)?.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Plan, StepSpec};

    #[test]
    fn a_plan_without_rules_is_stored_as_it_always_was() {
        let (_, text) = Plan::new("demo", vec![StepSpec::task("a", "t")]).encode();
        assert!(!text.as_str().contains("rules"), "{text:?}");
    }

    #[test]
    fn rules_survive_storage() {
        let mut step = StepSpec::task("a", "t");
        step.rules.phase = Some(StepPhase::Main);
        step.rules.confidence_score = Some(0.5);
        step.rules.requires = Some(Requires { max_latency: Some(Millis(2000)), ..Requires::default() });
        let mut plan = Plan::new("demo", vec![step]);
        plan.rules.profile = Some("prod-critical".into());
        plan.rules.approval = Some(ApprovalRules { mode: Some(ValidationMode::PerStep), ..ApprovalRules::default() });
        let (_, text) = plan.encode();
        assert_eq!(text.decode::<Plan>().unwrap(), plan);
        assert!(plan.rules.is_prod() && !is_prod("staging-standard"));
    }
}
