//! The plan of a run: what a workflow version comes down to. It is stored when the run starts, under the hash of its
//! canonical bytes, and nothing that happens afterwards needs the workflow's definition in a process's memory.

pub mod command;
mod given;
pub mod retry;
pub mod rules;
mod step_fields;
pub mod tier;

pub use command::{
    BoundCommand, EFFECTS, WORKDIR, WORKDIR_PROFILES, bound_command, command_capability, commanded_profile,
    control_capability,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::cost::check_unit;
use crate::json::{Hash, Json, canonical};
use crate::limits;
use crate::plan::retry::RetryPolicy;
use crate::plan::rules::{PlanRules, StepRules};
use crate::rejection::Rejection;
use crate::state::{EffectClass, StepKind, UnknownName, names};
use crate::tenant::caps::WorkflowCaps;
use crate::time::Millis;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::str::FromStr;

names!(
    /// What a run does when a step has failed for good.
    OnFailure, "failure rule", {
        Rollback = "rollback",
        Pause = "pause",
        Fail = "fail",
    }
);

names!(
    /// What a rejected or expired approval leads to. There is no value that approves.
    OnDenial, "denial rule", {
        Fail = "fail",
        Pause = "pause",
    }
);

names!(
    /// How far an effect reaches.
    BlastRadius, "blast radius", {
        Low = "low",
        Medium = "medium",
        High = "high",
    }
);

names!(
    /// Which signals count for a wait.
    Accept, "accept rule", {
        /// Received after the run was created.
        SinceRun = "since_run",
        /// Received after the wait was opened.
        SinceStep = "since_step",
        Any = "any",
    }
);

names!(
    /// When a rollback applies.
    RollbackCondition, "rollback condition", {
        Failure = "failure",
        Manual = "manual",
    }
);

/// A validated workflow version, as data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub workflow: String,
    pub version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// The run's deadline, counted from its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Millis>,
    /// `max_writes_per_run`: how many effects that are not reads a run may have. A step that changes something counts once, also where
    /// it names no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes_max: Option<u32>,
    /// What the workflow says about permission and spending.
    #[serde(default, skip_serializing_if = "PlanRules::is_empty")]
    pub rules: PlanRules,
    pub steps: Vec<StepSpec>,
}

/// One step of a plan. Read and written by [`step_fields`], because serde cannot refuse what it does not know beside
/// a flattened field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct StepSpec {
    pub key: String,
    #[serde(flatten)]
    pub work: Work,
    /// A CEL expression; the step is skipped when it is false.
    #[serde(rename = "if", default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    #[serde(default = "default_queue", skip_serializing_if = "is_default_queue")]
    pub queue: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<EffectClass>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blast_radius: Option<BlastRadius>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<RollbackSpec>,
    /// On resume of a terminal run the stored output is used again.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub resumable: bool,
    /// What the step says about permission and about the workers that may run it.
    #[serde(default, skip_serializing_if = "StepRules::is_empty")]
    pub rules: StepRules,
}

/// What a step does, with the data that only its kind has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Work {
    Task {
        handler: String,
        /// The input as a template: strings may hold `${{ … }}`. Without it the task gets the run's inputs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        with: Option<Json>,
    },
    Transform {
        /// A template whose rendering is the step's output.
        value: Json,
    },
    Wait {
        #[serde(flatten)]
        until: WaitFor,
        /// Named apart from the step's own timeout, beside which it stands.
        #[serde(rename = "wait_timeout", default, skip_serializing_if = "Option::is_none")]
        timeout: Option<Millis>,
    },
    Approval(Gate),
    Rollback {
        /// The position of the step that this one undoes.
        undoes: u32,
        #[serde(flatten)]
        by: Undo,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        with: Option<Json>,
        /// It undoes nothing: it looks whether the rollback step before it has taken effect.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        verifies: bool,
    },
    Command {
        argv: Vec<String>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
    },
    Connector {
        operation: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        with: Option<Json>,
    },
    Model {
        #[serde(default, skip_serializing_if = "String::is_empty")]
        model: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        with: Option<Json>,
    },
}

