//! Steps: how many there are, what they are called, that each does one thing, and that its fields belong to its kind.

use std::collections::HashMap;

use interlock_core::limits::{
    ATTEMPTS_MAX, DEDUPE_WINDOW_MAX, RUN_TIMEOUT_MAX, STEPS_PER_WORKFLOW_MAX, VOTES_PER_APPROVAL_MAX, WAIT_MAX,
};
use interlock_core::plan::command::reserved_capability;
use interlock_core::plan::rules::Dedupe;
use interlock_core::state::{EffectClass, StepKind};
use interlock_core::text::article::with_article;
use interlock_core::time::Millis;

use super::commands;
use crate::convert::effect_of;
use crate::definition::{Backoff, Definition, Rollback, Step, Wait};
use crate::diagnostic::{Code, Report};
use crate::limits::{ARGV_MAX, DESCRIPTION_BYTES_MAX};
use crate::node::Span;
use crate::shape::At;

/// What stands beside the names of workflows in addresses.
const RESERVED: &[&str] = &["validate", "plan", "test"];

pub fn check(definition: &Definition, report: &mut Report) {
    let steps = &definition.steps;
    if steps.is_empty() {
        report.error(Code::MissingField, steps.span, "the workflow has no steps").help("it needs at least one");
    }
    if steps.len() > STEPS_PER_WORKFLOW_MAX {
        let message = format!("the workflow has {} steps, the limit is {STEPS_PER_WORKFLOW_MAX}", steps.len());
        report.error(Code::TooLarge, definition.name.span, message);
    }
    if RESERVED.contains(&&**definition.name) {
        let message =
            format!("a workflow cannot be called `{}`: the name has a meaning in addresses", &**definition.name);
        report.error(Code::InvalidName, definition.name.span, message);
    }
    if definition.name.contains('/') {
        let message = "a workflow's name stands in addresses, and cannot hold `/`";
        report.error(Code::InvalidName, definition.name.span, message).help("use `-` or `.`");
    }
    duration(definition.timeout, RUN_TIMEOUT_MAX, report);
    description(definition.description.as_ref(), report);
    let mut seen: HashMap<&str, Span> = HashMap::new();
    for step in steps.iter() {
        if let Some(first) = seen.insert(&step.id, step.id.span) {
            report
                .error(Code::DuplicateStep, step.id.span, format!("there are two steps `{}`", &**step.id))
                .help(format!("the first one is on line {}; ids are unique", first.start.line));
        }
        one(step, report);
    }
}

fn one(step: &Step, report: &mut Report) {
    let kinds: Vec<_> = step.kinds().collect();
    match kinds.as_slice() {
        [] => {
            report
                .error(Code::StepKind, step.id.span, format!("the step `{}` does nothing", &**step.id))
                .help("add one of `task`, `run`, `uses`, `model`, `transform`, `approval`, `wait`");
        }
        [(kind, ..)] => misplaced(step, *kind, report),
        [(_, first, _), rest @ ..] => {
            for (_, field, span) in rest {
                report
                    .error(Code::StepKind, *span, format!("a step does one thing, and this one has `{first}` already"))
                    .help(format!("move `{field}` into a step of its own"));
            }
        }
    }
    description(step.description.as_ref(), report);
    duration(step.timeout, RUN_TIMEOUT_MAX, report);
    if let Some(wait) = &step.wait {
        self::wait(wait, report);
    }
    if let Some(run) = &step.run {
        argv(run.items.len(), run.span, report);
    }
    if let Some(gate) = &step.approval {
        quorum(gate.0.quorum, report);
        duration(gate.0.escalate_after, WAIT_MAX, report);
        duration(gate.0.expires_after, WAIT_MAX, report);
    }
    if let Some(rollback) = &step.rollback {
        self::rollback(rollback, report);
    }
    for share in [step.confidence_score, step.auto_approve_threshold].into_iter().flatten() {
        if !(0.0..=1.0).contains(&share.value) {
            report.error(Code::InvalidValue, share.span, format!("{} is out of range: expected 0 to 1", share.value));
        }
    }
    retry(step, report);
    for name in step.requires.iter().flat_map(|requires| &requires.capabilities) {
        if let Some((prefix, field)) = reserved_capability(name) {
            report
                .error(Code::InvalidName, name.span, format!("`{}` cannot be a capability", &***name))
                .help(format!("for what begins with `{prefix}` write `requires: {{ {field}: … }}`"));
        }
    }
    if let Some(rule) = &step.idempotency {
        duration(rule.window, DEDUPE_WINDOW_MAX, report);
        let only_reads = step.kind().is_some_and(|kind| effect_of(step, kind) == EffectClass::Read);
        if rule.dedupe == Some(Dedupe::Tenant) && only_reads {
            report.error(Code::MisplacedField, rule.span, "`dedupe: tenant` has no effect on a step that only reads");
        }
        if rule.dedupe == Some(Dedupe::Tenant) && rule.window.is_none() {
            report
                .error(Code::MissingField, rule.span, "`dedupe: tenant` needs a `window`")
                .help("say for how long a repeat counts as the same effect, such as `window: 1h`");
        } else if rule.dedupe != Some(Dedupe::Tenant)
            && let Some(window) = rule.window
        {
            report.error(Code::MisplacedField, window.span, "a `window` belongs to `dedupe: tenant`");
        }
    }
}

