//! The operator's directives: cancel, pause, resume, retry, skip, reassign, restart, rollback.

use clap::Args;
use interlock_core::ids::RunId;
use interlock_core::run::undoing::{LeftStep, RollbackPreview, UndoRuling};
use interlock_core::state::RunState;
use interlock_core::text::visible::visible;
use interlock_protocol::runs::{
    Because, Cancel, Nothing, Restart, Retry, RollBackRun, RunView, Standing, Started, StepRef, path,
};
use serde::{Deserialize, Serialize};

use super::list::state_words;
use super::start::json;
use super::wait::{self, WaitArgs};
use super::{RunArg, find, show};
use crate::client::{Client, fill};
use crate::output::Printer;
use crate::output::confirm::confirm;
use crate::output::paint::{Paint, run_tone};

/// Why it is done, and that it shall really be done.
#[derive(Debug, Args)]
pub struct ReasonArgs {
    #[command(flatten)]
    run: RunArg,
    /// Why; it stands in the run's history.
    #[arg(long)]
    reason: String,
    /// Do not ask.
    #[arg(long, short = 'y')]
    yes: bool,
    #[command(flatten)]
    wait: WaitArgs,
}

#[derive(Debug, Args)]
pub struct CancelArgs {
    #[command(flatten)]
    because: ReasonArgs,
    /// Undo what has been done first.
    #[arg(long)]
    rollback: bool,
}

#[derive(Debug, Args)]
pub struct RollbackArgs {
    #[command(flatten)]
    run: RunArg,
    /// Why; it stands in the run's history.
    #[arg(long, required_unless_present = "preview")]
    reason: Option<String>,
    /// Do not ask.
    #[arg(long, short = 'y')]
    yes: bool,
    /// Only say what would be undone, in which order and by what, and what would be left as it is.
    #[arg(long)]
    preview: bool,
    #[command(flatten)]
    wait: WaitArgs,
    /// The step to go back to: it is undone, and all that came after it. Everything by default.
    #[arg(long, value_name = "STEP")]
    step: Option<String>,
}

#[derive(Debug, Args)]
pub struct PlainArgs {
    #[command(flatten)]
    run: RunArg,
    #[command(flatten)]
    wait: WaitArgs,
}

#[derive(Debug, Args)]
pub struct RetryArgs {
    #[command(flatten)]
    run: RunArg,
    /// Another input for the step: JSON, `@FILE`, or `-` for stdin. Only for a run that has not ended.
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    #[command(flatten)]
    wait: WaitArgs,
}

#[derive(Debug, Args)]
pub struct RestartArgs {
    #[command(flatten)]
    run: RunArg,
    /// The step to go back to; the first one by default.
    #[arg(long, value_name = "STEP")]
    from: Option<String>,
    /// Do not ask.
    #[arg(long, short = 'y')]
    yes: bool,
    #[command(flatten)]
    wait: WaitArgs,
}

/// A directive either moves the run itself, or makes a new one from it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum DirectiveAnswer {
    Stands(Standing),
    Succeeded(Started),
}

pub async fn cancel(client: &Client, printer: Printer, args: CancelArgs) -> anyhow::Result<()> {
    let CancelArgs { because, rollback } = args;
    let run = find::run(client, &because.run.run).await?;
    let what = if rollback { "Cancel and undo" } else { "Cancel" };
    sure(client, because.yes, run, |run| format!("{what} {run}?")).await?;
    let body = Cancel { reason: because.reason, rollback };
    let directed = client.post(fill(path::CANCEL, &[("run", &run)]), &body).send().await?;
    finish(client, printer, &directed, because.wait, RunState::Canceled).await
}

pub async fn pause(client: &Client, printer: Printer, args: ReasonArgs) -> anyhow::Result<()> {
    with_reason(client, printer, args, path::PAUSE, None).await
}

pub async fn skip(client: &Client, printer: Printer, args: ReasonArgs) -> anyhow::Result<()> {
    with_reason(client, printer, args, path::SKIP, Some("Skip the step that stopped")).await
}

pub async fn reassign(client: &Client, printer: Printer, args: ReasonArgs) -> anyhow::Result<()> {
    with_reason(client, printer, args, path::REASSIGN, Some("Have another worker take, with an empty directory,")).await
}

