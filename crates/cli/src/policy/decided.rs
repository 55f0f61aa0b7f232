//! `interlock policy explain | replay`: what was decided, and what other rules would have.

use std::fmt::Write;

use clap::Args;
use interlock_core::ids::RunId;
use interlock_core::text::visible::visible;
use interlock_policy::{PolicyDecision, explain as in_words};
use interlock_protocol::policy::{DecisionList, DecisionView, PolicyReplay, ReplayPolicy, StandingReplay, path};
use interlock_protocol::runs::{StepList, path as runs};

use super::force::version;
use crate::client::{Client, fill};
use crate::output::exit::{Exit, ExitError};
use crate::output::{Printer, span};
use crate::run::find;

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The run: its id or the end of it, its subject, or `latest`.
    run: String,
    /// The step; all of them where omitted.
    step: Option<String>,
}

#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The version to hold against what was decided, or `default` for the policy that comes with the server; the one in force where
    /// omitted.
    #[arg(value_name = "VERSION", value_parser = version)]
    number: Option<u32>,
    /// How far back.
    #[arg(long, default_value_t = 7)]
    days: u32,
}

pub async fn explain(client: &Client, printer: Printer, args: ExplainArgs) -> anyhow::Result<()> {
    let run = find::run(client, &args.run).await?;
    let mut list: DecisionList = client.get(fill(path::DECISIONS, &[("run", &run)])).send().await?;
    if let Some(step) = &args.step {
        list.decisions.retain(|decision| decision.step == *step);
        if list.decisions.is_empty() {
            check_step(client, run, step).await?;
        }
    }
    if list.decisions.is_empty() {
        let what = "nothing was decided there for this run alone: either nothing has begun yet, or the policy allows it in \
                    every run of the workflow's version (`interlock policy eval` says why)";
        return Err(ExitError::saying(Exit::NotFound, what));
    }
    printer.show(&list, |_| list.decisions.iter().map(page).collect())
}

/// Refuses the name of a step that the run does not have.
async fn check_step(client: &Client, run: RunId, step: &str) -> anyhow::Result<()> {
    let found: StepList = client.get(fill(runs::STEPS, &[("run", &run)])).send().await?;
    let keys: Vec<&str> = found.steps.iter().map(|one| one.key.as_str()).collect();
    if keys.contains(&step) {
        return Ok(());
    }
    let (step, keys) = (visible(step), keys.join(", "));
    Err(ExitError::saying(Exit::NotFound, format!("the run has no step `{step}`; there are {}", visible(&keys))))
}

/// What rules that are tried beside those in force would have said, where that is something else.
fn beside(decision: &DecisionView) -> Option<String> {
    let shadow = decision.shadow.as_ref()?.to_value().ok()?;
    let bundle = shadow["bundle"].as_str().unwrap_or_default();
    let answer: Option<PolicyDecision> = serde_json::from_value(shadow["answer"].clone()).ok();
    let verdict = answer.as_ref().map_or("undecided", |answer| answer.verdict.as_str());
    if verdict == decision.verdict {
        return None;
    }
    let reasons: Vec<String> = answer.iter().flat_map(|answer| &answer.reasons).map(ToString::to_string).collect();
    let why = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join("; ")) };
    Some(format!("the rules that are tried beside them, {bundle}, would say: {verdict}{why}"))
}

fn page(decision: &DecisionView) -> String {
    let DecisionView { step, operation, at, bundle, .. } = decision;
    let mut text = format!("{} ({}), {}\n", visible(step), visible(operation), span::instant(*at));
    let answer: Option<PolicyDecision> = decision.answer.as_ref().and_then(|answer| answer.decode().ok());
    match answer {
        Some(answer) => {
            for line in in_words(&Ok(answer)).lines() {
                let _ = writeln!(text, "  {}", visible(line));
            }
        }
        None => {
            let _ = writeln!(text, "  {}: nothing was performed; `interlock run why` says why", decision.verdict);
        }
    }
    let _ = writeln!(text, "  by the rules {}", bundle.0);
    if let Some(beside) = beside(decision) {
        let _ = writeln!(text, "  {}", visible(&beside));
    }
    text
}

