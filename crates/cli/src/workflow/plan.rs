//! `interlock workflow plan`: what would be done, without doing it.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use interlock_core::json::Json;
use interlock_core::text::visible::visible;
use interlock_engine::policy::predict;
use interlock_protocol::workflows::{PlanRequest, path};
use interlock_workflow::expression::budget::Budget;
use interlock_workflow::walk::{Predicted, Walk, Walked, Would, walk};

use super::{files, show};
use crate::client::ClientArgs;
use crate::output::Printer;
use crate::output::exit::{Exit, ExitError};
use crate::output::paint::{Paint, Tone};
use crate::policy;
use crate::run::start::{InputArgs, inputs_for, inputs_of};

#[derive(Debug, Args)]
pub struct PlanArgs {
    /// A workflow file (`-` for stdin), or the name of a workflow on the server.
    #[arg(value_name = "WORKFLOW")]
    which: String,
    /// The name of a workflow on the server is meant, even if there is a file of that name.
    #[arg(long)]
    stored: bool,
    /// The version of a workflow on the server; the newest one where omitted.
    #[arg(long, visible_alias = "version", value_name = "NUMBER")]
    workflow_version: Option<u32>,
    /// Hold a workflow file against the policy in this folder instead of the shipped one.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["stored", "workflow_version"])]
    policy: Option<PathBuf>,
    #[command(flatten)]
    inputs: InputArgs,
}

/// A file is held against rules that may not be those of a server.
const OTHER_RULES: &str = "This is what the default policy says. A server may have another one in force: ask it about the \
                           workflow that it has, with `interlock workflow plan NAME --stored`.";

pub async fn run(client: &ClientArgs, printer: Printer, args: PlanArgs) -> anyhow::Result<()> {
    let is_of_file = !args.stored && args.workflow_version.is_none() && files::is_file(&args.which);
    let walked = if is_of_file {
        let checked = files::checked(&args.which, printer)?;
        let rules = policy::bundle(args.policy.as_ref())?;
        let unfit = |error: String| ExitError::saying(Exit::Unsuccessful, format!("the inputs do not fit: {error}"));
        let given = inputs_for(&Json::trusted(checked.to_json().to_string()), &args.inputs)?;
        let given = given.to_exact_value().map_err(unfit)?;
        let walked = walk(&checked.definition, &given, &Budget::default());
        let mut walked = walked.map_err(|error| unfit(error.to_string()))?;
        let plan = Arc::new(checked.definition.plan(1));
        predict(&rules, plan, &mut walked, None).map_err(|error| unfit(error.to_string()))?;
        walked
    } else {
        let client = client.open()?.0;
        let given = inputs_of(&client, &args.which, args.workflow_version, &args.inputs).await?;
        let (source, file, workflow) = (None, None, Some(args.which.clone()));
        let request = PlanRequest { source, file, workflow, version: args.workflow_version, inputs: given };
        let walked = client.post(path::PLAN, &request).send().await?;
        let stored = show::stored(&client, &args.which, args.workflow_version).await?;
        files::warn(&args.which, &stored.source, printer);
        walked
    };
    printer.show(&walked, |paint| page(&walked, paint))?;
    if is_of_file && args.policy.is_none() && walked.steps.iter().any(|step| step.policy.is_some()) {
        printer.note(OTHER_RULES);
    }
    let fails = walked.steps.iter().any(|step| step.would == Would::Fail);
    if fails { Err(ExitError::silently(Exit::Unsuccessful)) } else { Ok(()) }
}

/// A decision in a few words.
fn decided(policy: &Predicted) -> String {
    let tier = policy.tier.as_ref().map_or_else(String::new, |tier| format!(", tier {tier}"));
    let said = match (policy.verdict.as_str(), policy.quorum) {
        ("allow", _) => "allowed".to_owned(),
        ("needs_approval", Some(1)) => "one person must approve".to_owned(),
        ("needs_approval", Some(quorum)) => format!("{quorum} people must approve"),
        ("deny", _) => "denied".to_owned(),
        (verdict, _) => verdict.to_owned(),
    };
    let may_change = if policy.may_change { "; what the run is may change it" } else { "" };
    format!("{said}{tier}{may_change}")
}