pub async fn roll_back(client: &Client, printer: Printer, args: RollbackArgs) -> anyhow::Result<()> {
    let RollbackArgs { run, reason, yes, preview, wait, step } = args;
    let run = find::run(client, &run.run).await?;
    if preview {
        let call = client.get(fill(path::ROLLBACK, &[("run", &run)])).query("step", step);
        let found: RollbackPreview = call.send().await?;
        return printer.show(&found, |_| previewed(&found));
    }
    let what =
        step.as_ref().map_or_else(|| "everything".to_owned(), |step| format!("step `{step}` and what came after"));
    sure(client, yes, run, |run| format!("Undo {what} in {run}?")).await?;
    let body = RollBackRun { step: step.map(StepRef::Key), reason: reason.unwrap_or_default() };
    let directed: DirectiveAnswer = client.post(fill(path::ROLLBACK, &[("run", &run)]), &body).send().await?;
    // A run that is undone ends as failed; one that was made to undo another has done its work.
    let wanted = match directed {
        DirectiveAnswer::Stands(_) => RunState::Failed,
        DirectiveAnswer::Succeeded(_) => RunState::Succeeded,
    };
    finish(client, printer, &directed, wait, wanted).await
}

fn previewed(found: &RollbackPreview) -> String {
    let mut lines = Vec::new();
    for (index, undone) in found.undone.iter().enumerate() {
        let with = undone.with.as_ref().map_or_else(String::new, |with| format!(" {}", visible(with.as_str())));
        let (step, by) = (visible(&undone.step), visible(&undone.by));
        lines.push(format!("{}. {step} ({}) is undone by {by}{with}", index + 1, undone.state));
        lines.extend(undone.verified_by.as_ref().map(|by| format!("   verified by {}", visible(by))));
        lines.extend(undone.policy.as_ref().filter(|policy| policy.verdict != "allow").map(ruled));
    }
    if found.undone.is_empty() {
        let why = if found.left.is_empty() { ": no step has changed anything" } else { "" };
        lines.push(format!("Nothing would be undone{why}."));
    }
    let left = |left: &LeftStep| format!("{} ({}) stays as it is: {}", visible(&left.step), left.state, left.why);
    lines.extend(found.left.iter().map(left));
    if !found.undone.is_empty() {
        lines.push(format!("Asked first: {}", found.asks));
    }
    lines.join("\n") + "\n"
}

/// What the policy says to a step that it does not simply let be undone.
fn ruled(policy: &UndoRuling) -> String {
    let says = match policy.verdict.as_str() {
        "needs_approval" => "asks people first",
        "deny" => "forbids it",
        _ => "cannot decide, so it would not happen",
    };
    format!("   the policy {says}: {}", visible(&policy.reasons.join("; ")))
}

pub async fn resume(client: &Client, printer: Printer, args: PlainArgs) -> anyhow::Result<()> {
    let run = find::run(client, &args.run.run).await?;
    let directed = client.post(fill(path::RESUME, &[("run", &run)]), &Nothing {}).send().await?;
    finish(client, printer, &directed, args.wait, RunState::Succeeded).await
}

pub async fn retry(client: &Client, printer: Printer, args: RetryArgs) -> anyhow::Result<()> {
    let run = find::run(client, &args.run.run).await?;
    let body = Retry { input: args.input.as_deref().map(json).transpose()? };
    let directed = client.post(fill(path::RETRY, &[("run", &run)]), &body).send().await?;
    finish(client, printer, &directed, args.wait, RunState::Succeeded).await
}

pub async fn restart(client: &Client, printer: Printer, args: RestartArgs) -> anyhow::Result<()> {
    let run = find::run(client, &args.run.run).await?;
    let from = args.from.as_deref().unwrap_or("its first step");
    sure(client, args.yes, run, |run| format!("Restart {run} from {from}?")).await?;
    let body = Restart { from: args.from };
    let directed = client.post(fill(path::RESTART, &[("run", &run)]), &body).send().await?;
    finish(client, printer, &directed, args.wait, RunState::Succeeded).await
}

/// Asks before something is done to a run, which the question names by more than its id.
async fn sure(client: &Client, yes: bool, run: RunId, question: impl FnOnce(&str) -> String) -> anyhow::Result<()> {
    if yes {
        return Ok(());
    }
    let view = show::view(client, run).await?;
    confirm(yes, &question(&described(&view)))
}

/// `run_… (deploy for INC-1, paused (in doubt))`.
fn described(run: &RunView) -> String {
    let about = run.subject.as_deref().map_or_else(String::new, |subject| format!(" for {}", visible(subject)));
    let state = state_words(run.state, run.detail, run.reason);
    format!("{} ({}{about}, {state})", run.run_id, visible(&run.workflow))
}

