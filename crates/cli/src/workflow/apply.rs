//! `interlock workflow apply`.

use clap::Args;
use interlock_protocol::workflows::{Applied, File, path};

use super::files;
use crate::client::{Client, ClientError};
use crate::output::exit::{Exit, ExitError};
use crate::output::{Printer, say_aside};

#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// Workflow files; `-` for stdin.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Only let the server check the files, and store nothing.
    #[arg(long)]
    dry_run: bool,
}

pub async fn run(client: &Client, printer: Printer, args: ApplyArgs) -> anyhow::Result<()> {
    // All of them are looked at before the first one is stored.
    let mut sources = Vec::new();
    for file in &args.files {
        let checked = files::checked(file, printer)?;
        checked.check_runnable().map_err(|found| files::refused(&found, printer))?;
        sources.push((file, checked.source.text));
    }
    if args.dry_run {
        printer.note("Nothing was stored.");
        return Ok(());
    }
    let mut all: Vec<Applied> = Vec::new();
    for (file, source) in sources {
        let body = File { source, file: Some(file.clone()) };
        let applied: Result<Applied, ClientError> = client.post(path::WORKFLOWS, &body).send().await;
        match applied {
            Ok(applied) => all.push(applied),
            Err(ClientError::Refused { problem, .. }) if !problem.diagnostics.is_empty() => {
                for found in &problem.diagnostics {
                    say_aside(&format!("{file}:{}:{}: {}", found.line, found.column, found.message));
                }
                return Err(ExitError::saying(Exit::Refused, format!("the server refuses {file}")));
            }
            Err(error) => return Err(error.into()),
        }
    }
    printer.show(&all, |paint| {
        let line = |applied: &Applied| {
            let version = format!("{} version {}", paint.bold(&applied.workflow), applied.version);
            if applied.created { format!("{version} applied\n") } else { format!("{version} is unchanged\n") }
        };
        all.iter().map(line).collect()
    })
}
