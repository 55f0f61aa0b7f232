//! `interlock workflow list`.

use clap::Args;
use interlock_protocol::workflows::{WorkflowList, WorkflowView, limits, path};

use super::NOBODY_NAMED;
use crate::client::Client;
use crate::output::layouts;
use crate::output::paint::Tone;
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};

#[derive(Debug, Args)]
pub struct ListWorkflowsArgs {
    /// How many at most.
    #[arg(long, short = 'n', default_value_t = 100, value_parser = crate::run::filter::limit)]
    limit: usize,
}

pub async fn run(client: &Client, printer: Printer, args: ListWorkflowsArgs) -> anyhow::Result<()> {
    let mut all: Vec<WorkflowView> = Vec::new();
    let mut after = None;
    while all.len() < args.limit {
        let limit = (args.limit - all.len()).min(limits::PAGE_MAX);
        let page: WorkflowList =
            client.get(path::WORKFLOWS).query("limit", Some(limit)).query("after", after).send().await?;
        all.extend(page.workflows);
        after = page.next_after;
        if after.is_none() {
            break;
        }
    }
    let none = "There are no workflows yet. `interlock workflow apply FILE` stores one.";
    printer.list(&all, |_| table(&all), none)?;
    printer.note_more(all.len(), after.is_some());
    Ok(())
}

fn table(all: &[WorkflowView]) -> Table {
    let now = span::now();
    let mut table = Table::of(&layouts::WORKFLOWS);
    for workflow in all {
        let state = if workflow.disabled { Cell::toned(Tone::Dim, "disabled") } else { Cell::new("active") };
        table.row([
            Cell::new(&workflow.workflow),
            Cell::new(workflow.version.to_string()),
            state,
            Cell::new(span::away(workflow.updated_at, now)),
            Cell::new(workflow.applied_by.as_deref().unwrap_or(NOBODY_NAMED)),
        ]);
    }
    table
}
