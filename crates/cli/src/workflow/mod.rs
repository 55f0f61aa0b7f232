//! `interlock workflow`: check workflow files, test them without running them, apply them, list what is there.
//!
//! `validate` and `test` need no server, nor do `plan` and `graph` of a file.

mod apply;
mod diff;
mod files;
mod graph;
mod list;
mod plan;
mod rest;
mod show;
mod test;
mod validate;

use clap::{Args, Subcommand};

use crate::client::ClientArgs;

/// Stands for who applied a version of which the server does not say it.
const NOBODY_NAMED: &str = "-";

#[derive(Args)]
pub struct WorkflowArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    verb: WorkflowVerb,
}

#[derive(Subcommand)]
enum WorkflowVerb {
    /// Check files: everything that is wrong, with line and column. Needs no server.
    Validate(validate::ValidateArgs),
    /// Store files on the server as new versions; unchanged files change nothing.
    Apply(apply::ApplyArgs),
    /// Show how a file differs from the newest version on the server.
    Diff(diff::DiffArgs),
    /// List the workflows on the server.
    List(list::ListWorkflowsArgs),
    /// Show a workflow on the server: its file, and its versions.
    Show(show::ShowWorkflowArgs),
    /// Draw a file, or a workflow of the server. A file needs no server.
    Graph(graph::GraphArgs),
    /// Walk the steps of a file, or of a workflow of the server, without side effects and say what would be done. A file
    /// needs no server.
    #[command(disable_version_flag = true)]
    Plan(plan::PlanArgs),
    /// Play scenario files: stubbed steps, virtual time, expected path. Needs no server.
    Test(test::TestArgs),
    /// Disable a workflow: it takes no more starts.
    Disable(rest::RestArgs),
    /// Enable a disabled workflow: it takes starts again.
    Enable(rest::RestArgs),
}

pub async fn run(args: WorkflowArgs) -> anyhow::Result<()> {
    let printer = args.client.output.printer();
    match args.verb {
        WorkflowVerb::Validate(args) => validate::run(printer, args),
        WorkflowVerb::Plan(plan) => plan::run(&args.client, printer, plan).await,
        WorkflowVerb::Test(args) => test::run(printer, args),
        WorkflowVerb::Graph(graph) => graph::run(&args.client, printer, graph).await,
        WorkflowVerb::Apply(apply) => apply::run(&args.client.open()?.0, printer, apply).await,
        WorkflowVerb::Diff(diff) => diff::run(&args.client.open()?.0, printer, diff).await,
        WorkflowVerb::List(list) => list::run(&args.client.open()?.0, printer, list).await,
        WorkflowVerb::Show(show) => show::run(&args.client.open()?.0, printer, show).await,
        WorkflowVerb::Disable(named) => rest::run(&args.client.open()?.0, printer, named, true).await,
        WorkflowVerb::Enable(named) => rest::run(&args.client.open()?.0, printer, named, false).await,
    }
}
