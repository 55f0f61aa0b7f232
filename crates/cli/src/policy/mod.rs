//! `interlock policy`: test a bundle, ask it, and see what another one would change. None of it needs a server.

mod diff;
mod eval;
mod test;

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use interlock_policy::{Bundle, BundleSources, LoadError};

use crate::output::OutputArgs;
use crate::output::exit::{Ended, Exit};

#[derive(Args)]
pub struct PolicyArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(subcommand)]
    verb: PolicyVerb,
}

#[derive(Subcommand)]
enum PolicyVerb {
    /// Check a bundle and run its tests: rules named `test_…` in files named `…_test.rego`.
    Test(test::TestPolicyArgs),
    /// Decide on an input document and say which rules gave the answer.
    Eval(eval::EvalArgs),
    /// Show what changes for a list of inputs if one bundle takes the place of another.
    Diff(diff::DiffPolicyArgs),
}

pub fn run(args: PolicyArgs) -> anyhow::Result<()> {
    let printer = args.output.printer();
    match args.verb {
        PolicyVerb::Test(test) => test::run(printer, test),
        PolicyVerb::Eval(eval) => eval::run(printer, eval),
        PolicyVerb::Diff(diff) => diff::run(printer, diff),
    }
}

/// The name by which the policy that is part of the binary is meant where a folder is expected.
const SHIPPED: &str = "default";

/// The files of a bundle in a folder; the shipped one where none is named.
fn sources(folder: Option<&PathBuf>) -> anyhow::Result<BundleSources> {
    match folder {
        None => Ok(BundleSources::shipped()),
        Some(name) if name.as_os_str() == SHIPPED && !name.exists() => Ok(BundleSources::shipped()),
        Some(folder) if !folder.is_dir() => {
            Err(Ended::saying(Exit::NotFound, format!("there is no folder {}", folder.display())))
        }
        Some(folder) => BundleSources::read(folder).map_err(|error| refused(&error)),
    }
}

fn bundle(folder: Option<&PathBuf>) -> anyhow::Result<Bundle> {
    Bundle::load(sources(folder)?).map_err(|error| refused(&error))
}

/// A bundle that cannot be used, with all that is wrong about it.
fn refused(error: &LoadError) -> anyhow::Error {
    Ended::saying(Exit::Unsuccessful, error.to_string())
}

/// The most that is read of a file of inputs.
const INPUTS_BYTES_MAX: u64 = 256 << 20;

/// The text of a file; `-` is stdin.
fn text(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    if path.as_os_str() == "-" {
        std::io::stdin().lock().take(INPUTS_BYTES_MAX).read_to_string(&mut text).context("cannot read stdin")?;
        return Ok(text);
    }
    if !path.exists() {
        return Err(Ended::saying(Exit::NotFound, format!("there is no file {}", path.display())));
    }
    let read = std::fs::File::open(path).and_then(|file| file.take(INPUTS_BYTES_MAX).read_to_string(&mut text));
    read.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text)
}
