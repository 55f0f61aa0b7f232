//! `interlock run list`.

use clap::Args;
use interlock_core::state::{Detail, Reason, RunState};
use interlock_core::time::Millis;
use interlock_protocol::runs::{RunList, RunView, States, limits, path};

use super::filter::{self, FilterArgs};
use crate::client::Client;
use crate::output::layouts;
use crate::output::paint::{Paint, run_tone};
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};

/// Pages that are read for one list.
const PAGES_MAX: usize = 50;

#[derive(Debug, Args)]
pub struct ListRunsArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Only runs that wait for a person: stopped, or with an open approval.
    #[arg(long, conflicts_with_all = ["state", "active"])]
    needs_attention: bool,
    /// Only runs that have not ended.
    #[arg(long, conflicts_with = "state")]
    active: bool,
    /// Only runs in which this text occurs: in the id, the subject, a label or a searchable input.
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// How many at most.
    #[arg(long, short = 'n', default_value_t = 20, value_parser = filter::limit)]
    limit: usize,
}

pub async fn run(client: &Client, printer: Printer, args: ListRunsArgs) -> anyhow::Result<()> {
    let mut query = args.filter.query()?;
    if args.needs_attention {
        query.state = States(States::NEED_A_PERSON.to_vec());
    }
    if args.active {
        query.state = States(RunState::ALL.iter().copied().filter(|state| !state.is_terminal()).collect());
    }
    let mut pages = 0;
    let mut runs: Vec<RunView> = Vec::new();
    let mut after = None;
    while runs.len() < args.limit {
        let call = filter::ask(client.get(path::RUNS), &query)
            .query("limit", Some((args.limit - runs.len()).min(limits::PAGE_MAX)))
            .query("text", args.text.as_ref())
            .query("after", after);
        let page: RunList = call.send().await?;
        pages += 1;
        runs.extend(page.runs);
        after = page.next_after;
        // A text is looked for in the newest runs; a page may hold none, and others follow.
        if after.is_none() || pages >= PAGES_MAX {
            break;
        }
    }
    printer.list(&runs, |paint| table(&runs, paint), "There are no such runs.")?;
    printer.note_more(runs.len(), after.is_some());
    Ok(())
}

/// A state with the finer word on it: `paused (in doubt)`, `running (retrying)`.
pub fn state_words(state: RunState, detail: Option<Detail>, reason: Option<Reason>) -> String {
    let reason = reason.filter(|_| matches!(state, RunState::Paused | RunState::Failed));
    let finer = detail.map(Detail::as_str).or(reason.map(Reason::as_str));
    // The person who has paused it knows why.
    match finer.filter(|word| *word != Reason::Requested.as_str()) {
        Some(word) => format!("{state} ({})", word.replace('_', " ")),
        None => state.to_string(),
    }
}

pub fn table(runs: &[RunView], _: Paint) -> Table {
    let now = span::now();
    let mut table = Table::of(&layouts::RUNS);
    for run in runs {
        let state = state_words(run.state, run.detail, run.reason);
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