pub async fn replay(client: &Client, printer: Printer, args: ReplayArgs) -> anyhow::Result<()> {
    let body = ReplayPolicy { version: args.number, days: args.days };
    let found: PolicyReplay = client.post(path::REPLAY, &body).send().await?;
    printer.show(&found, |_| {
        let mut text = format!("{} decisions, {} the same\n", found.decisions, found.same);
        for (what, count) in [
            ("newly allowed", found.newly_allowed),
            ("newly asked about", found.newly_gated),
            ("newly denied", found.newly_denied),
            ("newly undecided", found.newly_undecided),
            ("for other reasons or on other terms", found.otherwise),
            ("cannot be held against it: their input was not kept whole, or is of another release", found.unreadable),
        ] {
            if count > 0 {
                let _ = writeln!(text, "  {count} {what}");
            }
        }
        for one in &found.differences {
            let reasons = one.reasons.join("; ");
            let (operation, reasons) = (visible(&one.operation), visible(&reasons));
            let _ = writeln!(text, "{}  {operation}: {} → {}  {reasons}", one.run_id, one.before, one.after);
        }
        if found.more {
            text += "there are more decisions than one replay looks at; name fewer days\n";
        }
        text += &standing(&found.standing);
        text
    })
}

/// What it would say to steps that are allowed in every run, of which no decision is kept.
fn standing(found: &StandingReplay) -> String {
    if found.steps == 0 {
        return String::new();
    }
    let steps = span::counted(found.steps as u64, "step", "steps");
    let mut text = format!("{steps} of workflows, allowed in every run so far, {} the same\n", found.same);
    for (what, count) in [
        ("allowed or not by what the run is", found.may_change),
        ("newly asked about", found.newly_gated),
        ("newly denied", found.newly_denied),
        ("newly undecided", found.newly_undecided),
    ] {
        if count > 0 {
            let _ = writeln!(text, "  {count} {what}");
        }
    }
    for one in &found.differences {
        let (step, reasons) = (format!("{} v{}, step {}", one.workflow, one.version, one.step), one.reasons.join("; "));
        let _ = writeln!(text, "{}: allow → {}  {}", visible(&step), one.after, visible(&reasons));
    }
    if found.more {
        text += "some workflows were not looked at: there are too many, or they cannot be read\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn decided(shadow: &Value) -> DecisionView {
        let (id, hash) = (format!("dec_{}", "1".repeat(32)), "a".repeat(64));
        let view = json!({
            "decision": id, "at": 0, "position": 0, "step": "a", "iteration": 0, "attempt": 0, "operation": "t",
            "verdict": "allow", "tier": "low", "action": hash, "bundle": hash, "evaluator": "e", "input": {},
            "answer": said("allow"), "shadow": shadow,
        });
        serde_json::from_str(&view.to_string()).unwrap()
    }

    fn said(verdict: &str) -> Value {
        let reasons = json!([{ "rule": "by_name", "text": "it is called so" }]);
        json!({ "verdict": verdict, "tier": "low", "reasons": reasons, "obligations": null })
    }

    #[test]
    fn what_tried_rules_would_have_said_is_told_where_it_is_something_else() {
        let told = |answer: Value| page(&decided(&json!({ "bundle": "b", "answer": answer })));
        let denied = "the rules that are tried beside them, b, would say: deny (by_name: it is called so)";
        assert!(told(said("deny")).contains(denied), "{}", told(said("deny")));
        assert!(told(Value::Null).contains("would say: undecided"));
        assert!(!told(said("allow")).contains("beside"), "they agree");
        assert!(!page(&decided(&Value::Null)).contains("beside"), "no rules are tried");
    }
}
