//! `interlock config check`: what a server or a worker would say about its settings, before one is started with them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, FromArgMatches as _};
use serde::Serialize;

use super::{LayeredConfig, parse};
use crate::output::Printer;
use crate::output::causes::causes;
use crate::output::exit::{Exit, ExitError};

#[derive(Args)]
pub struct CheckArgs {
    /// The file; by default the one that a server here would read.
    file: Option<PathBuf>,
}

#[derive(Serialize)]
struct CheckReport {
    file: String,
    settings: Vec<String>,
}

pub fn run(printer: Printer, args: CheckArgs) -> anyhow::Result<()> {
    let layered = layered("server", args.file.as_deref())?;
    let Some(file) = layered.file.clone() else {
        let what = "no config file is read here: name one, or write one with `interlock config init`";
        return Err(ExitError::saying(Exit::Config, what));
    };
    let mut mistakes = Vec::new();
    for command in ["server", "up", "worker"] {
        let layered = self::layered(command, args.file.as_deref())?;
        let cli = crate::Cli::from_arg_matches(&layered.matches)?;
        let mistake = match cli.command {
            crate::Command::Server(args) => args.check(),
            crate::Command::Up(args) => args.check(),
            crate::Command::Worker(args) => args.check(),
            _ => Ok(()),
        };
        let mistake = mistake.err().map(|error| causes(&error));
        mistakes.extend(mistake.filter(|mistake| !mistakes.contains(mistake)));
    }
    let file = file.display().to_string();
    if !mistakes.is_empty() {
        let lines: Vec<_> = mistakes.iter().map(|mistake| format!("{file}: {mistake}")).collect();
        return Err(ExitError::saying(Exit::Config, lines.join("\n")));
    }
    let settings: Vec<String> = layered.said.into_iter().map(|said| said.key).collect();
    let report = CheckReport { file, settings };
    printer.show(&report, |_| {
        let plural = if report.settings.len() == 1 { "" } else { "s" };
        format!("{} is right: {} setting{plural}\n", report.file, report.settings.len())
    })
}

fn layered(command: &str, file: Option<&std::path::Path>) -> anyhow::Result<LayeredConfig> {
    let mut line: Vec<OsString> = vec!["interlock".into(), command.into()];
    if let Some(file) = file {
        line.extend(["--config".into(), file.into()]);
    }
    parse(line)
}
