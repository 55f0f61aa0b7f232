//! `interlock workflow graph`.

use clap::{Args, ValueEnum};
use interlock_protocol::workflows::{VersionDetail, path};
use interlock_workflow::{graph, parse};
use serde::Serialize;

use super::files;
use crate::client::{ClientArgs, fill};
use crate::output::Printer;

#[derive(Debug, Args)]
pub struct GraphArgs {
    /// A workflow file (`-` for stdin), or the name of a workflow on the server.
    #[arg(value_name = "WORKFLOW")]
    which: String,
    /// The name of a workflow on the server is meant, even if there is a file of that name.
    #[arg(long)]
    stored: bool,
    /// How to draw it.
    #[arg(long, value_enum, default_value_t = Form::Terminal)]
    format: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Boxes and lines.
    Terminal,
    /// A flow chart for documents (mermaid.js.org).
    Mermaid,
}

#[derive(Serialize)]
struct WorkflowGraph {
    workflow: String,
    mermaid: String,
}

pub async fn run(client: &ClientArgs, printer: Printer, args: GraphArgs) -> anyhow::Result<()> {
    let checked = if args.stored || !files::is_file(&args.which) {
        let (client, _) = client.open()?;
        let stored: VersionDetail = client.get(fill(path::WORKFLOW, &[("workflow", &args.which)])).send().await?;
        parse(&args.which, &stored.source).map_err(|found| files::refused(&found, printer))?
    } else {
        files::checked(&args.which, printer)?
    };
    let definition = &checked.definition;
    let mermaid = graph::mermaid(definition);
    let drawn = WorkflowGraph { workflow: definition.name.0.clone(), mermaid: mermaid.clone() };
    printer.show(&drawn, |_| match args.format {
        Form::Terminal => graph::drawing(definition),
        Form::Mermaid => mermaid,
    })
}