/// Who could approve it.
fn who_may(policy: &Predicted) -> String {
    let of = match policy.approvers.as_slice() {
        [] => "anybody who may approve".to_owned(),
        groups => format!("people of {}", groups.join(", ")),
    };
    let named = |excluded: &String| match excluded.as_str() {
        "starter" if policy.self_approval => "who starts the run (unless the tenant allows self-approval)",
        "starter" => "who starts the run",
        _ => "who wrote the workflow",
    };
    let excluded: Vec<&str> = policy.excluded.iter().map(named).collect();
    let but = if excluded.is_empty() { String::new() } else { format!(", except {}", excluded.join(" and ")) };
    format!("{of}{but}")
}

fn page(walk: &Walk, paint: Paint) -> String {
    let mut text = format!("{}  inputs {}\n", paint.bold(&walk.workflow), visible(&walk.inputs.to_string()));
    if let Some(subject) = &walk.subject {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "subject {}", visible(subject));
    }
    let profile = walk.profile.as_deref().unwrap_or("none");
    let _ = writeln!(text, "profile {}, blast radius {}\n", visible(profile), walk.blast_radius);
    for (index, step) in walk.steps.iter().enumerate() {
        told(&mut text, index + 1, step, paint);
    }
    text
}

fn told(text: &mut String, number: usize, step: &Walked, paint: Paint) {
    let (word, tone) = match step.would {
        Would::Run => ("runs", Tone::Good),
        Would::Skip => ("is skipped", Tone::Dim),
        Would::Depends => ("may run", Tone::Careful),
        Would::Fail => ("would fail", Tone::Bad),
    };
    let _ =
        writeln!(text, "{number:>3}. {}  {}  {}", paint.bold(&step.step), paint.tone(tone, word), visible(&step.does));
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "     {} {}", paint.dim(format!("{name:<9}")), visible(&value));
    };
    if let Some(condition) = &step.condition {
        line("if", condition.clone());
    }
    if let Some(input) = &step.input {
        line("input", input.to_string());
    }
    if let Some(output) = &step.output {
        line("output", output.to_string());
    }
    if let Some(approval) = &step.approval {
        line("approval", approval.to_string());
    }
    if let Some(wait) = &step.waits_for {
        line("waits for", wait.to_string());
    }
    if let (Some(effect), Some(radius)) = (step.effect, step.blast_radius) {
        line("effect", format!("{effect}, blast radius {radius}"));
    }
    match &step.undone_by {
        Some(Some(by)) => line("undone by", by.clone()),
        Some(None) => line("undone by", "nothing: it cannot be rolled back".to_owned()),
        None => {}
    }
    if let Some(policy) = &step.policy {
        line("policy", decided(policy));
        if policy.verdict == "needs_approval" {
            line("by", who_may(policy));
        }
        for reason in &policy.reasons {
            line("", reason.clone());
        }
    }
    for note in &step.notes {
        line("note", note.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_says_who_could_approve() {
        let mut policy = Predicted {
            verdict: "needs_approval".into(),
            tier: Some("high".into()),
            reasons: vec!["two_keys: it is destructive".into()],
            quorum: Some(2),
            approvers: Vec::new(),
            excluded: vec!["starter".into(), "author".into()],
            self_approval: false,
            may_change: false,
        };
        assert_eq!(decided(&policy), "2 people must approve, tier high");
        assert_eq!(who_may(&policy), "anybody who may approve, except who starts the run and who wrote the workflow");
        (policy.quorum, policy.self_approval) = (Some(1), true);
        (policy.approvers, policy.excluded) = (vec!["sre".into(), "dba".into()], vec!["starter".into()]);
        assert_eq!(decided(&policy), "one person must approve, tier high");
        let who = "people of sre, dba, except who starts the run (unless the tenant allows self-approval)";
        assert_eq!(who_may(&policy), who);
    }
}
