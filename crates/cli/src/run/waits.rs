//! `interlock run waits`: which step waits for which signal.

use clap::Args;
use interlock_protocol::runs::{WaitList, WaitView, limits, path};

use crate::client::Client;
use crate::output::layouts;
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};

#[derive(Debug, Args)]
pub struct WaitsArgs {
    /// Only those that wait for a signal of this type.
    #[arg(long = "type", value_name = "TYPE")]
    signal: Option<String>,
    /// Of those, only with this key.
    #[arg(long, requires = "signal")]
    key: Option<String>,
    /// How many at most.
    #[arg(long, short = 'n', default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

pub async fn run(client: &Client, printer: Printer, args: WaitsArgs) -> anyhow::Result<()> {
    let wanted = args.limit as usize;
    let mut waits: Vec<WaitView> = Vec::new();
    let mut after = None;
    while waits.len() < wanted {
        let call = client
            .get(path::WAITS)
            .query("type", args.signal.as_ref())
            .query("key", args.key.as_ref())
            .query("limit", Some((wanted - waits.len()).min(limits::PAGE_MAX)))
            .query("after", after);
        let page: WaitList = call.send().await?;
        waits.extend(page.waits);
        after = page.next_after;
        if after.is_none() {
            break;
        }
    }
    printer.list(&waits, |_| table(&waits), "No run waits for a signal.")
}

fn table(waits: &[WaitView]) -> Table {
    let now = span::now();
    let mut table = Table::of(&layouts::WAITS);
    for wait in waits {
        table.row([
            Cell::new(&wait.signal),
            Cell::new(&wait.key),
            Cell::new(wait.run_id.to_string()),
            Cell::new(wait.step.clone().unwrap_or_else(|| (wait.position + 1).to_string())),
            Cell::new(span::away(wait.opened_at, now)),
        ]);
    }
    table
}
