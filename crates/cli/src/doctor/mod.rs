//! `interlock doctor`: looks at everything that a server or the command line needs here, and says how to fix what it
//! finds.

mod client;
mod credentials;
mod machine;
mod private;
mod sandbox;
mod store;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::client::ClientArgs;
use crate::config::ConfigArg;
use crate::output::exit::{Exit, ExitError};
use crate::output::paint::{Paint, Tone};
use crate::output::wrap::wrapped;
use crate::server::connectors::CredentialArgs;

#[derive(Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    config: ConfigArg,
    /// The folder that holds the embedded store.
    #[arg(long, env = "INTERLOCK_DATA", default_value = "interlock-data")]
    data: PathBuf,
    /// Where the store is; by default the SQLite file in the data folder.
    #[arg(long, env = "INTERLOCK_STORE")]
    store: Option<String>,
    /// Where a server would listen.
    #[arg(long, env = "INTERLOCK_LISTEN", default_value = "127.0.0.1:8420", value_parser = crate::server::address::listen)]
    listen: SocketAddr,
    #[command(flatten)]
    credentials: CredentialArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Ok,
    /// It works, and could bite.
    Warning,
    Problem,
    /// There is nothing to look at here.
    Skipped,
}

/// One thing that was looked at.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    pub check: &'static str,
    pub verdict: Verdict,
    pub found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Finding {
    pub fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Ok, found: found.into(), fix: None }
    }

    pub fn skipped(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Skipped, found: found.into(), fix: None }
    }

    pub fn warning(check: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Warning, found: found.into(), fix: Some(fix.into()) }
    }

    pub fn problem(check: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Problem, found: found.into(), fix: Some(fix.into()) }
    }
}

#[derive(Serialize)]
struct DoctorReport {
    healthy: bool,
    findings: Vec<Finding>,
}

pub async fn run(args: DoctorArgs) -> anyhow::Result<()> {
    let printer = args.client.output.printer();
    let mut findings = Vec::new();
    findings.extend(client::contexts_file());
    findings.extend(client::server(&args.client.server).await);
    findings.extend(machine::clock());
    findings.push(private::folder(&args.data));
    findings.push(machine::disk(&args.data));
    findings.push(machine::files());
    findings.extend(private::look(&args.data));
    findings.push(machine::port(args.listen).await);
    findings.extend(store::look(args.store.as_deref(), &args.data).await);
    findings.extend(credentials::look(&args.credentials).await);
    findings.extend(sandbox::look());
    let problems = findings.iter().filter(|finding| finding.verdict == Verdict::Problem).count();
    let report = DoctorReport { healthy: problems == 0, findings };
    printer.show(&report, |paint| page(&report.findings, paint, printer.prose_width()))?;
    if problems == 0 { Ok(()) } else { Err(ExitError::silently(Exit::Unsuccessful)) }
}

/// Columns before what was found: the mark, and the name of the check.
const FOUND_AT: usize = 19;

fn page(findings: &[Finding], paint: Paint, width: usize) -> String {
    let mut text = String::new();
    for finding in findings {
        let (tone, mark) = match finding.verdict {
            Verdict::Ok => (Tone::Good, "✓"),
            Verdict::Warning => (Tone::Careful, "!"),
            Verdict::Problem => (Tone::Bad, "✗"),
            Verdict::Skipped => (Tone::Dim, "–"),
        };
        let found = interlock_core::text::visible::visible_lines(&finding.found);
        let told = format!("{} {:<16} {found}", paint.tone(tone, mark), finding.check);
        let _ = writeln!(text, "{}", wrapped(&told, width, FOUND_AT));
        if let Some(fix) = &finding.fix {
            let told = format!("{:FOUND_AT$}{}", "", paint.dim(format!("→ {fix}")));
            let _ = writeln!(text, "{}", wrapped(&told, width, FOUND_AT + 2));
        }
    }
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
    let (problems, warnings) = (count(Verdict::Problem), count(Verdict::Warning));
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let sum = format!("\n{problems} problem{}, {warnings} warning{}", plural(problems), plural(warnings));
    let tone = if problems > 0 {
        Tone::Bad
    } else if warnings > 0 {
        Tone::Careful
    } else {
        Tone::Good
    };
    text.push_str(&paint.tone(tone, sum));
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    #[test]
    fn what_was_found_is_broken_where_the_screen_ends() {
        let found = "others can get at the data folder, in which the keys of this server and of its users are kept";
        let fix = "change its mode, so that it is its owner's alone, and look at who has an account on this machine";
        let findings = [Finding::warning("private files", found, fix), Finding::ok("store", "opens")];
        for width in [60, 80] {
            let text = page(&findings, Paint::OFF, width);
            assert!(text.lines().all(|line| line.width() <= width), "{width}:\n{text}");
        }
        let text = page(&findings, Paint::OFF, 200);
        assert!(text.contains(&format!("! private files    {found}\n                   → {fix}\n")), "{text}");
    }
}
