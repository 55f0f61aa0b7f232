//! One step: what it does, and everything that can be said about it.

use interlock_core::plan::rules::{Dedupe, StepPhase, Workdir};
use interlock_core::plan::{Accept, BlastRadius, OnFailure, RollbackCondition};
use interlock_core::state::{EffectClass, StepKind};
use interlock_core::time::Millis;

use super::approval::Approval;
use crate::diagnostic::{Code, Report};
use crate::node::{Node, Span, Value};
use crate::shape::{At, Defs, Expression, Map, Name, Shape, Template, TextTemplate, record};

record! {
    /// One step. It has exactly one of `task`, `run`, `uses`, `model`, `transform`, `approval` and `wait`.
    "a step" Step {
        /// The step's stable name, unique in the workflow; other steps refer to it by `steps.ID`.
        id: At<Name>,
        /// What it does, for readers and approvers.
        description: Option<At<String>>,
        /// A condition; the step is skipped where it is false.
        condition ("if"): Option<Expression>,
        /// User code on a worker: the task's name.
        task: Option<At<Name>>,
        /// A sandboxed command: the program and its arguments, one item each. There is no shell.
        run: Option<Argv>,
        /// A connector's operation, such as `servicenow.incident.update`.
        uses: Option<At<Name>>,
        /// A model call: the model's name. `with` holds the request.
        model: Option<At<Name>>,
        /// A pure expression: the rendered value is the step's output.
        transform: Option<Template>,
        /// A gate: the run goes on when people have approved.
        approval: Option<Approval>,
        /// Waits for a signal or a time.
        wait: Option<Wait>,
        /// The input of `task`, `uses` and `model`. A task without it gets the run's inputs.
        with: Option<Template>,
        /// Environment variables of a command.
        env: Map<TextTemplate>,
        /// The queue whose workers take the step; the workflow's where omitted.
        queue: Option<At<Name>>,
        /// What repeating it does: `read`, `idempotent`, `keyed` (safe with its effect key), `unsafe`. Where omitted:
        /// `idempotent` for a task, `unsafe` for a command, `keyed` for a connector or model, else `read`.
        effect: Option<At<EffectClass>>,
        /// Which part of the runbook it belongs to.
        phase: Option<At<StepPhase>>,
        /// How far it reaches; `low` for reads, else `medium`, where omitted.
        blast_radius: Option<At<BlastRadius>>,
        /// The policy asks people before it, in every mode but `final_only`, unless an `approval` step before it does.
        critical: Option<At<bool>>,
        /// It destroys something: the policy asks two people before it.
        destructive: Option<At<bool>>,
        /// How sure the proposer of the step is, 0 to 1; of commands, connectors and models.
        confidence_score: Option<At<f64>>,
        /// From which confidence on it may be approved without asking, 0 to 1; of commands, connectors and models, and
        /// only outside production.
        auto_approve_threshold: Option<At<f64>>,
        /// Names of credentials that it is given, never their values; of commands, connectors and models.
        credentials: Vec<At<Name>>,
        /// What a worker must offer to be given the step; of tasks and commands.
        requires: Option<Requires>,
        /// How long one attempt may take. Where omitted: a command has what its profile allows, everything else has no limit
        /// but the run's.
        timeout: Option<At<Millis>>,
        /// How often and when it is tried again.
        retry: Option<Retry>,
        /// How it is undone.
        rollback: Option<Rollback>,
        /// A later run that continues this one uses the stored output again; `true` where omitted.
        resumable: Option<bool>,
        /// When two effects are one; of commands and connectors.
        idempotency: Option<Idempotency>,
        /// What happens when it has failed for good; the workflow's rule where omitted.
        on_failure: Option<OnFailure>,
        /// The run's commands that say this share one directory, `/work`, on one worker, which has the run as a whole. `run`:
        /// it is given up when the run has waited for two minutes. `keep`: it is kept however long the run waits.
        workdir: Option<At<Workdir>>,
    }
}

impl Step {
    /// What the step does; nothing where it says none or several, which the checks report.
    pub fn kind(&self) -> Option<StepKind> {
        let mut kinds = self.kinds();
        let first = kinds.next().map(|(kind, _, _)| kind);
        first.filter(|_| kinds.next().is_none())
    }

