//! A definition as the plan that runs are made of.

use interlock_connectors::{Fields, MODEL_CHAT, Reversal, find};
use interlock_core::json::Json;
use interlock_core::limits::{APPROVAL_ESCALATE_OTHER, APPROVAL_ESCALATE_PROD};
use interlock_core::plan::retry::{Backoff as CoreBackoff, RetryPolicy};
use interlock_core::plan::rules::{ApprovalRules, Dedupe, IdempotencyRule, PlanRules, Requires, StepRules, is_prod};
use interlock_core::plan::{
    Accept, BlastRadius, DEFAULT_QUEUE, Gate, OnDenial, OnFailure, Plan, RollbackCondition, RollbackSpec, StepSpec,
    Undo, WaitFor, Work,
};
use interlock_core::state::{EffectClass, StepKind};
use interlock_core::time::Millis;

use crate::definition::{Approval, Argv, Backoff, Definition, Retry, Rollback, Step, Wait};
use crate::expression::pieces;
use crate::node::Node;
use crate::shape::{Template, TextTemplate};

/// The longest wait of an exponential backoff that names none.
const BACKOFF_CAP: Millis = Millis::from_mins(10);

/// The effect class that counts: what was declared, else what the kind implies. A connector knows its own, which a
/// declaration can only tighten.
pub fn effect_of(step: &Step, kind: StepKind) -> EffectClass {
    let mut spec = StepSpec::new("", work_of_kind(kind));
    spec.effect = stricter_effect(step);
    spec.effect_class()
}

fn stricter_effect(step: &Step) -> Option<EffectClass> {
    step.effect.map(|effect| effect.value).max(class_of_connector(step))
}

/// The class of what a step calls, with the fields that it gives.
pub fn class_of_connector(step: &Step) -> Option<EffectClass> {
    let with = step.with.as_ref().map(|with| &with.0);
    let (name, fields) = match (&step.uses, &step.model) {
        (Some(uses), None) => (&*uses.value, with.map_or_else(|| serde_json::json!({}), Node::to_json)),
        (None, Some(model)) => (MODEL_CHAT, model_fields(model, with)),
        _ => return None,
    };
    let connector = find(name)?;
    Some(connector.effect(&Fields::written(connector.declaration(), fields)))
}

/// Whether the connector of a step knows the way back.
pub fn has_inverse(step: &Step) -> bool {
    let connector = step.uses.as_ref().and_then(|uses| find(uses));
    connector.is_some_and(|connector| matches!(connector.declaration().reversal, Reversal::Inverse { .. }))
}

/// What a model is asked, with its name.
pub fn model_fields(model: &str, with: Option<&Node>) -> serde_json::Value {
    let mut fields = with.map_or_else(|| serde_json::json!({}), Node::to_json);
    if let Some(fields) = fields.as_object_mut() {
        fields.insert("model".to_owned(), model.into());
    }
    fields
}

/// How far a step reaches: what was declared, else what its effect implies.
pub fn radius_of(step: &Step, kind: StepKind) -> BlastRadius {
    let mut spec = StepSpec::new("", work_of_kind(kind));
    spec.effect = stricter_effect(step);
    spec.blast_radius = step.blast_radius.map(|radius| radius.value);
    spec.blast_radius()
}

/// The emptiest work of a kind, to ask core what follows from the kind.
fn work_of_kind(kind: StepKind) -> Work {
    match kind {
        StepKind::Task | StepKind::Rollback => Work::Task { handler: String::new(), with: None },
        StepKind::Command => Work::Command { argv: Vec::new(), env: std::collections::BTreeMap::new() },
        StepKind::Connector => Work::Connector { operation: String::new(), with: None },
        StepKind::Model => Work::Model { model: String::new(), with: None },
        StepKind::Transform | StepKind::Approval | StepKind::Wait => Work::Transform { value: Json::null() },
    }
}

impl Definition {
    pub fn is_prod(&self) -> bool {
        self.profile.as_ref().is_some_and(|profile| is_prod(profile))
    }

    fn has_commands(&self) -> bool {
        self.steps.iter().any(|step| step.run.is_some())
    }

