//! A plan that is given with a start, without a workflow file. Files are compiled and checked as they are applied; here
//! what promises something and would do nothing is refused, as it is there.

use super::{BlastRadius, Plan, StepSpec};
use crate::plan::rules::{ApprovalRules, Requires, ValidationMode};
use crate::rejection::Rejection;
use crate::state::{EffectClass, StepKind};

impl Plan {
    /// What [`Plan::validate`] does not look at, since compiled plans may say it.
    pub fn check_given(&self) -> Result<(), Rejection> {
        let invalid = |what: String| Rejection::InvalidPlan { workflow: self.workflow.clone(), what };
        if let Some(profile) = self.rules.profile.as_deref().filter(|profile| profile.chars().any(char::is_uppercase)) {
            return Err(invalid(format!("its profile is `{profile}`; profiles are written in small letters")));
        }
        if let Some(approval) = &self.rules.approval {
            let mode_alone = ApprovalRules { mode: approval.mode, ..ApprovalRules::default() };
            if *approval != mode_alone {
                let what =
                    "`rules.approval` has no effect beside its `mode`: write approvers, quorum and times at each gate";
                return Err(invalid(what.into()));
            }
        }
        if self.validation_mode() == ValidationMode::FinalOnly && self.blast_radius() > BlastRadius::Low {
            let radius = self.blast_radius();
            return Err(invalid(format!("the mode `final_only` is for blast radius low, and this plan's is {radius}")));
        }
        for step in &self.steps {
            let undone = step.rollback.is_some() || step.kind() == StepKind::Connector;
            if self.rules.is_prod() && step.effect_class() != EffectClass::Read && !undone {
                let key = &step.key;
                return Err(invalid(format!(
                    "step `{key}` changes something and has no rollback, which its profile demands: add `rollback`, or \
                     `\"effect\": \"read\"` if it changes nothing"
                )));
            }
            if let Some(field) = step.without_effect() {
                let (key, kind) = (&step.key, step.kind());
                let what = format!("step `{key}`: `rules.{field}` has no effect on a step of the kind `{kind}`");
                return Err(invalid(what));
            }
        }
        Ok(())
    }
}

impl StepSpec {
    /// The first rule of the step that nobody would keep.
    fn without_effect(&self) -> Option<&'static str> {
        let rules = &self.rules;
        let said = match self.kind() {
            StepKind::Command => {
                let place = |rule: &Requires| rule.network_segment.is_some() || rule.max_latency.is_some();
                vec![
                    ("requires.network_segment and max_latency", rules.requires.as_ref().is_some_and(place)),
                    ("idempotency", rules.idempotency.is_some()),
                    ("workdir", rules.workdir.is_some()),
                ]
            }
            // Policy looks at the rest.
            StepKind::Connector | StepKind::Model => vec![
                ("requires", rules.requires.is_some()),
                ("idempotency", rules.idempotency.is_some()),
                ("workdir", rules.workdir.is_some()),
            ],
            _ => vec![
                ("credentials", !rules.credentials.is_empty()),
                ("requires", rules.requires.is_some()),
                ("idempotency", rules.idempotency.is_some()),
                ("confidence_score", rules.confidence_score.is_some()),
                ("auto_approve_threshold", rules.auto_approve_threshold.is_some()),
                ("workdir", rules.workdir.is_some()),
            ],
        };
        said.into_iter().find(|(_, is_said)| *is_said).map(|(field, _)| field)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(rules: serde_json::Value, step: serde_json::Value) -> Option<String> {
        let steps = json!([{ "key": "a", "kind": "task", "handler": "t", "rules": step }]);
        let plan = json!({ "workflow": "w", "version": 1, "steps": steps, "rules": rules });
        let plan: Plan = serde_json::from_value(plan).unwrap();
        plan.check_given().err().map(|error| error.to_string())
    }

    #[test]
    fn what_is_not_kept_of_calls_to_other_systems_is_refused_too() {
        let plan = |rules: serde_json::Value, step: serde_json::Value| {
            let plan = json!({ "workflow": "w", "version": 1, "steps": [step], "rules": rules });
            serde_json::from_value::<Plan>(plan).unwrap().check_given().err().map(|error| error.to_string())
        };
        let connector = |rules| json!({ "key": "a", "kind": "connector", "operation": "slack.post", "rules": rules });
        assert!(plan(json!({}), connector(json!({ "idempotency": { "dedupe": "tenant" } }))).is_some());
        assert_eq!(plan(json!({}), connector(json!({ "credentials": ["slack"] }))), None, "policy looks at it");
        let model = json!({ "key": "a", "kind": "model", "model": "m" });
        assert_eq!(plan(json!({ "spend_max_micros": 5 }), model), None, "what it costs is counted");
    }

    #[test]
    fn what_would_not_be_kept_is_refused_by_name() {
        for (field, rule) in [
            ("credentials", json!(["db"])),
            ("requires", json!({ "capabilities": ["gpu"] })),
            ("idempotency", json!({ "dedupe": "tenant" })),
            ("confidence_score", json!(0.9)),
            ("auto_approve_threshold", json!(0.9)),
        ] {
            let says = refusal(json!({}), json!({ field: rule })).unwrap();
            assert!(says.contains("step `a`") && says.contains(field), "{says}");
        }
        let says = refusal(json!({ "approval": { "quorum": 3, "approvers": ["sre"] } }), json!({})).unwrap();
        assert!(says.contains("at each gate"), "{says}");
        let says = refusal(json!({ "profile": "Prod-critical" }), json!({})).unwrap();
        assert!(says.contains("small letters"), "{says}");
        let says = refusal(json!({ "profile": "prod-critical" }), json!({})).unwrap();
        assert!(says.contains("step `a`") && says.contains("rollback"), "{says}");
        let says = refusal(json!({ "approval": { "mode": "final_only" } }), json!({})).unwrap();
        assert!(says.contains("blast radius low"), "{says}");
        assert_eq!(refusal(json!({ "profile": "dev-flex", "approval": { "mode": "per_step" } }), json!({})), None);
        assert_eq!(refusal(json!({}), json!({ "critical": true, "destructive": true })), None);
    }
}
