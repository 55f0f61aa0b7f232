//! `interlock audit` and `interlock evidence`: read the audit log, take evidence away, and verify both. Verifying needs the
//! public key and nothing else: no server, no account.

mod copy;
mod erase;
pub mod evidence;
mod list;
mod verify;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use interlock_evidence::PublicKey;
use interlock_protocol::audit::{AuditKey, CheckpointView, path};

use crate::client::{Client, ClientArgs};
use crate::output::exit::{Exit, ExitError};

#[derive(Args)]
pub struct AuditArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    verb: AuditVerb,
}

#[derive(Subcommand)]
enum AuditVerb {
    /// List entries of the audit log, newest first.
    List(list::AuditListArgs),
    /// Verify the audit log: the server's, or a file that was exported.
    Verify(verify::AuditVerifyArgs),
    /// Write the whole log to a file, which `audit verify` reads.
    Export(copy::AuditExportArgs),
    /// Erase what the log tells of a person, for ever. The log still verifies.
    Erase(erase::AuditEraseArgs),
    /// Print the signed head of the log. Keep it elsewhere: with it a log that was cut off is found out.
    Checkpoint,
    /// Print the public key that logs and evidence are verified with.
    Key,
}

pub async fn run(args: AuditArgs) -> anyhow::Result<()> {
    match args.verb {
        AuditVerb::Verify(verify) => verify::run(&args.client, verify).await,
        AuditVerb::List(list) => list::run(&args.client, list).await,
        AuditVerb::Export(export) => copy::run(&args.client, export).await,
        AuditVerb::Erase(erase) => erase::run(&args.client, erase).await,
        AuditVerb::Checkpoint => {
            let (client, printer) = args.client.open()?;
            let head: CheckpointView = client.get(path::CHECKPOINT).send().await?;
            printer.show(&head, |_| head.checkpoint.clone())
        }
        AuditVerb::Key => {
            let (client, printer) = args.client.open()?;
            let key: AuditKey = client.get(path::KEY).send().await?;
            printer.show(&key, |_| key.public_key.clone())
        }
    }
}

/// The longest file that a public key is read from.
const KEY_BYTES_MAX: u64 = 64 << 10;

/// The key in a file, or the server's own where none is named.
async fn key(file: Option<&PathBuf>, client: &ClientArgs) -> anyhow::Result<PublicKey> {
    let text = if let Some(file) = file {
        read(file, KEY_BYTES_MAX)?
    } else {
        let (client, printer) = client.open()?;
        printer.note("The key is the server's own word; give the one that you have kept with --key to be sure.");
        server_key(&client).await?.public_key
    };
    PublicKey::parse(&text).map_err(|error| ExitError::saying(Exit::Usage, error.to_string()))
}

async fn server_key(client: &Client) -> anyhow::Result<AuditKey> {
    Ok(client.get(path::KEY).send().await?)
}

/// Reads a file of unknown origin, if it is not longer than it may be.
fn read(file: &Path, bytes_max: u64) -> anyhow::Result<String> {
    let cannot = || format!("{} cannot be read", file.display());
    let mut bytes = Vec::new();
    // A pipe or a device says no length beforehand.
    let opened = std::fs::File::open(file).with_context(cannot)?;
    opened.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes).with_context(cannot)?;
    let name = file.display();
    anyhow::ensure!(bytes.len() as u64 <= bytes_max, "{name} is longer than {bytes_max} bytes, which no such file is");
    String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("{name} is no text (UTF-8)"))
}
