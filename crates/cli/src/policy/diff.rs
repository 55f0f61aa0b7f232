//! `interlock policy diff`.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use interlock_core::text::visible::visible;
use interlock_policy::{Comparison, Difference, PolicyDecision, PolicyInput, compare, read_inputs};
use serde::Serialize;

use super::{bundle, text};
use crate::output::Printer;
use crate::output::exit::{Exit, ExitError};

#[derive(Debug, Args)]
pub struct DiffPolicyArgs {
    /// The bundle that is in use: a folder, or `default` for the shipped policy.
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// The bundle that would take its place.
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    /// Input documents or stored decisions, one JSON document in each line; `-` for stdin.
    #[arg(long, value_name = "FILE")]
    inputs: PathBuf,
}

#[derive(Serialize)]
struct ChangedDecision<'a> {
    /// The line of the inputs, counted from one.
    input: usize,
    step: &'a str,
    from: &'static str,
    to: &'static str,
    rules: Vec<&'a str>,
}

impl<'a> ChangedDecision<'a> {
    fn of(difference: &'a Difference, inputs: &'a [PolicyInput]) -> Self {
        let reasons = difference.after.iter().flat_map(|decision: &PolicyDecision| &decision.reasons);
        Self {
            input: difference.index + 1,
            step: &inputs[difference.index].step.key,
            from: difference.from().as_str(),
            to: difference.to().as_str(),
            rules: reasons.map(|reason| reason.rule.as_str()).collect(),
        }
    }
}

pub fn run(printer: Printer, args: DiffPolicyArgs) -> anyhow::Result<()> {
    let (before, after) = (bundle(Some(&args.before))?, bundle(Some(&args.after))?);
    let inputs = read_inputs(&text(&args.inputs)?).map_err(|error| {
        let what = format!("{}: {error}", args.inputs.display());
        ExitError::saying(Exit::Unsuccessful, what)
    })?;
    let comparison = compare(&before, &after, &inputs);
    let all: Vec<ChangedDecision<'_>> = comparison.differences().map(|one| ChangedDecision::of(one, &inputs)).collect();
    printer.show(&all, |_| words(&comparison, &all))?;
    if comparison.is_empty() { Ok(()) } else { Err(ExitError::silently(Exit::Unsuccessful)) }
}

fn words(comparison: &Comparison, all: &[ChangedDecision<'_>]) -> String {
    let mut words = String::new();
    for changed in all {
        let ChangedDecision { input, step, from, to, rules } = changed;
        let line = format!("input {input} (step {step}): {from} -> {to} ({})", rules.join(", "));
        let _ = writeln!(words, "{}", visible(&line));
    }
    let Comparison { inputs, newly_allowed, newly_gated, newly_denied, newly_undecided, otherwise } = comparison;
    let _ = writeln!(
        words,
        "{inputs} inputs: {} newly allowed, {} newly gated, {} newly denied, {} no longer decided, {} for other reasons",
        newly_allowed.len(),
        newly_gated.len(),
        newly_denied.len(),
        newly_undecided.len(),
        otherwise.len(),
    );
    words
}
