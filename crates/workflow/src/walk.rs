//! A walk over the steps without side effects: what would be done, as far as it can be known beforehand. What depends
//! on the answer of a step is left open, and said so.

use std::collections::HashSet;

use interlock_core::plan::{BlastRadius, Plan, StepSpec, WaitFor, Work};
use interlock_core::state::{EffectClass, StepKind};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use crate::check::acts;
use crate::definition::Definition;
use crate::expression::budget::Budget;
use crate::expression::pieces::{self, Piece};
use crate::expression::{self, Scope, reference};
use crate::graph::{summary, undo};
use crate::inputs::{Inputs, InvalidInputs};

/// Whether a step would run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Would {
    Run,
    Skip,
    /// It depends on what an earlier step answers.
    Depends,
    /// Its condition or its input cannot be evaluated.
    Fail,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Walked {
    pub step: String,
    pub kind: StepKind,
    pub would: Would,
    /// What it does, in a few words.
    pub does: String,
    #[serde(rename = "if", default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// What it is given; expressions that depend on earlier answers stand as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The output, where it is known beforehand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<EffectClass>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blast_radius: Option<BlastRadius>,
    /// How it would be undone; `null` for a step that acts and cannot be.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said")]
    pub undone_by: Option<Option<String>>,
    /// Who has to approve, for a gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Value>,
    /// What the policy would decide, for a step that changes something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Predicted>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What a policy would decide on a step, as far as it is known beforehand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predicted {
    /// `allow`, `needs_approval`, `deny`, or `undecided`: then the run would stop here.
    pub verdict: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// Each rule with its word.
    pub reasons: Vec<String>,
    /// How many people would have to agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<u32>,
    /// Of which groups they are; every person with the role where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    /// Who of them may not decide: `starter`, the person who starts the run or owns the key that does; `author`, the
    /// person who wrote the workflow version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<String>,
    /// A tenant that lets people approve their own runs lets the starter decide.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub self_approval: bool,
    /// The rules look at the run, or at what the step is given: then the answer may be another one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_change: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Walk {
    pub workflow: String,
    pub inputs: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The furthest that any step that may run reaches.
    pub blast_radius: BlastRadius,
    pub steps: Vec<Walked>,
}

/// `null` is an answer, and not the same as none.
#[expect(clippy::option_option, reason = "absent, null and a text are three things")]
fn said<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Walks the steps for these inputs. All expressions together spend from one budget.
pub fn walk(definition: &Definition, given: &Value, budget: &Budget) -> Result<Walk, InvalidInputs> {
    let plan = definition.plan(1);
    let inputs = match Inputs::of(definition, budget) {
        Ok(inputs) => inputs.bind(given, budget)?,
        Err(_) => given.clone(),
    };
    let mut walker = Walker::new(&plan, &inputs, budget);
    let subject = definition.subject.as_ref().and_then(|subject| walker.text(&subject.key.0));
    walker.about_run(&plan, subject.as_ref());
    let steps: Vec<_> = plan.steps.iter().map(|spec| walker.step(spec)).collect();
    let furthest = steps.iter().filter(|step| step.would != Would::Skip).filter_map(|step| step.blast_radius).max();
    let blast_radius = furthest.unwrap_or(BlastRadius::Low);
    Ok(Walk {
        workflow: plan.workflow.clone(),
        inputs,
        subject,
        profile: plan.rules.profile.clone(),
        blast_radius,
        steps,
    })
}

struct Walker {
    budget: Budget,
    scope: Scope,
    /// Steps whose output is known.
    known: HashSet<String>,
}

impl Walker {
    fn new(plan: &Plan, inputs: &Value, budget: &Budget) -> Self {
        let mut scope = Scope::new(Map::new(), budget);
        scope.set("inputs", inputs.clone());
        scope.set("steps", json!({}));
        let mut walker = Self { budget: budget.clone(), scope, known: HashSet::new() };
        walker.about_run(plan, None);
        walker
    }

    fn about_run(&mut self, plan: &Plan, subject: Option<&String>) {
        let run = json!({ "id": "run_…", "subject": subject, "workspace": "default", "labels": {},
            "workflow": plan.workflow, "version": plan.version });
        self.scope.set("run", run);
    }

    /// Whether an expression needs nothing that only a running workflow knows.
    fn is_known(&self, source: &str) -> bool {
        // What cannot be paid for is not compiled here; the evaluation refuses it in words.
        self.budget.open(source).is_err() || reference::steps_of(source).iter().all(|step| self.known.contains(step))
    }

    fn text(&self, text: &str) -> Option<String> {
        match expression::render_text(text, &self.scope).ok()? {
            Value::String(text) => Some(text),
            Value::Null => None,
            other => Some(other.to_string()),
        }
    }

    fn knows(&mut self, step: &str, output: Value, state: &str) {
        self.scope.set_in("steps", step, json!({ "output": output, "state": state }));
        self.known.insert(step.to_owned());
    }

