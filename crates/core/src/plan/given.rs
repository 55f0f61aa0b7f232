//! A plan that is given with a start, without a workflow file. Files are compiled and checked as they are applied; here
//! what promises something and would do nothing is refused, as it is there.

use super::{BlastRadius, Plan, StepSpec, WaitFor, Work};
use crate::limits::{NAME_BYTES_MAX, TEMPLATE_BYTES_MAX};
use crate::plan::command::reserved_capability;
use crate::plan::rules::{ApprovalRules, Dedupe, IdempotencyRule, ValidationMode};
use crate::rejection::Rejection;
use crate::state::{EffectClass, StepKind};

impl Plan {
    /// What [`Plan::validate`] does not look at, since compiled plans may say it.
    pub fn check_given(&self) -> Result<(), Rejection> {
        let invalid = |what: String| Rejection::InvalidPlan { workflow: self.workflow.clone(), what };
        if let Some(profile) = self.rules.profile.as_deref().filter(|profile| profile.chars().any(char::is_uppercase)) {
            return Err(invalid(format!("its profile is `{profile}`; profiles are written in small letters")));
        }
        if self.rules.profile.as_ref().is_some_and(|profile| profile.len() > NAME_BYTES_MAX) {
            return Err(invalid(format!("its profile is longer than {NAME_BYTES_MAX} bytes")));
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
            if let Some((field, length, max)) = step.too_long() {
                let what = format!("step `{}`: `{field}` is {length} bytes long, the limit is {max}", step.key);
                return Err(invalid(what));
            }
            if let Some(label) = step.unmatched_label() {
                let key = &step.key;
                let what = format!(
                    "step `{key}`: no worker has the label `{}`: a label's name and value are not empty, and its name holds \
                     no `=`",
                    label.escape_debug()
                );
                return Err(invalid(what));
            }
            let mut capabilities = step.rules.requires.iter().flat_map(|requires| &requires.capabilities);
            let reserved = capabilities.find_map(|name| Some((name, reserved_capability(name)?)));
            if let Some((name, (prefix, field))) = reserved {
                let key = &step.key;
                let what = format!(
                    "step `{key}`: `{}` cannot be a capability: for what begins with `{prefix}` write `requires.{field}`",
                    name.escape_debug()
                );
                return Err(invalid(what));
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
    /// Whether what it says on when two effects are one is kept. What only reads has none.
    fn keeps_idempotency(&self) -> bool {
        // A command that another run has carried out leaves nothing in this run's directory.
        let is_alone = |rule: &IdempotencyRule| rule.dedupe == Dedupe::Run || self.rules.workdir.is_none();
        let is_kept =
            |rule: &IdempotencyRule| rule.is_kept() && is_alone(rule) && self.effect_class() != EffectClass::Read;
        self.rules.idempotency.as_ref().is_none_or(is_kept)
    }

    /// The first text of the step that is longer than it may be, its length and its limit.
    fn too_long(&self) -> Option<(&'static str, usize, usize)> {
        let mut texts: Vec<(&'static str, &String, usize)> = Vec::new();
        let name = |field: &'static str| move |text| (field, text, NAME_BYTES_MAX);
        texts.extend(self.rules.credentials.iter().map(name("rules.credentials")));
        if let Some(requires) = &self.rules.requires {
            texts.extend(requires.capabilities.iter().map(name("rules.requires.capabilities")));
            texts.extend(requires.network_segment.iter().map(name("rules.requires.network_segment")));
            texts.extend(requires.labels.keys().chain(requires.labels.values()).map(name("rules.requires.labels")));
        }
        match &self.work {
            Work::Approval(gate) => {
                texts.extend(gate.approvers.iter().map(name("approvers")));
                texts.extend(gate.message.iter().map(|text| ("message", text, TEMPLATE_BYTES_MAX)));
            }
            Work::Wait { until: WaitFor::Signal { key, .. }, .. } => {
                texts.extend(key.iter().map(|text| ("signal.key", text, TEMPLATE_BYTES_MAX)));
            }
            Work::Wait { until: WaitFor::Until(until), .. } => texts.push(("until", until, TEMPLATE_BYTES_MAX)),
            _ => {}
        }
        let long = texts.into_iter().find(|(_, text, max)| text.len() > *max);
        long.map(|(field, text, max)| (field, text.len(), max))
    }

    /// The first label that the step asks for and that no worker could have.
    fn unmatched_label(&self) -> Option<&str> {
        let mut labels = self.rules.requires.iter().flat_map(|requires| &requires.labels);
        let unmatched = labels.find(|(name, value)| name.is_empty() || name.contains('=') || value.is_empty());
        unmatched.map(|(name, _)| name.as_str())
    }

    /// The first rule of the step that would have no effect: no part of Interlock keeps it.
    fn without_effect(&self) -> Option<&'static str> {
        let rules = &self.rules;
        let said = match self.kind() {
            StepKind::Command => vec![("idempotency", !self.keeps_idempotency())],
            // Policy looks at the rest.
            StepKind::Connector => vec![
                ("requires", rules.requires.is_some()),
                ("idempotency", !self.keeps_idempotency()),
                ("workdir", rules.workdir.is_some()),
            ],
            StepKind::Model => vec![
                ("requires", rules.requires.is_some()),
                ("idempotency", rules.idempotency.is_some()),
                ("workdir", rules.workdir.is_some()),
            ],
            _ => vec![
                ("credentials", !rules.credentials.is_empty()),
                ("requires", rules.requires.is_some() && self.kind() != StepKind::Task),
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
        let kept = json!({ "idempotency": { "dedupe": "tenant", "window": 60_000 } });
        assert_eq!(plan(json!({}), connector(kept)), None, "another run's effect is looked for");
        let own_key = json!({ "idempotency": { "dedupe": "tenant", "window": 60_000, "key": "k" } });
        assert!(plan(json!({}), connector(own_key)).is_some());
        let too_long = json!({ "idempotency": { "dedupe": "tenant", "window": 99_999_999_999_u64 } });
        assert!(plan(json!({}), connector(too_long)).is_some());
        assert_eq!(plan(json!({}), connector(json!({ "credentials": ["slack"] }))), None, "policy looks at it");
        let model = json!({ "key": "a", "kind": "model", "model": "m" });
        assert_eq!(plan(json!({ "spend_max_micros": 5 }), model), None, "what it costs is counted");
    }

    #[test]
    fn texts_that_are_kept_as_they_are_given_have_a_limit() {
        type Step = dyn Fn(usize) -> serde_json::Value;
        fn text(length: usize) -> String {
            "x".repeat(length)
        }
        let refusal = |step: serde_json::Value| {
            let plan = json!({ "workflow": "w", "version": 1, "steps": [step] });
            serde_json::from_value::<Plan>(plan).unwrap().check_given().err().map(|error| error.to_string())
        };
        let gate = |length| json!({ "key": "a", "kind": "approval", "message": text(length) });
        let group = |length| json!({ "key": "a", "kind": "approval", "approvers": [text(length)] });
        let signal = |length| json!({ "key": "a", "kind": "wait", "signal": { "type": "go", "key": text(length) } });
        let until = |length| json!({ "key": "a", "kind": "wait", "until": text(length) });
        let secret = |length| {
            let rules = json!({ "credentials": [text(length)] });
            json!({ "key": "a", "kind": "connector", "operation": "slack.post", "rules": rules })
        };
        let steps: [(&Step, &str, usize); 5] = [
            (&gate, "message", TEMPLATE_BYTES_MAX),
            (&group, "approvers", NAME_BYTES_MAX),
            (&signal, "signal.key", TEMPLATE_BYTES_MAX),
            (&until, "until", TEMPLATE_BYTES_MAX),
            (&secret, "rules.credentials", NAME_BYTES_MAX),
        ];
        for (step, field, max) in steps {
            assert_eq!(refusal(step(max)), None, "{field}");
            let says = refusal(step(max + 1)).unwrap();
            assert!(says.contains(&format!("`{field}` is {} bytes long, the limit is {max}", max + 1)), "{says}");
        }
    }

    #[test]
    fn a_command_says_how_near_its_worker_is_and_which_labels_it_has() {
        let refusal = |labels: serde_json::Value| {
            let rules = json!({ "requires": { "max_latency": 50, "labels": labels } });
            let step =
                json!({ "key": "a", "kind": "command", "argv": ["/bin/true"], "effect": "read", "rules": rules });
            let plan = json!({ "workflow": "w", "version": 1, "steps": [step], "rules": { "profile": "dev-flex" } });
            serde_json::from_value::<Plan>(plan).unwrap().check_given().err().map(|error| error.to_string())
        };
        assert_eq!(refusal(json!({ "rack": "a" })), None);
        for labels in [json!({ "": "a" }), json!({ "rack=a": "b" }), json!({ "rack": "" })] {
            assert!(refusal(labels.clone()).unwrap().contains("no worker has the label"), "{labels}");
        }
        let long = refusal(json!({ "rack": "x".repeat(NAME_BYTES_MAX + 1) })).unwrap();
        assert!(long.contains("rules.requires.labels"), "{long}");
    }

    #[test]
    fn what_would_not_be_kept_is_refused_by_name() {
        for (field, rule) in [
            ("credentials", json!(["db"])),
            ("idempotency", json!({ "dedupe": "tenant" })),
            ("confidence_score", json!(0.9)),
            ("auto_approve_threshold", json!(0.9)),
        ] {
            let says = refusal(json!({}), json!({ field: rule })).unwrap();
            assert!(says.contains("step `a`") && says.contains(field), "{says}");
        }
        assert_eq!(refusal(json!({}), json!({ "requires": { "capabilities": ["gpu"] } })), None);
        for name in ["label:rack=a", "max_latency_ms:5", "segment:vpc-a"] {
            let says = refusal(json!({}), json!({ "requires": { "capabilities": ["gpu", name] } })).unwrap();
            assert!(says.contains(name) && says.contains("cannot be a capability"), "{says}");
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
