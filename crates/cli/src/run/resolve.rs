//! `interlock run resolve`: a person says what became of an effect in doubt.

use clap::{Args, ValueEnum};
use interlock_core::ids::RunId;
use interlock_core::machine::step::Resolution;
use interlock_core::run::receipt::Receipt;
use interlock_core::state::StepState;
use interlock_protocol::runs::{ReceiptList, Resolve, Standing, path};

use super::start::json;
use super::{RunArg, find, show};
use crate::client::{Client, fill};
use crate::output::Printer;
use crate::output::exit::{Exit, ExitError};
use crate::output::paint::run_tone;

#[derive(Debug, Args)]
pub struct ResolveArgs {
    #[command(flatten)]
    run: RunArg,
    /// The step in doubt; the one that is, by default.
    #[arg(long)]
    step: Option<String>,
    /// What became of its effect.
    #[arg(long, value_enum)]
    outcome: Outcome,
    /// The step's output, if it happened: JSON, `@FILE`, or `-` for stdin.
    #[arg(long, value_name = "JSON")]
    output_value: Option<String>,
    /// How you know; it stands in the run's history.
    #[arg(long)]
    reason: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Outcome {
    /// It took place: the step succeeded.
    Happened,
    /// It did not take place: the step is tried again.
    DidNotHappen,
    /// It went wrong: the step failed.
    Failed,
}

pub async fn run(client: &Client, printer: Printer, args: ResolveArgs) -> anyhow::Result<()> {
    let run = find::run(client, &args.run.run).await?;
    let step = match args.step {
        Some(step) => step,
        None => in_doubt(client, run).await?,
    };
    let outcome = match args.outcome {
        Outcome::Happened => Resolution::Happened,
        Outcome::DidNotHappen => Resolution::DidNotHappen,
        Outcome::Failed => Resolution::Failed,
    };
    let output = args.output_value.as_deref().map(json).transpose()?;
    let body = Resolve { outcome, output, reason: args.reason };
    let path = fill(path::RESOLVE, &[("run", &run), ("step", &step)]);
    let standing: Standing = client.post(path, &body).send().await?;
    printer.show(&standing, |paint| format!("{run} is {}\n", paint.tone(run_tone(standing.state), standing.state)))
}

/// The key of the step that is in doubt.
async fn in_doubt(client: &Client, run: RunId) -> anyhow::Result<String> {
    let steps = show::steps(client, run).await?;
    if let Some(step) = steps.iter().find(|step| step.state == StepState::InDoubt) {
        return Ok(step.key.clone());
    }
    // A run that was canceled meanwhile: its step has ended, and its effect is as unknown as before.
    let list: ReceiptList = client.get(fill(path::RECEIPTS, &[("run", &run)])).send().await?;
    let receipt = list.receipts.into_iter().find(Receipt::is_doubtful);
    let doubtful = receipt.and_then(|receipt| steps.into_iter().find(|step| step.position == receipt.position));
    let nothing =
        || ExitError::saying(Exit::Refused, format!("no step of {run} is in doubt; there is nothing to resolve"));
    doubtful.map(|step| step.key).ok_or_else(nothing)
}
