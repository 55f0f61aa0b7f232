//! `interlock dead-letter`: messages that were given up.

use clap::{Args, Subcommand};
use interlock_core::ids::OutboxId;
use interlock_protocol::webhooks::{DeadLetterList, ReplayDead, Replayed, path};

use crate::client::{Client, ClientArgs};
use crate::output::layouts;
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};

#[derive(Args)]
pub struct DeadLetterArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List messages that were given up, newest first.
    List,
    /// Send messages again that were given up.
    Replay(DeadLetterReplayArgs),
}

#[derive(Debug, Args)]
struct DeadLetterReplayArgs {
    /// The message.
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    message: Option<OutboxId>,
    /// All of them, a thousand at a time.
    #[arg(long)]
    all: bool,
}

pub async fn run(args: DeadLetterArgs) -> anyhow::Result<()> {
    let (client, printer) = args.client.open()?;
    match args.verb {
        Verb::List => list(&client, printer).await,
        Verb::Replay(DeadLetterReplayArgs { message, all }) => {
            let body = ReplayDead { message_id: message, all };
            let replayed: Replayed = client.post(path::DEAD_LETTERS_REPLAY, &body).send().await?;
            printer.show(&replayed, |_| format!("{} queued", replayed.queued))
        }
    }
}

async fn list(client: &Client, printer: Printer) -> anyhow::Result<()> {
    let list: DeadLetterList = client.get(path::DEAD_LETTERS).send().await?;
    let now = span::now();
    let table = |_| {
        let mut table = Table::of(&layouts::DEAD_LETTERS);
        for letter in &list.dead_letters {
            table.row([
                Cell::new(letter.message_id.to_string()),
                Cell::new(&letter.destination),
                Cell::new(letter.run_id.to_string()),
                Cell::new(span::away(letter.dead_at, now)),
                Cell::new(letter.attempts.to_string()),
                Cell::or_dash(letter.error.as_ref()),
            ]);
        }
        table
    };
    printer.list(&list, table, "No message was given up.")
}