    /// All that it says it does, with the field and its place.
    pub fn kinds(&self) -> impl Iterator<Item = (StepKind, &'static str, Span)> + '_ {
        [
            self.task.as_ref().map(|task| (StepKind::Task, "task", task.span)),
            self.run.as_ref().map(|run| (StepKind::Command, "run", run.span)),
            self.uses.as_ref().map(|uses| (StepKind::Connector, "uses", uses.span)),
            self.model.as_ref().map(|model| (StepKind::Model, "model", model.span)),
            self.transform.as_ref().map(|value| (StepKind::Transform, "transform", value.0.span)),
            self.approval.as_ref().map(|gate| (StepKind::Approval, "approval", gate.0.span)),
            self.wait.as_ref().map(|wait| (StepKind::Wait, "wait", wait.span)),
        ]
        .into_iter()
        .flatten()
    }
}

/// A program and its arguments.
#[derive(Debug, Clone)]
pub struct Argv {
    pub span: Span,
    pub items: Vec<TextTemplate>,
}

impl Shape for Argv {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        if let Value::Text(text) = &node.value {
            let items: Vec<_> = text.split_whitespace().map(|item| format!("\"{item}\"")).collect();
            report
                .error(Code::WrongType, node.span, "a command is a list: the program, then its arguments")
                .help(format!("there is no shell; write `[{}]`", items.join(", ")));
            return None;
        }
        let Value::List(items) = &node.value else {
            report.error(Code::WrongType, node.span, format!("expected a list, found {}", node.kind()));
            return None;
        };
        // Numbers are common arguments, and mean their own text.
        let texts: Vec<_> = items
            .iter()
            .map(|item| match item.value {
                Value::Int(number) => Some(TextTemplate(At { value: number.to_string(), span: item.span })),
                _ => TextTemplate::read(item, report),
            })
            .collect();
        texts.into_iter().collect::<Option<_>>().map(|items| Self { span: node.span, items })
    }

    fn schema(_: &mut Defs) -> serde_json::Value {
        serde_json::json!({
            "type": "array", "items": { "type": ["string", "integer"] }, "minItems": 1,
            "maxItems": crate::limits::ARGV_MAX
        })
    }
}

record! {
    /// What a step waits for: exactly one of `signal`, `for` and `until`.
    "`wait`" Wait {
        /// A signal's type.
        signal: Option<At<Name>>,
        /// The signal's key; the run's subject, else its id, where omitted.
        key: Option<TextTemplate>,
        /// Which signals count: `since_run` (the default), `since_step`, `any`.
        accept: Option<Accept>,
        /// How long it waits for the signal; without end where omitted.
        timeout: Option<At<Millis>>,
        /// A span of time.
        span_of_time ("for"): Option<At<Millis>>,
        /// An instant: RFC 3339 text or Unix milliseconds, usually from an expression.
        until: Option<TextTemplate>,
    }
}

record! {
    /// What a worker must offer.
    "`requires`" Requires {
        /// Capabilities that the worker has registered with.
        capabilities: Vec<At<Name>>,
        /// The network segment that it stands in, as its certificate says.
        network_segment: Option<At<Name>>,
        /// How long its calls to the server may take to be answered, in milliseconds, as it measures them. A worker of which that
        /// is not known yet does not have the step.
        max_latency_ms: Option<u32>,
        /// Labels that the worker has registered with, with their values.
        labels: Map<At<Name>>,
    }
}

record! {
    /// How a step is undone, by exactly one of `task`, `run` and `uses`.
    "`rollback`" Rollback {
        /// User code on a worker.
        task: Option<At<Name>>,
        /// A sandboxed command.
        run: Option<Argv>,
        /// A connector's operation.
        uses: Option<At<Name>>,
        /// Fixed values for the rollback, which gets `{input, output, with}`: what the undone step was given, what it
        /// answered, and this.
        with: Option<Template>,
        /// When it applies; always where omitted.
        conditions: Vec<RollbackCondition>,
        /// What looks afterwards whether it has taken effect. Where it fails, the run pauses as `rollback_unverified`.
        verify: Option<Verify>,
    }
}

