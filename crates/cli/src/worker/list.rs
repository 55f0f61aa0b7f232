//! `interlock worker list`: who takes steps, when each was last heard of, and what it has.

use interlock_core::state::WorkerState;
use interlock_core::text::visible::visible;
use interlock_core::time::Timestamp;
use interlock_protocol::operations::{WorkerList, WorkerView, path};

use super::hindrance;
use crate::client::Client;
use crate::output::layouts;
use crate::output::paint::Tone;
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};

pub async fn run(client: &Client, printer: Printer, all: bool) -> anyhow::Result<()> {
    let list: WorkerList = client.get(path::WORKERS).query("all", all.then_some(true)).send().await?;
    let none = "There are no workers; `interlock worker --task NAME=PROGRAM` starts one.";
    let now = span::now();
    printer.list(&list.workers, |_| table(&list.workers, now), none)?;
    for worker in &list.workers {
        for why in hindrance::words(worker, now) {
            printer.note(&format!("`{}` is {why}.", visible(&worker.worker)));
        }
    }
    Ok(())
}

pub fn table(workers: &[WorkerView], now: Timestamp) -> Table {
    let mut table = Table::of(&layouts::WORKERS);
    for worker in workers {
        let (tone, state) = state(worker);
        table.row([
            Cell::new(&worker.worker),
            Cell::toned(tone, state),
            Cell::new(span::away(worker.last_heartbeat_at, now)),
            Cell::new(format!("{}/{}", worker.running, worker.slots)),
            Cell::new(worker.queues.join(", ")),
            Cell::new(worker.tasks.as_ref().map_or_else(|| "any".to_owned(), |tasks| tasks.join(", "))),
            Cell::new(worker.session_id.to_string()),
        ]);
    }
    table
}

/// What people want to know of it: whether it can be counted on.
pub fn state(worker: &WorkerView) -> (Tone, &'static str) {
    match worker.state {
        WorkerState::Offline if worker.running > 0 => (Tone::Bad, "lost"),
        _ if worker.silent => (Tone::Bad, "silent"),
        WorkerState::Online => (Tone::Good, "online"),
        WorkerState::Draining => (Tone::Careful, "draining"),
        WorkerState::Maintenance => (Tone::Careful, "maintenance"),
        WorkerState::Errored => (Tone::Bad, "errored"),
        WorkerState::Offline => (Tone::Dim, "offline"),
    }
}
