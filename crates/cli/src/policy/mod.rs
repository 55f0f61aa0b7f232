//! `interlock policy`: test a bundle, ask it, and see what another one would change, without a server; and what a server
//! holds its actions against.

mod decided;
mod diff;
mod eval;
mod force;
mod test;

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use interlock_policy::{Bundle, BundleSources, LoadError};

use crate::client::ClientArgs;
use crate::output::exit::{Exit, ExitError};

#[derive(Args)]
pub struct PolicyArgs {
    #[command(flatten)]
    client: ClientArgs,
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
    /// Write the files of a policy to a folder, to begin from.
    Export(force::ExportArgs),
    /// Show the policy that is in force on the server.
    Show,
    /// List the versions that the server has been given.
    Versions,
    /// Give the server a new version. Its rules must be sound, and its tests must pass.
    Push(force::PushArgs),
    /// Put a version in force.
    Activate(force::ActivateArgs),
    /// Try a version beside the one in force: it is asked, and decides nothing.
    Shadow(force::ShadowArgs),
    /// Say what was decided on a run's steps, by which rules.
    Explain(decided::ExplainArgs),
    /// Show what a version would have decided on the actions that were decided on before.
    Replay(decided::ReplayArgs),
}

pub async fn run(args: PolicyArgs) -> anyhow::Result<()> {
    let printer = args.client.output.printer();
    let verb = match args.verb {
        PolicyVerb::Test(test) => return test::run(printer, test),
        PolicyVerb::Eval(eval) => return eval::run(printer, eval),
        PolicyVerb::Diff(diff) => return diff::run(printer, diff),
        PolicyVerb::Export(export) if !export.needs_server() => return force::export_shipped(printer, &export),
        verb => verb,
    };
    let (client, printer) = args.client.open()?;
    match verb {
        PolicyVerb::Export(export) => force::export(&client, printer, export).await,
        PolicyVerb::Versions => force::versions(&client, printer).await,
        PolicyVerb::Push(push) => force::push(&client, printer, push).await,
        PolicyVerb::Activate(activate) => force::activate(&client, printer, activate).await,
        PolicyVerb::Shadow(shadow) => force::shadow(&client, printer, shadow).await,
        PolicyVerb::Explain(explain) => decided::explain(&client, printer, explain).await,
        PolicyVerb::Replay(replay) => decided::replay(&client, printer, replay).await,
        _ => force::show(&client, printer).await,
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
            Err(ExitError::saying(Exit::NotFound, format!("there is no folder {}", folder.display())))
        }
        Some(folder) => BundleSources::read(folder).map_err(|error| refused(&error)),
    }
}

pub fn bundle(folder: Option<&PathBuf>) -> anyhow::Result<Bundle> {
    Bundle::load(sources(folder)?).map_err(|error| refused(&error))
}

/// A bundle that cannot be used, with all that is wrong about it.
fn refused(error: &LoadError) -> anyhow::Error {
    ExitError::saying(Exit::Unsuccessful, error.to_string())
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
        return Err(ExitError::saying(Exit::NotFound, format!("there is no file {}", path.display())));
    }
    let read = std::fs::File::open(path).and_then(|file| file.take(INPUTS_BYTES_MAX).read_to_string(&mut text));
    read.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text)
}
