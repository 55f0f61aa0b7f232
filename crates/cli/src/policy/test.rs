//! `interlock policy test`.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use interlock_core::text::visible::visible;
use interlock_policy::{Bundle, RuleTest, TestOutcome, run_tests};
use serde::Serialize;

use super::{refused, sources};
use crate::output::Printer;
use crate::output::exit::{Exit, ExitError};

#[derive(Debug, Args)]
pub struct TestPolicyArgs {
    /// The folder with the bundle; without it, the shipped policy is tested.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Only tests whose name holds this text.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Name the tests that passed, too.
    #[arg(long, short)]
    verbose: bool,
}

#[derive(Serialize)]
struct TestedRule<'a> {
    name: &'a str,
    file: &'a str,
    line: u32,
    passed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

impl<'a> TestedRule<'a> {
    fn of(test: &'a RuleTest) -> Self {
        let error = match &test.outcome {
            TestOutcome::Broken(what) => Some(what.as_str()),
            TestOutcome::Passed | TestOutcome::Failed => None,
        };
        Self { name: &test.name, file: &test.file, line: test.line, passed: test.has_passed(), error }
    }
}

pub fn run(printer: Printer, args: TestPolicyArgs) -> anyhow::Result<()> {
    let sources = sources(args.folder.as_ref())?;
    let mut tests = run_tests(&sources).map_err(|error| refused(&error))?;
    let bundle = Bundle::load(sources).map_err(|error| refused(&error))?;
    tests.retain(|test| args.only.as_ref().is_none_or(|only| test.name.contains(only.as_str())));
    if tests.is_empty() {
        let what = "there is nothing to test; tests are rules named `test_…` in files named `…_test.rego`";
        return Err(ExitError::saying(Exit::Unsuccessful, what));
    }
    let failed = tests.iter().filter(|test| !test.has_passed()).count();
    let all: Vec<TestedRule<'_>> = tests.iter().map(TestedRule::of).collect();
    printer.show(&all, |_| {
        let mut words = String::new();
        for test in tests.iter().filter(|test| args.verbose || !test.has_passed()) {
            let _ = writeln!(words, "{}", visible(&test.to_string()));
        }
        let _ = writeln!(words, "{} passed, {failed} failed; bundle {}", tests.len() - failed, bundle.hash());
        words
    })?;
    if failed > 0 { Err(ExitError::silently(Exit::Unsuccessful)) } else { Ok(()) }
}
