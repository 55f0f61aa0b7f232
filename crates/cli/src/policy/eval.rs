//! `interlock policy eval`.

use std::path::PathBuf;

use clap::Args;
use interlock_core::text::json_words::json_error;
use interlock_core::text::visible::visible;
use interlock_policy::{PolicyDecision, PolicyInput, explain};
use serde::Serialize;

use super::{bundle, text};
use crate::output::Printer;
use crate::output::exit::{Exit, ExitError};

#[derive(Debug, Args)]
pub struct EvalArgs {
    /// The input document as JSON (docs/reference/policy.md); `-` for stdin.
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// The folder with the bundle; without it, the shipped policy is asked.
    #[arg(long, value_name = "DIR")]
    bundle: Option<PathBuf>,
}

#[derive(Serialize)]
struct EvalReport<'a> {
    bundle: String,
    /// The same for every run of the workflow version.
    depends_on_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'a PolicyDecision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    undecided: Option<String>,
}

pub fn run(printer: Printer, args: EvalArgs) -> anyhow::Result<()> {
    let bundle = bundle(args.bundle.as_ref())?;
    let input: PolicyInput = serde_json::from_str(&text(&args.input)?).map_err(|error| {
        let what = format!("{}: not an input document: {}", args.input.display(), json_error(&error));
        ExitError::saying(Exit::Unsuccessful, what)
    })?;
    let input = input.with_command();
    let decided = bundle.decide(&input);
    let depends_on_run = bundle.depends_on_bound(&input);
    let evaluated = EvalReport {
        bundle: bundle.hash().to_string(),
        depends_on_run,
        decision: decided.as_ref().ok(),
        undecided: decided.as_ref().err().map(ToString::to_string),
    };
    printer.show(&evaluated, |_| {
        let again = if depends_on_run { "can be another one for another run" } else { "is the same for every run" };
        let lines: Vec<String> = explain(&decided).lines().map(|line| visible(line).into_owned()).collect();
        format!("{}\n  the answer {again} of this workflow version\n", lines.join("\n"))
    })?;
    if decided.is_err() { Err(ExitError::silently(Exit::Unsuccessful)) } else { Ok(()) }
}
