//! `interlock policy explain | replay`: what was decided, and what other rules would have.

use std::fmt::Write;

use clap::Args;
use interlock_core::text::visible::visible;
use interlock_policy::{PolicyDecision, explain as in_words};
use interlock_protocol::policy::{DecisionList, DecisionView, PolicyReplay, ReplayPolicy, path};

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
    /// The version to hold against what was decided; the one in force where omitted.
    #[arg(value_name = "VERSION")]
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
    }
    if list.decisions.is_empty() {
        let what = "nothing was decided there for this run alone: either nothing has begun yet, or the policy allows it in \
                    every run of the workflow's version (`interlock policy eval` says why)";
        return Err(ExitError::saying(Exit::NotFound, what));
    }
    printer.show(&list, |_| list.decisions.iter().map(page).collect())
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
            let _ = writeln!(text, "  {}: nothing was performed", decision.verdict);
        }
    }
    let _ = writeln!(text, "  by the rules {}", bundle.0);
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
            ("not readable by this release", found.unreadable),
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
        text
    })
}