record! {
    /// What looks whether a rollback has taken effect, by exactly one of `task` and `run`: it only reads, is given what the rollback is
    /// given, and succeeds where the step is undone.
    "`verify`" Verify {
        /// User code on a worker.
        task: Option<At<Name>>,
        /// A sandboxed command.
        run: Option<Argv>,
    }
}

record! {
    /// When two effects are one.
    "`idempotency`" Idempotency {
        /// The effect's key; the connector's own where omitted. Refused today.
        key: Option<TextTemplate>,
        /// Where a repeat counts as the same: in the `run` (the default) or in the whole `tenant`.
        dedupe: Option<Dedupe>,
        /// For how long after it happened, with `dedupe: tenant`: at most 30 days, and as long as the run that had it is kept.
        window: Option<At<Millis>>,
    }
}

record! {
    /// How often and when a step is tried again.
    "`retry`" RetryRule {
        /// How many attempts there are, the first included. Where omitted: 5 for tasks, connectors and models; 2 for commands
        /// that only read or are idempotent; 1 for other commands and for rollbacks.
        max_attempts: Option<At<u32>>,
        /// How long to wait in between; 5 s, 30 s, 2 min, 10 min with jitter where omitted.
        backoff: Option<Backoff>,
    }
}

/// A retry rule, which may be written as nothing but the number of attempts.
#[derive(Debug, Clone)]
pub struct Retry {
    pub span: Span,
    pub max_attempts: Option<At<u32>>,
    pub backoff: Option<Backoff>,
}

impl Shape for Retry {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        if matches!(node.value, Value::Int(_)) {
            return Some(Self { span: node.span, max_attempts: Some(At::read(node, report)?), backoff: None });
        }
        let RetryRule { span, max_attempts, backoff } = RetryRule::read(node, report)?;
        Some(Self { span, max_attempts, backoff })
    }

    fn schema(defs: &mut Defs) -> serde_json::Value {
        serde_json::json!({ "oneOf": [u32::schema(defs), RetryRule::schema(defs)] })
    }
}

/// How long to wait between attempts.
#[derive(Debug, Clone)]
pub enum Backoff {
    Ladder,
    Fixed(At<Millis>),
    Exponential(Exponential),
}

record! {
    /// Waits that grow, with full jitter.
    "`exponential`" Exponential {
        /// The longest wait before the second attempt.
        base: At<Millis>,
        /// By how much it grows each time; 2 where omitted.
        factor: Option<At<f64>>,
        /// The longest wait of all; 10 minutes where omitted.
        cap: Option<At<Millis>>,
    }
}

record! {
    /// How long to wait between attempts: exactly one of these.
    "`backoff`" BackoffRule {
        /// The same wait each time.
        fixed: Option<At<Millis>>,
        /// Waits that grow.
        exponential: Option<Exponential>,
    }
}

impl Shape for Backoff {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        // A number without a unit is a duration that lacks one, and is told so.
        if matches!(node.value, Value::Int(_) | Value::Float(_)) {
            return At::read(node, report).map(Self::Fixed);
        }
        if let Value::Text(text) = &node.value {
            if &**text == "ladder" {
                return Some(Self::Ladder);
            }
            return At::read(node, report).map(Self::Fixed);
        }
        match BackoffRule::read(node, report)? {
            BackoffRule { fixed: Some(fixed), exponential: None, .. } => Some(Self::Fixed(fixed)),
            BackoffRule { fixed: None, exponential: Some(exponential), .. } => Some(Self::Exponential(exponential)),
            BackoffRule { span, .. } => {
                report
                    .error(Code::InvalidValue, span, "a backoff is either `fixed` or `exponential`")
                    .help("or write `ladder`, or a duration for a fixed one");
                None
            }
        }
    }

    fn schema(defs: &mut Defs) -> serde_json::Value {
        let duration = Millis::schema(defs);
        serde_json::json!({ "oneOf": [{ "const": "ladder" }, duration, BackoffRule::schema(defs)] })
    }
}
