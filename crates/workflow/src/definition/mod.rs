//! The definition: what a workflow file says, read and with every place remembered. [`Definition`] is the whole file,
//! [`Step`] one of its steps, [`Triggers`] what starts it, [`Input`] what it takes.

mod approval;
mod input;
mod step;
mod trigger;

pub use approval::{Approval, ApprovalBlock};
pub use input::{Input, InputType};
pub use step::{Argv, Backoff, Idempotency, Requires, Retry, Rollback, Step, Verify, Wait};
pub use trigger::{GitHub, Schedule, ServiceNow, Signal, Slack, Ticket, TriggerKind, Triggers, Webhook};

use interlock_core::plan::rules::{Dedupe, OnConflict, StepPhase, ValidationMode, Workdir};
use interlock_core::plan::{Accept, BlastRadius, OnDenial, OnFailure, RollbackCondition};
use interlock_core::state::EffectClass;
use interlock_core::time::Millis;

use crate::diagnostic::Report;
use crate::node::{Node, Value};
use crate::shape::{At, Defs, Map, Name, Shape, TextTemplate, record, words};

words!(
    Accept,
    BlastRadius,
    Dedupe,
    EffectClass,
    OnConflict,
    OnDenial,
    OnFailure,
    RollbackCondition,
    StepPhase,
    ValidationMode,
    Workdir,
);

record! {
    /// A workflow: a name, what starts it, what it takes, and its steps in order.
    "a workflow" Definition {
        /// The workflow's name, unique in the tenant.
        name: At<Name>,
        /// What it is for, in a sentence or two.
        description: Option<At<String>>,
        /// What starts it, besides a request by API or command line.
        on: Option<Triggers>,
        /// What a run takes: a schema for each input.
        inputs: Map<Input>,
        /// What a run is about: one active run per subject. An expression, or a mapping with `key` and `on_conflict`.
        subject: Option<Subject>,
        /// Labels of every run, to find it by.
        labels: Map<TextTemplate>,
        /// The environment it acts on, with its sandbox contract, command scope and rollback rule. Profiles whose name
        /// begins with `prod-` are strict.
        profile: Option<At<Name>>,
        /// Who is asked, when, and what follows.
        approval: Option<ApprovalBlock>,
        /// How much a run, and all runs together, may do.
        limits: Option<Limits>,
        /// How long a run may take from its start to its end; without end where omitted.
        timeout: Option<At<Millis>>,
        /// What happens when a step has failed for good; `rollback` where an executed step declares one.
        on_failure: Option<OnFailure>,
        /// The queue whose workers take the steps; `default` where omitted.
        queue: Option<At<Name>>,
        /// Runs of higher priority are claimed first; 0 where omitted.
        priority: Option<i32>,
        /// What is done, in this order.
        steps: At<Vec<Step>>,
    }
}

record! {
    /// How much may be done.
    "`limits`" Limits {
        /// Writes of one run, rollbacks aside: effects that are not reads, and a step that is not `effect: read` at least once; a step that needs one more fails, and the run ends as `writes_exhausted`.
        writes: Option<At<u32>>,
        /// Steps of all this workflow's runs, of any version, that may run at once; the others wait.
        concurrency: Option<At<u32>>,
        /// Runs of this workflow that may start in a minute; what is over is delayed.
        runs_per_min: Option<At<u32>>,
        /// What one run may spend, in `unit`: once it is spent, no further step that changes something or asks a model begins.
        spend: Option<At<f64>>,
        /// The unit of `spend` and of every cost that tasks report, such as `USD` or `credits`; a report in another unit is refused. Models cost what the price table says: with model steps, the table's currency.
        unit: Option<At<String>>,
    }
}

/// What a run is about.
#[derive(Debug, Clone)]
pub struct Subject {
    pub key: TextTemplate,
    pub on_conflict: Option<At<OnConflict>>,
}

record! {
    /// What a run is about, and what happens when another one is about the same.
    "`subject`" SubjectRule {
        /// An expression that gives the subject.
        key: TextTemplate,
        /// What a start does when the subject has an active run already; `reject` where omitted.
        on_conflict: Option<At<OnConflict>>,
    }
}

impl Subject {
    /// What a start does when the subject has an active run already.
    pub fn on_conflict(&self) -> OnConflict {
        self.on_conflict.map_or(OnConflict::Reject, |rule| rule.value)
    }
}

impl Shape for Subject {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        if matches!(node.value, Value::Map(_)) {
            let SubjectRule { key, on_conflict, .. } = SubjectRule::read(node, report)?;
            return Some(Self { key, on_conflict });
        }
        Some(Self { key: TextTemplate::read(node, report)?, on_conflict: None })
    }

    fn schema(defs: &mut Defs) -> serde_json::Value {
        serde_json::json!({ "oneOf": [TextTemplate::schema(defs), SubjectRule::schema(defs)] })
    }
}