    /// The plan of this definition as one version. The definition has been checked.
    pub fn plan(&self, version: u32) -> Plan {
        let limits = self.limits.as_ref();
        let rules = PlanRules {
            profile: self.profile.as_ref().map(|profile| profile.0.clone()),
            approval: self.approval.as_ref().map(|block| ApprovalRules {
                mode: block.mode.map(|mode| mode.value),
                approvers: block.approvers.iter().map(|group| group.0.clone()).collect(),
                quorum: block.quorum.map(|quorum| quorum.value),
                on_reject: block.on_reject,
                on_expiry: block.on_expiry,
                escalate_after: block.escalate_after.map(|after| after.value),
                expires_after: block.expires_after.map(|after| after.value),
            }),
            concurrency_max: limits.and_then(|limits| limits.concurrency).map(|limit| limit.value),
            runs_per_min_max: limits.and_then(|limits| limits.runs_per_min).map(|limit| limit.value),
            spend_max_micros: limits.and_then(|limits| limits.spend).map(|limit| (limit.value * 1e6).round() as u64),
            spend_unit: limits.and_then(|limits| limits.unit.as_ref()).map(|unit| unit.value.clone()),
        };
        Plan {
            workflow: self.name.0.clone(),
            version,
            on_failure: self.on_failure,
            timeout: self.timeout.map(|timeout| timeout.value),
            writes_max: limits.and_then(|limits| limits.writes).map(|limit| limit.value),
            rules,
            steps: self.steps.iter().map(|step| self.step(step)).collect(),
        }
    }

    fn step(&self, step: &Step) -> StepSpec {
        let mut spec = StepSpec::new(step.id.0.clone(), self.work(step));
        let kind = spec.kind();
        spec.condition = step.condition.as_ref().map(|text| pieces::unwrapped(&text.0).trim().to_owned());
        if kind != StepKind::Transform {
            let queue = step.queue.as_ref().or(self.queue.as_ref());
            spec.queue = queue.map_or_else(|| DEFAULT_QUEUE.to_owned(), |queue| queue.0.clone());
        }
        spec.timeout = step.timeout.map(|timeout| timeout.value);
        spec.effect = stricter_effect(step);
        spec.retry = step.retry.as_ref().map(|rule| retry(rule, kind, effect_of(step, kind)));
        spec.blast_radius = step.blast_radius.map(|radius| radius.value);
        spec.on_failure = step.on_failure;
        spec.rollback = step.rollback.as_ref().map(rollback).or_else(|| self.inverse(step));
        spec.resumable = step.resumable.unwrap_or(true);
        spec.rules = rules(step);
        spec
    }

    /// What a connector undoes by itself. An operator can always ask for it; a failure does where the workflow or its
    /// profile wants everything undone.
    fn inverse(&self, step: &Step) -> Option<RollbackSpec> {
        let uses = step.uses.as_ref().filter(|_| has_inverse(step))?;
        let rolls_back = step.on_failure.or(self.on_failure) == Some(OnFailure::Rollback);
        let conditions = if rolls_back || self.is_prod() {
            RollbackCondition::ALL.to_vec()
        } else {
            vec![RollbackCondition::Manual]
        };
        Some(RollbackSpec { conditions, ..RollbackSpec::by(Undo::Operation(uses.0.clone())) })
    }

    fn work(&self, step: &Step) -> Work {
        let with = step.with.as_ref().map(json);
        if let Some(task) = &step.task {
            return Work::Task { handler: task.0.clone(), with };
        }
        if let Some(run) = &step.run {
            let env = step.env.0.iter().map(|(key, value)| (key.name.clone(), value.0.value.clone())).collect();
            return Work::Command { argv: argv(run), env };
        }
        if let Some(uses) = &step.uses {
            let with = with.or_else(|| Some(Json::trusted("{}")));
            return Work::Connector { operation: uses.0.clone(), with };
        }
        if let Some(model) = &step.model {
            let with = model_fields(model, step.with.as_ref().map(|with| &with.0));
            return Work::Model { model: model.0.clone(), with: Some(Json::trusted(with.to_string())) };
        }
        if let Some(gate) = &step.approval {
            return Work::Approval(self.gate(gate));
        }
        if let Some(rule) = &step.wait {
            return wait(rule);
        }
        let value = step.transform.as_ref().map_or_else(Json::null, json);
        Work::Transform { value }
    }

