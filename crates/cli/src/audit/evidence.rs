//! `interlock evidence`: take the evidence of a run away, and verify it offline.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use interlock_core::ids::RunId;
use interlock_core::json::{Hash, HashHex};
use interlock_core::text::visible::visible;
use interlock_evidence::limits::BUNDLE_BYTES_MAX;
use interlock_evidence::page::page;
use interlock_evidence::verify_bundle::verify_bundle;
use interlock_protocol::audit::path;
use serde_json::json;

use super::{key, read};
use crate::client::{ClientArgs, fill};
use crate::output::exit::{Exit, ExitError};
use crate::output::say;

#[derive(Args)]
pub struct EvidenceArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    verb: EvidenceVerb,
}

#[derive(Subcommand)]
enum EvidenceVerb {
    /// Write the evidence of an ended run to a file.
    Export(EvidenceExportArgs),
    /// Verify a bundle: integrity and completeness.
    Verify(EvidenceVerifyArgs),
}

#[derive(Debug, Args)]
struct EvidenceExportArgs {
    /// The run's id.
    run: RunId,
    /// Where to write it; stdout where omitted.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The page for people instead of the bundle.
    #[arg(long)]
    html: bool,
    /// 0 for the bundle itself, from 1 on its addenda; the newest where omitted.
    #[arg(long)]
    number: Option<u32>,
}

#[derive(Debug, Args)]
struct EvidenceVerifyArgs {
    /// A file that `evidence export` wrote.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The public key, as PEM or as a line `NAME+ID+KEY`; the server's own where omitted.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Write a page for people, made from the bundle once its integrity is verified; a page that came from elsewhere is no
    /// proof.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub async fn run(args: EvidenceArgs) -> anyhow::Result<()> {
    match args.verb {
        EvidenceVerb::Export(export) => take(&args.client, export).await,
        EvidenceVerb::Verify(verify) => check(&args.client, verify).await,
    }
}

async fn take(client: &ClientArgs, args: EvidenceExportArgs) -> anyhow::Result<()> {
    let (client, printer) = client.open()?;
    let address = fill(path::EVIDENCE, &[("run", &args.run)]);
    let format = args.html.then_some("html");
    let bytes = client.get(address).query("format", format).query("number", args.number).bytes().await?;
    match &args.file {
        None => say(std::str::from_utf8(&bytes).context("the server's answer is no text")?),
        Some(file) => {
            std::fs::write(file, &bytes).with_context(|| format!("{} cannot be written", file.display()))?;
            printer.note(&format!("The evidence of {} is in {}.", args.run, file.display()));
            Ok(())
        }
    }
}

async fn check(client: &ClientArgs, args: EvidenceVerifyArgs) -> anyhow::Result<()> {
    let key = key(args.key.as_ref(), client).await?;
    let bundle = read(&args.file, BUNDLE_BYTES_MAX as u64)?;
    let report = verify_bundle(&bundle, &key);
    let told = report.statement.as_ref().map(|statement| &statement.predicate);
    let (run, tenant) = (told.map(|told| told.record.run.run), told.map(|told| told.record.run.tenant));
    let (number, previous) = (told.map(|told| told.number), told.and_then(|told| told.previous));
    let open = told.map_or(0, |told| told.record.receipts.iter().filter(|receipt| is_open(&receipt.state)).count());
    let shown = json!({
        "run": run,
        "tenant": tenant,
        "number": number,
        "previous": previous,
        "open_receipts": open,
        "integrity": { "good": report.is_intact(), "findings": report.integrity },
        "completeness": { "good": report.is_complete(), "findings": report.completeness },
    });
    client.output.printer().show(&shown, |_| {
        let verdict = |name: &str, good: bool, findings: &[String]| {
            let head = format!("{name:<13} {}\n", if good { "good" } else { "NOT GIVEN" });
            let lines = findings.iter().map(|finding| format!("  - {}\n", visible(finding)));
            std::iter::once(head).chain(lines).collect::<String>()
        };
        let run = run.map_or_else(|| "unknown".to_owned(), |run| run.to_string());
        let tenant = tenant.map_or_else(String::new, |tenant| format!("tenant        {tenant}\n"));
        format!("run           {run}\n{tenant}{}", which(number, previous, open))
            + &verdict("integrity", report.is_intact(), &report.integrity)
            + &verdict("completeness", report.is_complete(), &report.completeness)
    })?;
    if let (Some(file), Some(statement)) = (&args.html, report.statement.as_ref().filter(|_| report.is_intact())) {
        let page = page(statement, Hash::of(bundle.as_bytes()));
        std::fs::write(file, page).with_context(|| format!("{} cannot be written", file.display()))?;
    }
    if report.is_complete() { Ok(()) } else { Err(ExitError::silently(Exit::Unsuccessful)) }
}

/// Whether nobody knew yet what had become of an effect.
fn is_open(state: &str) -> bool {
    matches!(state, "intent" | "in_doubt")
}

/// Which of the run's bundles it is, and whether another one may follow.
fn which(number: Option<u32>, previous: Option<HashHex>, open: usize) -> String {
    let addendum = match (number, previous) {
        (Some(number @ 1..), Some(HashHex(previous))) => {
            format!("addendum      {number}, to the bundle with the sha256 {previous}\n")
        }
        _ => String::new(),
    };
    match open {
        0 => addendum,
        open => {
            let effects = if open == 1 { "effect" } else { "effects" };
            format!("{addendum}open          {open} {effects}; what became of that, a later addendum tells\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_addendum_names_the_bundle_before_it_and_open_effects_announce_one() {
        assert_eq!(which(Some(0), None, 0), "");
        let before = Hash([7; 32]);
        let addendum = format!("addendum      1, to the bundle with the sha256 {before}\n");
        assert_eq!(which(Some(1), Some(HashHex(before)), 0), addendum);
        assert!(which(Some(1), Some(HashHex(before)), 2).starts_with(&addendum));
        assert!(which(Some(0), None, 1).starts_with("open          1 effect;"));
        assert!(is_open("intent") && is_open("in_doubt") && !is_open("succeeded") && !is_open("failed"));
    }
}
