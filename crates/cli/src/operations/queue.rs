//! `interlock queue list`: what waits on each queue, and who takes from it.

use clap::{Args, Subcommand};
use interlock_core::time::Timestamp;
use interlock_protocol::operations::{QueueList, QueueView, path};

use crate::client::ClientArgs;
use crate::output::layouts;
use crate::output::paint::Tone;
use crate::output::span;
use crate::output::table::{Cell, Table};

#[derive(Args)]
pub struct QueueArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    verb: QueueVerb,
}

#[derive(Subcommand)]
enum QueueVerb {
    /// List the queues that have something to do, or a worker.
    List,
}

pub async fn run(args: QueueArgs) -> anyhow::Result<()> {
    let (client, printer) = args.client.open()?;
    let QueueVerb::List = args.verb;
    let list: QueueList = client.get(path::QUEUES).send().await?;
    printer.list(&list.queues, |_| table(&list.queues, span::now()), "No queue has anything to do, or a worker.")
}

pub fn table(queues: &[QueueView], now: Timestamp) -> Table {
    let mut table = Table::of(&layouts::QUEUES);
    for queue in queues {
        let unserved = queue.workers == 0 && queue.ready > 0;
        table.row([
            Cell::new(&queue.queue),
            Cell::new(queue.ready.to_string()),
            Cell::or_dash(queue.oldest_ready_at.map(|at| span::span(now.since(at)))),
            Cell::new(queue.delayed.to_string()),
            Cell::new(queue.running.to_string()),
            Cell::toned(if unserved { Tone::Bad } else { Tone::Plain }, queue.workers.to_string()),
        ]);
    }
    table
}
