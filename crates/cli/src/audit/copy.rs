//! `interlock audit export`, and the pages behind `audit verify`: the whole log, page by page.

use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use interlock_core::json::HashHex;
use interlock_evidence::export::{ExportLine, LeafSpan, LogCopy, LoggedEntry};
use interlock_protocol::audit::{AuditPageView, CheckpointView, limits, path};

use crate::client::{Client, ClientArgs};

#[derive(Debug, Args)]
pub struct AuditExportArgs {
    /// Where to write it, as JSON lines.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Which of the tenant's logs; the present one where omitted.
    #[arg(long, value_name = "NUMBER")]
    log: Option<u64>,
}

pub async fn run(client: &ClientArgs, args: AuditExportArgs) -> anyhow::Result<()> {
    let (client, printer) = client.open()?;
    let copy = fetch(&client, args.log).await?;
    let cannot = || format!("{} cannot be written", args.file.display());
    let mut file = BufWriter::new(std::fs::File::create(&args.file).with_context(cannot)?);
    let mut line = |line: &ExportLine| -> anyhow::Result<()> {
        serde_json::to_writer(&mut file, line)?;
        file.write_all(b"\n").with_context(cannot)
    };
    let count = copy.entries.len();
    for note in copy.checkpoints {
        line(&ExportLine::Checkpoint(note))?;
    }
    for entry in copy.entries {
        line(&ExportLine::Entry(entry))?;
    }
    for leaves in copy.leaves {
        line(&ExportLine::Leaves(leaves))?;
    }
    file.flush().with_context(cannot)?;
    printer.note(&format!("{count} entries written to {}.", args.file.display()));
    Ok(())
}

/// The whole log, up to the head that the server has signed now.
pub async fn fetch(client: &Client, log: Option<u64>) -> anyhow::Result<LogCopy> {
    let head: CheckpointView = client.get(path::CHECKPOINT).query("log", log).send().await?;
    let size = signed_size(&head.checkpoint).context("the server's checkpoint has no size")?;
    let own = origin(&head.checkpoint).map(str::to_owned);
    let mut copy = LogCopy { checkpoints: vec![head.checkpoint], ..LogCopy::default() };
    let mut from = (size > 0).then_some(0);
    while let Some(next) = from.filter(|next| *next < size) {
        let call = client.get(path::AUDIT).query("log", Some(head.log)).query("from", Some(next));
        let page: AuditPageView = call.query("limit", Some(limits::PAGE_MAX)).send().await?;
        for entry in &page.entries {
            let logged: LoggedEntry = entry.decode().context("an entry of the server's cannot be read")?;
            copy.entries.push(logged);
        }
        if let Some(span) = page.leaves {
            let hashes = span.hashes.iter().map(|text| hash(text)).collect::<Result<_, _>>()?;
            copy.leaves.push(LeafSpan { first: span.first, hashes });
        }
        // A later head of this log is of entries that were sealed since; a head of another log is for the verdict.
        let is_later = |note: &String| origin(note) == own.as_deref() && signed_size(note).is_some_and(|at| at > size);
        copy.checkpoints.extend(page.checkpoints.into_iter().filter(|note| !is_later(note)));
        from = page.next;
    }
    // What was sealed since is not under the head.
    copy.entries.truncate(size as usize);
    Ok(copy)
}

/// The log that a checkpoint names, not verified.
fn origin(note: &str) -> Option<&str> {
    note.lines().next()
}

/// The size that a checkpoint states, not verified.
fn signed_size(note: &str) -> Option<u64> {
    note.lines().nth(1)?.parse().ok()
}

fn hash(text: &str) -> serde_json::Result<HashHex> {
    serde_json::from_value(text.into())
}