    /// A gate, with what it leaves open taken from the workflow.
    fn gate(&self, Approval(gate): &Approval) -> Gate {
        let block = self.approval.as_ref();
        let denied = if self.has_commands() { OnDenial::Pause } else { OnDenial::Fail };
        let groups =
            if gate.approvers.is_empty() { block.map(|block| &block.approvers) } else { Some(&gate.approvers) };
        let quorum = gate.quorum.or(block.and_then(|block| block.quorum));
        let escalate = gate.escalate_after.or(block.and_then(|block| block.escalate_after));
        let expires = gate.expires_after.or(block.and_then(|block| block.expires_after));
        let escalate_by_default = if self.is_prod() { APPROVAL_ESCALATE_PROD } else { APPROVAL_ESCALATE_OTHER };
        Gate {
            approvers: groups.into_iter().flatten().map(|group| group.0.clone()).collect(),
            quorum: quorum.map_or(1, |quorum| quorum.value),
            message: gate.message.as_ref().map(text),
            on_reject: gate.on_reject.or(block.and_then(|block| block.on_reject)).unwrap_or(denied),
            on_expiry: gate.on_expiry.or(block.and_then(|block| block.on_expiry)).unwrap_or(denied),
            escalate_after: Some(escalate.map_or(escalate_by_default, |after| after.value)),
            expires_after: expires.map(|after| after.value),
        }
    }
}

fn json(template: &Template) -> Json {
    Json::trusted(template.to_json().to_string())
}

fn text(template: &TextTemplate) -> String {
    template.0.value.clone()
}

fn argv(run: &Argv) -> Vec<String> {
    run.items.iter().map(text).collect()
}

fn wait(wait: &Wait) -> Work {
    let until = if let Some(signal) = &wait.signal {
        let key = wait.key.as_ref().map(text);
        WaitFor::Signal { signal: signal.0.clone(), key, accept: wait.accept.unwrap_or(Accept::SinceRun) }
    } else if let Some(until) = &wait.until {
        WaitFor::Until(text(until))
    } else {
        WaitFor::For(wait.span_of_time.map_or(Millis::ZERO, |span| span.value))
    };
    Work::Wait { until, timeout: wait.timeout.map(|timeout| timeout.value) }
}

fn retry(rule: &Retry, kind: StepKind, effect: EffectClass) -> RetryPolicy {
    let by_default = RetryPolicy::default_for(kind, effect);
    RetryPolicy {
        max_attempts: rule.max_attempts.map_or(by_default.max_attempts, |max| max.value),
        backoff: match &rule.backoff {
            None | Some(Backoff::Ladder) => CoreBackoff::Ladder,
            Some(Backoff::Fixed(delay)) => CoreBackoff::Fixed { delay: delay.value },
            Some(Backoff::Exponential(rule)) => CoreBackoff::Exponential {
                base: rule.base.value,
                factor: rule.factor.map_or(2.0, |factor| factor.value),
                cap: rule.cap.map_or(BACKOFF_CAP.max(rule.base.value), |cap| cap.value),
            },
        },
    }
}

fn rollback(rollback: &Rollback) -> RollbackSpec {
    let by = match (&rollback.task, &rollback.run, &rollback.uses) {
        (Some(task), ..) => Undo::Handler(task.0.clone()),
        (None, Some(run), _) => Undo::Argv(argv(run)),
        (None, None, uses) => Undo::Operation(uses.as_ref().map(|uses| uses.0.clone()).unwrap_or_default()),
    };
    let conditions =
        if rollback.conditions.is_empty() { RollbackCondition::ALL.to_vec() } else { rollback.conditions.clone() };
    let verify = rollback.verify.as_ref().map(|verify| match (&verify.task, &verify.run) {
        (None, Some(run)) => Undo::Argv(argv(run)),
        (task, _) => Undo::Handler(task.as_ref().map(|task| task.0.clone()).unwrap_or_default()),
    });
    RollbackSpec { by, with: rollback.with.as_ref().map(json), conditions, verify }
}

fn rules(step: &Step) -> StepRules {
    StepRules {
        phase: step.phase.map(|phase| phase.value),
        critical: step.critical.is_some_and(|flag| flag.value),
        destructive: step.destructive.is_some_and(|flag| flag.value),
        confidence_score: step.confidence_score.map(|score| score.value),
        auto_approve_threshold: step.auto_approve_threshold.map(|threshold| threshold.value),
        credentials: step.credentials.iter().map(|name| name.0.clone()).collect(),
        requires: step.requires.as_ref().map(|requires| Requires {
            capabilities: requires.capabilities.iter().map(|name| name.0.clone()).collect(),
            network_segment: requires.network_segment.as_ref().map(|name| name.0.clone()),
            max_latency: requires.max_latency_ms.map(|millis| Millis(u64::from(millis))),
            labels: requires.labels.0.iter().map(|(key, value)| (key.name.clone(), value.0.clone())).collect(),
        }),
        idempotency: step.idempotency.as_ref().map(|rule| IdempotencyRule {
            key: rule.key.as_ref().map(text),
            dedupe: rule.dedupe.unwrap_or(Dedupe::Run),
            window: rule.window.map(|window| window.value),
        }),
        workdir: step.workdir.map(|rule| rule.value),
    }
}
