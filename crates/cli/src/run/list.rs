//! `interlock run list`.

use clap::Args;
use interlock_core::time::Millis;
use interlock_protocol::runs::{RunList, RunView, limits, path};

use super::filter::{self, FilterArgs};
use crate::client::Client;
use crate::output::paint::{Paint, run_tone};
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};

#[derive(Debug, Args)]
pub struct ListRunsArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// How many at most.
    #[arg(long, short = 'n', default_value_t = 20)]
    limit: usize,
}

pub async fn run(client: &Client, printer: Printer, args: ListRunsArgs) -> anyhow::Result<()> {
    let query = args.filter.query()?;
    let mut runs: Vec<RunView> = Vec::new();
    let mut after = None;
    while runs.len() < args.limit {
        let call = filter::ask(client.get(path::RUNS), &query)
            .query("limit", Some((args.limit - runs.len()).min(limits::PAGE_MAX)))
            .query("after", after);
        let page: RunList = call.send().await?;
        runs.extend(page.runs);
        after = page.next_after;
        if after.is_none() {
            break;
        }
    }
    printer.list(&runs, |paint| table(&runs, paint), "There are no such runs.")?;
    printer.note_more(runs.len(), after.is_some());
    Ok(())
}

pub fn table(runs: &[RunView], _: Paint) -> Table {
    let now = span::now();
    let mut table = Table::new(["RUN", "WORKFLOW", "SUBJECT", "STATE", "STARTED", "TOOK"]);
    for run in runs {
        let state = run.detail.map_or_else(|| run.state.to_string(), |detail| format!("{} ({detail})", run.state));
        table.row([
            Cell::new(run.run_id.to_string()),
            Cell::new(&run.workflow),
            Cell::or_dash(run.subject.as_ref()),
            Cell::toned(run_tone(run.state), state),
            Cell::new(span::away(run.created_at, now)),
            Cell::or_dash(run.duration_ms.map(|ms| span::span(Millis(ms)))),
        ]);
    }
    table
}
