//! `interlock workflow test`: scenario files, played through without running anything.

use std::fmt::Write as _;
use std::path::Path;

use clap::Args;
use interlock_core::text::visible::visible;
use interlock_workflow::diagnostic::{Diagnostic, Diagnostics};
use interlock_workflow::duration::show;
use interlock_workflow::scenario::{self, Verdict};
use serde::Serialize;

use super::files;
use crate::output::Printer;
use crate::output::exit::{Exit, ExitError};
use crate::output::paint::{Paint, Tone};

#[derive(Debug, Args)]
pub struct TestArgs {
    /// Scenario files.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Only scenarios whose name holds this text.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Tell what happened in scenarios that passed, too.
    #[arg(long, short)]
    verbose: bool,
}

#[derive(Serialize)]
struct Tested {
    file: String,
    scenario: String,
    passed: bool,
    took_ms: Option<u64>,
    failures: Vec<Diagnostic>,
}

pub fn run(printer: Printer, args: TestArgs) -> anyhow::Result<()> {
    let mut all = Vec::new();
    let mut words = String::new();
    for file in &args.files {
        let scenarios = scenario::parse(file, &files::text(file)?).map_err(|found| files::refused(&found, printer))?;
        // The workflow's file is named as seen from the scenario file.
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        let path = folder.join(&scenarios.file.workflow.value);
        let workflow = files::checked(&path.to_string_lossy(), printer)?;
        let only = |name: &str| args.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
        for one in scenarios.file.scenarios.iter().filter(|one| only(&one.name)) {
            let verdict = scenario::play(&workflow, one);
            words.push_str(&told(&verdict, printer.paint, args.verbose));
            if !verdict.failures.is_empty() {
                let list = verdict.failures.clone();
                let found = Diagnostics { source: scenarios.source.clone(), list };
                words.push_str(&indented(&found.render(files::style(printer))));
            }
            all.push(Tested {
                file: file.clone(),
                scenario: verdict.name,
                passed: verdict.failures.is_empty(),
                took_ms: verdict.played.as_ref().map(|played| played.after.0),
                failures: verdict.failures,
            });
        }
    }
    if all.is_empty() {
        return Err(ExitError::saying(Exit::Unsuccessful, "no scenario was played"));
    }
    let failed = all.iter().filter(|tested| !tested.passed).count();
    printer.show(&all, |paint| {
        let tone = if failed == 0 { Tone::Good } else { Tone::Bad };
        let summary = format!("{} passed, {failed} failed", all.len() - failed);
        format!("{words}{}\n", paint.tone(tone, summary))
    })?;
    if failed > 0 { Err(ExitError::silently(Exit::Unsuccessful)) } else { Ok(()) }
}

fn told(verdict: &Verdict, paint: Paint, verbose: bool) -> String {
    let passed = verdict.failures.is_empty();
    let mark = if passed { paint.tone(Tone::Good, "✓") } else { paint.tone(Tone::Bad, "✗") };
    let mut text = format!("{mark} {}\n", visible(&verdict.name));
    if let Some(played) = verdict.played.as_ref().filter(|_| verbose || !passed) {
        for line in &played.lines {
            let at = paint.dim(format!("{:>8}", show(line.after)));
            let _ = writeln!(text, "  {at}  {}", visible(&line.text));
        }
    }
    text
}

fn indented(text: &str) -> String {
    text.lines().fold(String::new(), |mut all, line| {
        let _ = writeln!(all, "  {line}");
        all
    })
}
