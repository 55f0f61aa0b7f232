//! `interlock run list`.

use clap::Args;
use interlock_core::state::RunState;
use interlock_core::time::Millis;
use interlock_protocol::runs::{RunList, RunView, limits, path};

use crate::client::Client;
use crate::output::paint::{Paint, run_tone};
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};

#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only runs in this state.
    #[arg(long, value_name = "STATE")]
    state: Option<RunState>,
    /// Only runs of this workflow.
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
    /// Only runs about this subject.
    #[arg(long)]
    subject: Option<String>,
    /// Only runs with this label.
    #[arg(long, value_name = "NAME=VALUE")]
    label: Option<String>,
    /// How many at most.
    #[arg(long, short = 'n', default_value_t = 20)]
    limit: usize,
}

pub async fn run(client: &Client, printer: Printer, args: ListArgs) -> anyhow::Result<()> {
    let mut runs: Vec<RunView> = Vec::new();
    let mut after = None;
    while runs.len() < args.limit {
        let call = client
            .get(path::RUNS)
            .query("state", args.state)
            .query("workflow", args.workflow.as_ref())
            .query("subject", args.subject.as_ref())
            .query("label", args.label.as_ref().map(|label| label.replacen('=', ":", 1)))
            .query("limit", Some((args.limit - runs.len()).min(limits::PAGE_MAX)))
            .query("after", after);
        let page: RunList = call.send().await?;
        runs.extend(page.runs);
        after = page.next_after;
        if after.is_none() {
            break;
        }
    }
    printer.list(&runs, |paint| table(&runs, paint), "There are no such runs.")
}

fn table(runs: &[RunView], _: Paint) -> Table {
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