pub fn quorum(quorum: Option<At<u32>>, report: &mut Report) {
    if let Some(quorum) = quorum
        && (quorum.value == 0 || quorum.value as usize > VOTES_PER_APPROVAL_MAX)
    {
        let message = format!("the quorum is {}, must be 1 to {VOTES_PER_APPROVAL_MAX}", quorum.value);
        report.error(Code::InvalidValue, quorum.span, message);
    }
}

fn description(text: Option<&At<String>>, report: &mut Report) {
    if let Some(text) = text.filter(|text| text.len() > DESCRIPTION_BYTES_MAX) {
        let message = format!("the description is {} bytes long, the limit is {DESCRIPTION_BYTES_MAX}", text.len());
        report.error(Code::TooLarge, text.span, message);
    }
}

pub fn duration(given: Option<At<Millis>>, max: Millis, report: &mut Report) {
    let Some(given) = given else { return };
    if given.value == Millis::ZERO {
        report.error(Code::InvalidValue, given.span, "the duration is zero").help("leave the field out for none");
    } else if given.value > max {
        report.error(Code::InvalidValue, given.span, "the duration is longer than ten years");
    }
}

fn argv(items: usize, span: Span, report: &mut Report) {
    if items == 0 {
        report.error(Code::InvalidValue, span, "the command is empty").help("begin with the program's path");
    } else if items > ARGV_MAX {
        report.error(Code::TooLarge, span, format!("the command has {items} parts, the limit is {ARGV_MAX}"));
    }
}

fn wait(wait: &Wait, report: &mut Report) {
    let given = [wait.signal.is_some(), wait.span_of_time.is_some(), wait.until.is_some()];
    if given.iter().filter(|given| **given).count() != 1 {
        report
            .error(Code::StepKind, wait.span, "a wait has exactly one of `signal`, `for` and `until`")
            .help("`wait: { signal: TYPE, timeout: 15m }`, `wait: { for: 10m }` or `wait: { until: … }`");
    }
    duration(wait.span_of_time, WAIT_MAX, report);
    duration(wait.timeout, WAIT_MAX, report);
    if wait.signal.is_none() {
        let key = wait.key.as_ref().map(|key| (key.0.span, "key"));
        let timeout = wait.timeout.map(|timeout| (timeout.span, "timeout"));
        for (span, field) in [key, timeout].into_iter().flatten() {
            report.error(Code::MisplacedField, span, format!("`{field}` belongs to a wait for a `signal`"));
        }
    }
}

fn rollback(rollback: &Rollback, report: &mut Report) {
    let given = [rollback.task.is_some(), rollback.run.is_some(), rollback.uses.is_some()];
    if given.iter().filter(|given| **given).count() != 1 {
        report.error(Code::StepKind, rollback.span, "a rollback has exactly one of `task`, `run` and `uses`");
    }
    if let Some(run) = &rollback.run {
        argv(run.items.len(), run.span, report);
        if let Some(with) = &rollback.with {
            report.error(Code::MisplacedField, with.0.span, "a command has arguments, not `with`");
        }
    }
    if let Some(verify) = &rollback.verify {
        if verify.task.is_some() == verify.run.is_some() {
            report.error(Code::StepKind, verify.span, "what verifies a rollback is exactly one of `task` and `run`");
        }
        if let Some(run) = &verify.run {
            argv(run.items.len(), run.span, report);
        }
    }
}