    fn step(&mut self, spec: &StepSpec) -> Walked {
        let kind = spec.kind();
        let mut walked = Walked {
            step: spec.key.clone(),
            kind,
            would: Would::Run,
            does: summary(spec),
            condition: spec.condition.clone(),
            input: None,
            output: None,
            effect: acts(kind).then(|| spec.effect_class()),
            blast_radius: acts(kind).then(|| spec.blast_radius()),
            undone_by: (acts(kind) && spec.effect_class() != EffectClass::Read).then(|| undo(spec)),
            approval: None,
            policy: None,
            waits_for: None,
            notes: Vec::new(),
        };
        if let Some(condition) = &spec.condition {
            walked.would = self.condition(condition, &mut walked.notes);
        }
        if walked.would == Would::Skip {
            self.knows(&spec.key, Value::Null, "skipped");
            return walked;
        }
        self.work(spec, &mut walked);
        walked
    }

    fn condition(&self, source: &str, notes: &mut Vec<String>) -> Would {
        if !self.is_known(source) {
            let steps: Vec<_> = reference::steps_of(source).into_iter().map(|step| format!("`{step}`")).collect();
            notes.push(format!("whether it runs depends on {}", steps.join(", ")));
            return Would::Depends;
        }
        match expression::condition(source, &self.scope) {
            Ok(true) => Would::Run,
            Ok(false) => Would::Skip,
            Err(error) => {
                notes.push(error.message);
                Would::Fail
            }
        }
    }

    fn work(&mut self, spec: &StepSpec, walked: &mut Walked) {
        match &spec.work {
            Work::Task { with, .. } => {
                let inputs = self.scope.get("inputs").cloned();
                walked.input = match with {
                    Some(with) => Some(self.value(&with.to_value().unwrap_or_default(), walked)),
                    None => inputs,
                };
            }
            Work::Connector { with: Some(with), .. } | Work::Model { with: Some(with), .. } => {
                walked.input = Some(self.value(&with.to_value().unwrap_or_default(), walked));
            }
            Work::Command { argv, env } => {
                walked.input = Some(self.value(&json!({ "argv": argv, "env": env }), walked));
            }
            Work::Transform { value } => {
                let template = value.to_value().unwrap_or_default();
                let open = open_expressions(&template, self);
                let rendered = self.value(&template, walked);
                if open || walked.would == Would::Fail {
                    walked.input = Some(rendered);
                } else {
                    walked.output = Some(rendered.clone());
                    if walked.would == Would::Run {
                        self.knows(&spec.key, rendered, "succeeded");
                    }
                }
            }
            Work::Approval(gate) => {
                let message = gate.message.as_ref().map(|message| self.value(&json!(message), walked));
                walked.approval = Some(json!({
                    "message": message, "approvers": gate.approvers, "quorum": gate.quorum,
                    "on_reject": gate.on_reject, "on_expiry": gate.on_expiry,
                }));
            }
            Work::Wait { until, timeout } => {
                walked.waits_for = Some(match until {
                    WaitFor::Signal { signal, key, .. } => {
                        let key = key.as_ref().map(|key| self.value(&json!(key), walked));
                        let own = || self.scope.get("run").map(|run| run["subject"].clone()).unwrap_or_default();
                        json!({ "signal": signal, "key": key.unwrap_or_else(own), "timeout_ms": timeout })
                    }
                    WaitFor::For(span) => json!({ "for_ms": span }),
                    WaitFor::Until(text) => json!({ "until": self.value(&json!(text), walked) }),
                });
            }
            _ => {}
        }
    }

    /// The template with what is known rendered and the rest as it stands.
    fn value(&self, template: &Value, walked: &mut Walked) -> Value {
        match template {
            Value::String(text) => self.rendered(text, walked),
            Value::Array(items) => items.iter().map(|item| self.value(item, walked)).collect(),
            Value::Object(fields) => {
                let fields = fields.iter().map(|(name, value)| (name.clone(), self.value(value, walked)));
                Value::Object(fields.collect())
            }
            other => other.clone(),
        }
    }

    fn rendered(&self, text: &str, walked: &mut Walked) -> Value {
        let Ok(found) = pieces::split(text) else { return json!(text) };
        let known = found.iter().all(|piece| match piece {
            Piece::Expression { source, .. } => self.is_known(source),
            Piece::Text(_) => true,
        });
        if !known {
            return json!(text);
        }
        match expression::render_text(text, &self.scope) {
            Ok(value) => value,
            Err(error) => {
                walked.would = Would::Fail;
                walked.notes.push(error.message);
                json!(text)
            }
        }
    }
}

fn open_expressions(template: &Value, walker: &Walker) -> bool {
    match template {
        Value::String(text) => pieces::split(text).is_ok_and(|pieces| {
            pieces.iter().any(|piece| matches!(piece, Piece::Expression { source, .. } if !walker.is_known(source)))
        }),
        Value::Array(items) => items.iter().any(|item| open_expressions(item, walker)),
        Value::Object(fields) => fields.values().any(|value| open_expressions(value, walker)),
        _ => false,
    }
}