/// What a wait waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum WaitFor {
    Signal {
        #[serde(rename = "type")]
        signal: String,
        /// A template; the run's subject, else its id, where omitted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        #[serde(default = "since_run")]
        accept: Accept,
    },
    /// A timer.
    For(Millis),
    /// A template that renders to an instant: RFC 3339, or Unix milliseconds.
    Until(String),
}

/// A request for human authorisation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Gate {
    /// Groups whose members may decide; every person with the role where empty.
    #[serde(default)]
    pub approvers: Vec<String>,
    /// How many different people must approve.
    #[serde(default = "one")]
    pub quorum: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default = "fail")]
    pub on_reject: OnDenial,
    #[serde(default = "fail")]
    pub on_expiry: OnDenial,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate_after: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_after: Option<Millis>,
}

impl Gate {
    /// One person with the role, of whatever group.
    pub(crate) const fn of_anybody() -> Self {
        Self {
            approvers: Vec::new(),
            quorum: one(),
            message: None,
            on_reject: fail(),
            on_expiry: fail(),
            escalate_after: None,
            expires_after: None,
        }
    }
}

/// How a step is undone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RollbackSpec {
    #[serde(flatten)]
    pub by: Undo,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<Json>,
    #[serde(default = "on_any_condition")]
    pub conditions: Vec<RollbackCondition>,
    /// The task or command that looks afterwards whether the rollback has taken effect. It only reads, and succeeds where it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Undo>,
}

impl RollbackSpec {
    /// In every condition, with nothing that looks at it afterwards.
    pub fn by(by: Undo) -> Self {
        Self { by, with: None, conditions: on_any_condition(), verify: None }
    }
}

/// What undoes a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Undo {
    /// A task.
    Handler(String),
    /// A command.
    Argv(Vec<String>),
    /// A connector's operation.
    Operation(String),
}

impl Undo {
    /// The name by which a worker knows it.
    pub fn handler(&self) -> &str {
        match self {
            Self::Handler(name) | Self::Operation(name) => name,
            Self::Argv(_) => "command",
        }
    }

    /// For people to read: a command with all its arguments, else the name.
    pub fn in_words(&self) -> String {
        match self {
            Self::Argv(argv) => argv.join(" "),
            by => by.handler().to_owned(),
        }
    }
}

/// Where an expression begins in a template.
pub const EXPRESSION_OPENS: &str = "${{";

/// Whether a text holds expressions.
pub fn is_template(text: &str) -> bool {
    text.contains(EXPRESSION_OPENS)
}

pub const DEFAULT_QUEUE: &str = "default";
/// Transforms are pure: the servers run them themselves, from a queue of their own.
pub const TRANSFORM_QUEUE: &str = "interlock.transform";

