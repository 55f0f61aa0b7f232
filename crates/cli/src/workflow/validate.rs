//! `interlock workflow validate`.

use std::fmt::Write as _;

use clap::Args;
use interlock_workflow::diagnostic::{Diagnostic, Diagnostics};
use interlock_workflow::parse;
use serde::Serialize;

use super::files;
use crate::output::Printer;
use crate::output::exit::{Exit, ExitError};

#[derive(Debug, Args)]
pub struct ValidateArgs {
    /// Workflow files; `-` for stdin.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Treat warnings as errors.
    #[arg(long)]
    strict: bool,
}

#[derive(Serialize)]
struct ValidatedFile {
    file: String,
    /// It could be applied.
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    workflow: Option<String>,
    diagnostics: Vec<Diagnostic>,
}

pub fn run(printer: Printer, args: ValidateArgs) -> anyhow::Result<()> {
    let mut all = Vec::new();
    let mut words = String::new();
    let mut failed = false;
    for file in &args.files {
        let mut verdict = String::new();
        let (found, diagnostics) = match parse(file, &files::text(file)?) {
            Ok(checked) => {
                let (list, valid) = checked.remarks();
                let name = checked.definition.name.0.clone();
                if valid {
                    let steps = checked.definition.steps.len();
                    let plural = if steps == 1 { "" } else { "s" };
                    verdict = format!("{file}: `{name}` is valid, {steps} step{plural}");
                }
                let diagnostics = Diagnostics { source: checked.source, list: list.clone() };
                let found = ValidatedFile { file: file.clone(), valid, workflow: Some(name), diagnostics: list };
                (found, diagnostics)
            }
            Err(diagnostics) => {
                let (file, list) = (file.clone(), diagnostics.list.clone());
                (ValidatedFile { file, valid: false, workflow: None, diagnostics: list }, diagnostics)
            }
        };
        failed |= !found.valid || (args.strict && !diagnostics.list.is_empty());
        if !diagnostics.list.is_empty() {
            let shown = diagnostics.render(files::style(printer));
            let _ = writeln!(words, "{shown}\n{}", files::count(&diagnostics));
        }
        if !verdict.is_empty() {
            let _ = writeln!(words, "{verdict}");
        }
        all.push(found);
    }
    printer.show(&all, |_| words)?;
    if failed { Err(ExitError::silently(Exit::Unsuccessful)) } else { Ok(()) }
}