async fn with_reason(
    client: &Client,
    printer: Printer,
    args: ReasonArgs,
    path: &str,
    question: Option<&str>,
) -> anyhow::Result<()> {
    let run = find::run(client, &args.run.run).await?;
    if let Some(question) = question {
        sure(client, args.yes, run, |run| format!("{question} {run}?")).await?;
    }
    let directed = client.post(fill(path, &[("run", &run)]), &Because { reason: args.reason }).send().await?;
    finish(client, printer, &directed, args.wait, RunState::Succeeded).await
}

async fn finish(
    client: &Client,
    printer: Printer,
    directed: &DirectiveAnswer,
    args: WaitArgs,
    wanted: RunState,
) -> anyhow::Result<()> {
    let run: RunId = match directed {
        DirectiveAnswer::Stands(standing) => standing.run_id,
        DirectiveAnswer::Succeeded(started) => started.run_id,
    };
    if args.wait {
        return wait::until(client, printer, run, args, wanted).await;
    }
    printer.show(directed, |paint| match directed {
        DirectiveAnswer::Stands(Standing { needs: Some(needs), .. }) => {
            let (missing, approval) = (needs.needed.saturating_sub(needs.approved), needs.approval);
            let people = if missing == 1 { "person has" } else { "people have" };
            format!(
                "Your vote is recorded. {missing} more {people} to agree: with the same command, or with \
                 `interlock approval approve {approval}`\n"
            )
        }
        DirectiveAnswer::Stands(standing) => stands(standing, wanted, paint),
        DirectiveAnswer::Succeeded(_) => format!("{run} continues it as a new run\n"),
    })
}

/// Where the run stands after a directive. A cancel may have to wait for the running attempt.
fn stands(standing: &Standing, wanted: RunState, paint: Paint) -> String {
    let Standing { run_id, state, .. } = standing;
    let is_canceling = wanted == RunState::Canceled && !state.is_terminal() && *state != RunState::RollingBack;
    if is_canceling {
        let words = paint.tone(run_tone(RunState::Canceled), "being canceled");
        return format!("{run_id} is {words}; the running attempt has not acknowledged yet\n");
    }
    format!("{run_id} is {}\n", paint.tone(run_tone(*state), state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_names_workflow_subject_and_state() {
        let run_id = RunId::from_bytes([1; 16]);
        let mut view = serde_json::json!({
            "run_id": run_id, "tenant": interlock_core::ids::TenantId::from_bytes([1; 16]), "workspace": "default",
            "workflow": "deploy", "workflow_version": 1, "state": "paused", "reason": "in_doubt", "position": 0,
            "version": 1, "trigger": { "type": "api" }, "priority": 0, "resume_count": 0, "created_at": 1_000, "inputs": {},
        });
        let told = |view: &serde_json::Value| described(&serde_json::from_value(view.clone()).unwrap());
        assert_eq!(told(&view), format!("{run_id} (deploy, paused (in doubt))"));
        view["subject"] = "INC-1".into();
        assert_eq!(told(&view), format!("{run_id} (deploy for INC-1, paused (in doubt))"));
    }

    #[test]
    fn a_preview_of_nothing_says_why_and_asks_nobody() {
        let told = |left: serde_json::Value| {
            let found = serde_json::json!({ "undone": [], "left": left, "asks": "nobody" });
            previewed(&serde_json::from_value(found).unwrap())
        };
        assert_eq!(told(serde_json::json!([])), "Nothing would be undone: no step has changed anything.\n");
        let left =
            serde_json::json!([{ "step": "a", "position": 0, "state": "rolled_back", "why": "it is undone already" }]);
        assert_eq!(told(left), "Nothing would be undone.\na (rolled_back) stays as it is: it is undone already\n");
    }

    #[test]
    fn a_cancel_that_waits_for_an_attempt_says_so() {
        let run_id = RunId::from_bytes([1; 16]);
        let told = |state, wanted| stands(&Standing { run_id, state, version: 7, needs: None }, wanted, Paint::OFF);
        let canceling = told(RunState::Running, RunState::Canceled);
        assert!(canceling.starts_with(&format!("{run_id} is being canceled")), "{canceling}");
        assert_eq!(told(RunState::Canceled, RunState::Canceled), format!("{run_id} is canceled\n"));
        assert_eq!(told(RunState::Running, RunState::Succeeded), format!("{run_id} is running\n"));
        assert_eq!(told(RunState::RollingBack, RunState::Canceled), format!("{run_id} is rolling_back\n"));
    }
}