fn default_queue() -> String {
    DEFAULT_QUEUE.to_owned()
}
fn is_default_queue(queue: &str) -> bool {
    queue == DEFAULT_QUEUE
}
const fn yes() -> bool {
    true
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
const fn is_yes(value: &bool) -> bool {
    *value
}
const fn one() -> u32 {
    1
}
const fn fail() -> OnDenial {
    OnDenial::Fail
}
const fn since_run() -> Accept {
    Accept::SinceRun
}
fn on_any_condition() -> Vec<RollbackCondition> {
    RollbackCondition::ALL.to_vec()
}

impl StepSpec {
    pub fn new(key: impl Into<String>, work: Work) -> Self {
        let queue = if matches!(work, Work::Transform { .. }) { TRANSFORM_QUEUE } else { DEFAULT_QUEUE };
        Self {
            key: key.into(),
            work,
            condition: None,
            queue: queue.to_owned(),
            timeout: None,
            retry: None,
            effect: None,
            blast_radius: None,
            on_failure: None,
            rollback: None,
            resumable: true,
            rules: StepRules::default(),
        }
    }

    pub fn task(key: impl Into<String>, handler: impl Into<String>) -> Self {
        Self::new(key, Work::Task { handler: handler.into(), with: None })
    }

    pub const fn kind(&self) -> StepKind {
        match self.work {
            Work::Task { .. } => StepKind::Task,
            Work::Transform { .. } => StepKind::Transform,
            Work::Wait { .. } => StepKind::Wait,
            Work::Approval(_) => StepKind::Approval,
            Work::Rollback { .. } => StepKind::Rollback,
            Work::Command { .. } => StepKind::Command,
            Work::Connector { .. } => StepKind::Connector,
            Work::Model { .. } => StepKind::Model,
        }
    }

    /// The effect class that counts: what was declared, else what the kind implies. Task code is trusted to be
    /// safe to repeat unless it says otherwise; a command is not.
    pub fn effect_class(&self) -> EffectClass {
        self.effect.unwrap_or(match self.kind() {
            StepKind::Transform | StepKind::Approval | StepKind::Wait => EffectClass::Read,
            _ if self.is_command() => EffectClass::Unsafe,
            StepKind::Task | StepKind::Rollback | StepKind::Command => EffectClass::Idempotent,
            StepKind::Connector | StepKind::Model => EffectClass::Keyed,
        })
    }

    pub fn retry_policy(&self) -> RetryPolicy {
        self.retry.clone().unwrap_or_else(|| RetryPolicy::default_for(self.kind(), self.effect_class()))
    }

    /// How far the step reaches: what was declared, else low for reads and medium for the rest.
    pub fn blast_radius(&self) -> BlastRadius {
        self.blast_radius.unwrap_or(match self.effect_class() {
            EffectClass::Read => BlastRadius::Low,
            EffectClass::Idempotent | EffectClass::Keyed | EffectClass::Unsafe => BlastRadius::Medium,
        })
    }

    /// Whether the step proposes an action, which must be judged before it may act. A task that only reads does not, unless
    /// the workflow says that it is one to be careful with.
    pub fn is_governed(&self) -> bool {
        match self.kind() {
            StepKind::Task => {
                let is_risky =
                    self.rules.critical || self.rules.destructive || self.blast_radius == Some(BlastRadius::High);
                self.effect_class() != EffectClass::Read || is_risky
            }
            StepKind::Command | StepKind::Connector | StepKind::Model | StepKind::Rollback => true,
            StepKind::Transform | StepKind::Wait | StepKind::Approval => false,
        }
    }

    /// Whether the step looks if a rollback has taken effect, and undoes nothing itself.
    pub const fn verifies_rollback(&self) -> bool {
        matches!(self.work, Work::Rollback { verifies: true, .. })
    }

    /// Whether its input, or what it waits for, must be rendered before the step begins.
    pub fn is_rendered(&self) -> bool {
        match &self.work {
            Work::Transform { .. } | Work::Command { .. } | Work::Wait { until: WaitFor::Until(_), .. } => true,
            Work::Task { with, .. } | Work::Connector { with, .. } | Work::Model { with, .. } => with.is_some(),
            Work::Wait { until: WaitFor::Signal { key, .. }, .. } => key.as_deref().is_some_and(is_template),
            Work::Approval(gate) => gate.message.as_deref().is_some_and(is_template),
            // What undoes is given fixed values, so that it cannot fail on an expression.
            Work::Wait { until: WaitFor::For(_), .. } | Work::Rollback { .. } => false,
        }
    }

    /// May be performed again on resume without an approval.
    pub fn is_replayable(&self) -> bool {
        self.effect_class() != EffectClass::Unsafe
    }
}

impl Plan {
    /// A first version of a workflow, with nothing optional.
    pub fn new(workflow: impl Into<String>, steps: Vec<StepSpec>) -> Self {
        Self {
            workflow: workflow.into(),
            version: 1,
            on_failure: None,
            timeout: None,
            writes_max: None,
            rules: PlanRules::default(),
            steps,
        }
    }

    pub fn step(&self, position: u32) -> Option<&StepSpec> {
        self.steps.get(position as usize)
    }

    /// What all runs of the workflow together may do, where it says so.
    pub fn workflow_caps(&self) -> Option<WorkflowCaps> {
        let caps = self.rules.caps();
        (!caps.is_unlimited()).then(|| WorkflowCaps { workflow: self.workflow.clone(), caps })
    }

    /// Checks everything that a plan must hold before a run may be made from it.
    pub fn validate(&self) -> Result<(), Rejection> {
        let invalid = |what: String| Err(Rejection::InvalidPlan { workflow: self.workflow.clone(), what });
        if let Err(what) = check_name(&self.workflow) {
            return invalid(format!("the workflow's name {what}"));
        }
        if self.steps.is_empty() {
            return invalid("it has no steps; a workflow needs at least one".into());
        }
        if self.steps.len() > limits::STEPS_PER_WORKFLOW_MAX {
            let (count, max) = (self.steps.len(), limits::STEPS_PER_WORKFLOW_MAX);
            return invalid(format!("it has {count} steps, the limit is {max}"));
        }
        if self.timeout.is_some_and(|timeout| timeout == Millis::ZERO || timeout > limits::RUN_TIMEOUT_MAX) {
            return invalid("its timeout is zero or longer than ten years".into());
        }
        if let Some(Err(what)) = self.rules.spend_unit.as_deref().map(check_unit) {
            return invalid(format!("`rules.spend_unit`: {what}"));
        }
        let mut keys = HashSet::new();
        for (position, step) in self.steps.iter().enumerate() {
            let at = format!("step {} (`{}`)", position + 1, step.key);
            if let Err(what) = check_name(&step.key) {
                return invalid(format!("{at}: the key {what}"));
            }
            if !keys.insert(step.key.as_str()) {
                return invalid(format!("{at}: the key is used twice; keys are the stable names of steps"));
            }
            if let Err(what) = step.check().and_then(|()| self.check_command(step)) {
                return invalid(format!("{at}: {what}"));
            }
        }
        Ok(())
    }

    /// The canonical text under whose hash the plan is stored.
    pub fn encode(&self) -> (Hash, Json) {
        let bytes = canonical(self).expect("a plan is plain data and always has a canonical form");
        let text = String::from_utf8(bytes).expect("canonical JSON is UTF-8");
        (Hash::of(text.as_bytes()), Json::trusted(text))
    }
}

impl StepSpec {
    /// The task that a worker must know to run the step.
    pub fn task_name(&self) -> Option<&str> {
        match &self.work {
            Work::Task { handler, .. } => Some(handler),
            Work::Rollback { by: Undo::Handler(name) | Undo::Operation(name), .. } => Some(name),
            _ => None,
        }
    }

    fn check(&self) -> Result<(), String> {
        check_name(&self.queue).map_err(|what| format!("the queue's name {what}"))?;
        if let Some(retry) = &self.retry
            && (retry.max_attempts == 0 || retry.max_attempts > limits::ATTEMPTS_MAX)
        {
            return Err(format!("max_attempts is {}, must be 1 to {}", retry.max_attempts, limits::ATTEMPTS_MAX));
        }
        if self.timeout == Some(Millis::ZERO) {
            return Err("the timeout is zero; leave it out for none".into());
        }
        // It bounds an attempt, and these kinds have none.
        let instead = match &self.work {
            Work::Wait { .. } => Some("wait_timeout"),
            Work::Approval(_) => Some("expires_after"),
            _ => None,
        };
        if let Some(instead) = instead.filter(|_| self.timeout.is_some()) {
            let kind = self.kind();
            return Err(format!("`timeout` has no effect on a step of the kind `{kind}`: write `{instead}`"));
        }
        if self.condition.as_ref().is_some_and(|text| text.len() > limits::EXPRESSION_BYTES_MAX) {
            return Err(format!("the condition is longer than {} bytes", limits::EXPRESSION_BYTES_MAX));
        }
        if let Some(RollbackSpec { by, verify, .. }) = &self.rollback {
            match by {
                Undo::Handler(name) => check_name(name).map_err(|what| format!("the rollback task's name {what}"))?,
                Undo::Operation(name) => {
                    check_operation(name).map_err(|what| format!("the rollback's connector {what}"))?;
                }
                Undo::Argv(argv) => command::check_undo(argv)?,
            }
            match verify {
                None => {}
                Some(Undo::Handler(name)) => {
                    check_name(name)
                        .map_err(|what| format!("the name of the task that verifies the rollback {what}"))?;
                }
                Some(Undo::Argv(argv)) => command::check_undo(argv)?,
                Some(Undo::Operation(_)) => {
                    return Err("a rollback is verified by a task or a command, not by a connector".into());
                }
            }
        }
        match &self.work {
            Work::Task { handler, .. } => check_name(handler).map_err(|what| format!("the task's name {what}")),
            Work::Wait { until: WaitFor::Signal { signal, .. }, .. } => {
                check_name(signal).map_err(|what| format!("the signal's type {what}"))
            }
            Work::Wait { until: WaitFor::For(span), .. } if *span > limits::WAIT_MAX => {
                Err("it waits for more than ten years".into())
            }
            Work::Approval(gate) if gate.quorum == 0 || gate.quorum as usize > limits::VOTES_PER_APPROVAL_MAX => {
                Err(format!("the quorum is {}, must be 1 to {}", gate.quorum, limits::VOTES_PER_APPROVAL_MAX))
            }
            Work::Rollback { .. } => {
                Err("rollback steps are made by the engine; declare `rollback` on the step that is undone".into())
            }
            Work::Connector { operation, .. } => {
                check_operation(operation).map_err(|what| format!("the connector's name {what}"))
            }
            Work::Model { model, .. } => check_name(model).map_err(|what| format!("the model's name {what}")),
            Work::Command { argv, env } => command::check_template(argv, env),
            _ => Ok(()),
        }
    }
}

/// The operation by which workers ask a model. Rules and caps know a model call by the kind of its step, so that no step of
/// another kind may have it.
const MODEL_OPERATION: &str = "model.chat";

fn check_operation(name: &str) -> Result<(), String> {
    if name == MODEL_OPERATION {
        return Err(format!("is `{MODEL_OPERATION}`: only a step of the kind `model` asks a model"));
    }
    check_name(name)
}

/// What every name must be: not empty, not long, without white space.
pub fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("is empty".into());
    }
    if name.len() > limits::NAME_BYTES_MAX {
        return Err(format!("is {} bytes long, the limit is {}", name.len(), limits::NAME_BYTES_MAX));
    }
    if name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("holds white space or control characters".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(steps: Vec<StepSpec>) -> Plan {
        Plan::new("demo", steps)
    }

    #[test]
    fn bad_plans_are_refused_and_the_refusal_names_the_step() {
        let says = |plan: Plan| plan.validate().unwrap_err().to_string();
        assert!(says(plan(vec![])).contains("no steps"));
        let twice = says(plan(vec![StepSpec::task("a", "t"), StepSpec::task("a", "t")]));
        assert!(twice.contains("step 2 (`a`)") && twice.contains("used twice"), "{twice}");
        assert!(says(plan(vec![StepSpec::task("", "t")])).contains("is empty"));
        let wait = Work::Wait { until: WaitFor::For(Millis(1)), timeout: None };
        let bounded = says(plan(vec![StepSpec { timeout: Some(Millis(1)), ..StepSpec::new("w", wait) }]));
        assert!(bounded.contains("write `wait_timeout`"), "{bounded}");
        let asks = StepSpec::new("m", Work::Connector { operation: "model.chat".into(), with: None });
        assert!(says(plan(vec![asks])).contains("only a step of the kind `model`"));
    }

    #[test]
    fn a_plan_survives_storage_and_its_hash_is_stable() {
        let mut wait = StepSpec::new(
            "w",
            Work::Wait {
                until: WaitFor::Signal { signal: "go".into(), key: None, accept: Accept::SinceRun },
                timeout: Some(Millis(5)),
            },
        );
        wait.condition = Some("inputs.x > 1".into());
        let timer = StepSpec::new("t", Work::Wait { until: WaitFor::For(Millis(10)), timeout: None });
        let gate = StepSpec::new("g", Work::Approval(serde_json::from_str("{}").unwrap()));
        let plan = plan(vec![StepSpec::task("a", "t"), wait, timer, gate]);
        plan.validate().unwrap();
        let (hash, text) = plan.encode();
        let back: Plan = text.decode().unwrap();
        assert_eq!(back, plan);
        assert_eq!(back.encode().0, hash);
    }
}
