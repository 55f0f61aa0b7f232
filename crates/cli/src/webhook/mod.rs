//! `interlock webhook`: the addresses at which webhooks come in, and those that are told of events.

pub mod dead_letter;
mod inbound;
mod outbound;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use interlock_server::private_file;

use crate::client::ClientArgs;
use crate::output::confirm::ConfirmArgs;

#[derive(Args)]
pub struct WebhookArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    way: Direction,
}

#[derive(Subcommand)]
enum Direction {
    /// The addresses at which webhooks come in and start workflows.
    #[command(subcommand)]
    In(inbound::InboundVerb),
    /// The addresses that are told of events.
    #[command(subcommand)]
    Out(outbound::OutboundVerb),
}

/// An endpoint.
#[derive(Debug, Args)]
struct EndpointArg {
    /// The endpoint's id; one for webhooks that come in may also be called by its name.
    #[arg(value_name = "ENDPOINT")]
    name: String,
}

/// An endpoint to be removed.
#[derive(Debug, Args)]
struct DeleteArgs {
    #[command(flatten)]
    named: EndpointArg,
    #[command(flatten)]
    sure: ConfirmArgs,
}

/// A secret never stands in the arguments, where every process can read it.
#[derive(Debug, Args)]
struct SigningSecretArgs {
    /// A file that holds the sender's secret, `-` for stdin; without it the server makes one.
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
}

impl SigningSecretArgs {
    fn read(&self) -> anyhow::Result<Option<String>> {
        let Some(path) = &self.secret_file else { return Ok(None) };
        let text = if path.as_os_str() == "-" {
            std::io::read_to_string(std::io::stdin().lock()).context("cannot read stdin")?
        } else {
            private_file::read(path).with_context(|| format!("cannot read {}", path.display()))?
        };
        Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
    }
}

pub async fn run(args: WebhookArgs) -> anyhow::Result<()> {
    let (client, printer) = args.client.open()?;
    match args.way {
        Direction::In(verb) => inbound::run(&client, printer, verb).await,
        Direction::Out(verb) => outbound::run(&client, printer, verb).await,
    }
}

/// What is told once is told with a word of warning.
fn told(secret: Option<&str>) -> String {
    secret.map_or_else(String::new, |secret| format!("secret: {secret}\nKeep it now; it is not shown again.\n"))
}