fn retry(step: &Step, report: &mut Report) {
    let Some(retry) = &step.retry else { return };
    if let Some(max) = retry.max_attempts
        && (max.value == 0 || max.value > ATTEMPTS_MAX)
    {
        let message = format!("max_attempts is {}, must be 1 to {ATTEMPTS_MAX}", max.value);
        report.error(Code::InvalidValue, max.span, message).help("1 means: never try again");
    }
    if let Some(Backoff::Exponential(rule)) = &retry.backoff {
        duration(Some(rule.base), WAIT_MAX, report);
        if let Some(factor) = rule.factor.filter(|factor| !(1.0..=100.0).contains(&factor.value)) {
            report.error(Code::InvalidValue, factor.span, "the factor must be 1 to 100");
        }
        if let Some(cap) = rule.cap.filter(|cap| cap.value < rule.base.value) {
            report.error(Code::InvalidValue, cap.span, "the cap is shorter than the base");
        }
    }
}

/// What a field is, where it stands, and the kinds of steps on which it has an effect. What has none is refused: a
/// field that promises safety and is only recorded is worse than none.
fn placed(step: &Step) -> Vec<(&'static str, Option<Span>, &'static [StepKind])> {
    use StepKind::{Command, Connector, Model, Task};
    const ACTS: &[StepKind] = &[Task, Command, Connector, Model];
    const GOVERNED: &[StepKind] = &[Command, Connector, Model];
    vec![
        ("with", step.with.as_ref().map(|with| with.0.span), &[Task, Connector, Model]),
        ("env", step.env.0.first().map(|(key, _)| key.span), &[Command]),
        ("queue", step.queue.as_ref().map(|queue| queue.span), ACTS),
        ("effect", step.effect.map(|effect| effect.span), ACTS),
        ("blast_radius", step.blast_radius.map(|radius| radius.span), ACTS),
        ("critical", step.critical.map(|flag| flag.span), ACTS),
        ("destructive", step.destructive.map(|flag| flag.span), ACTS),
        ("timeout", step.timeout.map(|timeout| timeout.span), ACTS),
        ("retry", step.retry.as_ref().map(|retry| retry.span), ACTS),
        ("rollback", step.rollback.as_ref().map(|rollback| rollback.span), ACTS),
        ("credentials", step.credentials.first().map(|name| name.span), GOVERNED),
        ("requires", step.requires.as_ref().map(|requires| requires.span), &[Task, Command]),
        ("idempotency", step.idempotency.as_ref().map(|rule| rule.span), &[Command, Connector]),
        ("confidence_score", step.confidence_score.map(|score| score.span), GOVERNED),
        ("auto_approve_threshold", step.auto_approve_threshold.map(|threshold| threshold.span), GOVERNED),
        ("workdir", step.workdir.map(|rule| rule.span), &[Command]),
    ]
}

/// Fields that another kind of step has.
fn misplaced(step: &Step, kind: StepKind, report: &mut Report) {
    for (field, span, kinds) in placed(step) {
        let Some(span) = span.filter(|_| !kinds.contains(&kind)) else { continue };
        let message = format!("`{field}` has no effect on {} step", with_article(kind.as_str()));
        let diagnostic = report.error(Code::MisplacedField, span, message);
        match (field, kind) {
            ("timeout", StepKind::Wait) => diagnostic.help("say how long to wait inside: `wait: { timeout: … }`"),
            ("timeout", StepKind::Approval) => diagnostic.help("write `approval: { expires_after: … }`"),
            ("with", StepKind::Command) => diagnostic.help("put what the command needs into its arguments or `env`"),
            ("credentials", StepKind::Task) => {
                diagnostic.help("a task's own code has its credentials; pass secrets in `with`: `${{ secrets.NAME }}`");
            }
            ("idempotency", StepKind::Task) => {
                diagnostic
                    .help("write `effect: keyed`: the task is given a key that stays the same when it is repeated");
            }
            ("confidence_score" | "auto_approve_threshold", StepKind::Task) => {
                diagnostic.help("put an `approval` step before it if people are to be asked");
            }
            _ => {
                let names: Vec<_> = kinds.iter().map(|kind| kind.as_str()).collect();
                diagnostic.help(format!("it belongs to these kinds of steps: {}", names.join(", ")));
            }
        }
    }
}

/// What this version cannot keep yet.
pub fn without_executor(definition: &Definition, report: &mut Report) {
    for step in definition.steps.iter() {
        // A rule that would only be recorded is refused: the author relies on it.
        if let Some(rule) = step.idempotency.as_ref().filter(|rule| rule.key.is_some()) {
            report.error(Code::NoExecutor, rule.span, "`idempotency.key` is not kept yet").help(
                "leave it out; a connector's effect key is its own, and a command is known by all that it is run with",
            );
        }
        commands::not_kept(step, report);
    }
}
