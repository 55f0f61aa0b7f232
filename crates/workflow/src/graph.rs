//! A workflow as a picture: Mermaid for documents, boxes for the terminal.

use std::fmt::Write as _;

use interlock_core::plan::{Plan, StepSpec, Undo, WaitFor, Work};

use crate::definition::Definition;
use crate::duration::show;

/// What a step does, in a few words.
pub fn summary(spec: &StepSpec) -> String {
    match &spec.work {
        Work::Task { handler, .. } => format!("task {handler}"),
        Work::Transform { .. } => "transform".to_owned(),
        Work::Approval(gate) => {
            let who = if gate.approvers.is_empty() { "approvers".to_owned() } else { gate.approvers.join(", ") };
            format!("approval by {} of {who}", gate.quorum)
        }
        Work::Wait { until, timeout } => {
            let what = match until {
                WaitFor::Signal { signal, .. } => format!("wait for {signal}"),
                WaitFor::For(span) => format!("wait {}", show(*span)),
                WaitFor::Until(text) => format!("wait until {text}"),
            };
            timeout.map_or_else(|| what.clone(), |timeout| format!("{what}, at most {}", show(timeout)))
        }
        Work::Command { argv, .. } => format!("run {}", argv.join(" ")),
        Work::Connector { operation, .. } => format!("uses {operation}"),
        Work::Model { model, .. } => format!("model {model}"),
        Work::Rollback { by, verifies: true, .. } => format!("verifies a rollback by {}", by.handler()),
        Work::Rollback { by, .. } => format!("rollback by {}", by.handler()),
    }
}

/// What undoes a step, in a few words.
pub fn undo(spec: &StepSpec) -> Option<String> {
    let told = |by: &Undo| match by {
        Undo::Handler(name) => format!("task {name}"),
        Undo::Argv(argv) => format!("run {}", argv.join(" ")),
        Undo::Operation(name) => format!("uses {name}"),
    };
    spec.rollback.as_ref().map(|rollback| match &rollback.verify {
        Some(verify) => format!("{}, verified by {}", told(&rollback.by), told(verify)),
        None => told(&rollback.by),
    })
}

/// The names of what starts it.
fn triggers(definition: &Definition) -> Vec<String> {
    let Some(on) = &definition.on else { return Vec::new() };
    let mut names = Vec::new();
    names.extend(on.webhook.0.iter().map(|hook| {
        let source = hook.source.as_ref().or(hook.endpoint.as_ref());
        source.map_or_else(|| "webhook".to_owned(), |source| format!("webhook {}", &***source))
    }));
    names.extend(on.github.0.iter().map(|hook| {
        let events: Vec<_> = hook.events.0.iter().map(|event| event.0.clone()).collect();
        format!("github {}", events.join(", ")).trim().to_owned()
    }));
    names.extend(on.slack.0.iter().map(|slack| {
        slack.command.as_ref().map_or_else(|| "slack".to_owned(), |command| format!("slack {}", command.value))
    }));
    names.extend(on.servicenow.0.iter().map(|table| {
        table.table.as_ref().map_or_else(|| "servicenow".to_owned(), |table| format!("servicenow {}", &***table))
    }));
    names.extend(on.schedule.0.iter().map(|schedule| {
        let zone = schedule.timezone.as_ref().map_or("UTC", |zone| zone.value.as_str());
        format!("schedule {} {zone}", schedule.cron.value)
    }));
    names.extend(on.ticket.0.iter().map(|_| "ticket".to_owned()));
    names.extend(on.signal.0.iter().map(|signal| format!("signal {}", &**signal.kind)));
    names
}

/// A Mermaid flow chart.
pub fn mermaid(definition: &Definition) -> String {
    let plan = definition.plan(1);
    let mut out = String::from("flowchart TD\n");
    let names = triggers(definition);
    let start = if names.is_empty() { vec!["start".to_owned()] } else { names };
    for (index, name) in start.iter().enumerate() {
        let _ = writeln!(out, "  on{index}([{}])", quoted(name));
    }
    for (index, spec) in plan.steps.iter().enumerate() {
        let label = quoted(&format!("{}\n{}", spec.key, summary(spec)));
        let (open, close) = match spec.work {
            Work::Approval(_) => ("{{", "}}"),
            Work::Wait { .. } => ("([", "])"),
            _ => ("[", "]"),
        };
        let _ = writeln!(out, "  s{index}{open}{label}{close}");
    }
    let _ = writeln!(out, "  done([\"done\"])");
    for index in 0..start.len() {
        let _ = writeln!(out, "  on{index} --> {}", entry(&plan, 0));
    }
    for (index, spec) in plan.steps.iter().enumerate() {
        let next = entry(&plan, index + 1);
        if let Some(condition) = &spec.condition {
            let _ = writeln!(out, "  c{index}{{{}}}", quoted(condition));
            let _ = writeln!(out, "  c{index} -- yes --> s{index}");
            let _ = writeln!(out, "  c{index} -- no --> {next}");
        }
        let _ = writeln!(out, "  s{index} --> {next}");
        if let Some(by) = undo(spec) {
            let _ = writeln!(out, "  r{index}[/{}/]", quoted(&by));
            let _ = writeln!(out, "  s{index} -. rollback .-> r{index}");
        }
    }
    out
}

/// Where the way into a step begins: at its condition, if it has one.
fn entry(plan: &Plan, index: usize) -> String {
    match plan.steps.get(index) {
        None => "done".to_owned(),
        Some(spec) if spec.condition.is_some() => format!("c{index}"),
        Some(_) => format!("s{index}"),
    }
}

fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .filter(|c| !c.is_control() || *c == '\n')
        .map(|c| match c {
            '"' => "#quot;".to_owned(),
            '\n' => "<br/>".to_owned(),
            '<' => "#lt;".to_owned(),
            '>' => "#gt;".to_owned(),
            other => other.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}

const WIDTH_MAX: usize = 72;

/// Boxes and lines.
pub fn drawing(definition: &Definition) -> String {
    let plan = definition.plan(1);
    let mut out = String::new();
    let names = triggers(definition);
    let _ = writeln!(out, "  ● {}", if names.is_empty() { "start".to_owned() } else { names.join(" · ") });
    for spec in &plan.steps {
        let _ = writeln!(out, "  │");
        let mut lines = vec![spec.key.clone(), summary(spec)];
        if let Some(condition) = &spec.condition {
            lines.push(format!("if {condition}"));
        }
        if let Some(by) = undo(spec) {
            lines.push(format!("↩ {by}"));
        }
        let lines: Vec<_> = lines.iter().map(|line| clipped(line)).collect();
        let width = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        let (left, right) =
            if matches!(spec.work, Work::Approval(_) | Work::Wait { .. }) { ("╭", "╮") } else { ("┌", "┐") };
        let (low, lower) = if left == "╭" { ("╰", "╯") } else { ("└", "┘") };
        let _ = writeln!(out, "{left}─┴{}{right}", "─".repeat(width));
        for line in &lines {
            let _ = writeln!(out, "│ {line}{} │", " ".repeat(width - line.chars().count()));
        }
        let _ = writeln!(out, "{low}─┬{}{lower}", "─".repeat(width));
    }
    let _ = writeln!(out, "  │");
    let _ = writeln!(out, "  ◉ done");
    out
}

fn clipped(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().count() <= WIDTH_MAX {
        return text;
    }
    text.chars().take(WIDTH_MAX - 1).chain(['…']).collect()
}
