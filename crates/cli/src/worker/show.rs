//! `interlock worker show`: one worker, what it can do, and the steps that it has.

use std::fmt::Write;

use interlock_core::ids::SessionId;
use interlock_core::state::{AssignmentState, WorkerState};
use interlock_core::text::nearest::hint;
use interlock_core::text::visible::visible;
use interlock_core::time::Timestamp;
use interlock_protocol::operations::{WorkerDetail, WorkerList, WorkerView, path};

use super::{hindrance, list};
use crate::client::{Client, fill};
use crate::output::exit::{Exit, ExitError};
use crate::output::layouts;
use crate::output::paint::Paint;
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};

/// The shortest end of an id that is looked for.
const SUFFIX_CHARS_MIN: usize = 4;

pub async fn run(client: &Client, printer: Printer, which: &str) -> anyhow::Result<()> {
    let session = find(client, which).await?;
    let detail: WorkerDetail = client.get(fill(path::WORKER, &[("session", &session)])).send().await?;
    printer.show(&detail, |paint| page(&detail, span::now(), paint, printer.width()))
}

/// A session's id, the end of one, or the name of a worker that has one session.
pub async fn find(client: &Client, text: &str) -> anyhow::Result<SessionId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let workers = client.get(path::WORKERS).query("all", Some(true)).send::<WorkerList>().await?.workers;
    let suffix = text.trim_start_matches('…');
    let ends = |id: SessionId| suffix.len() >= SUFFIX_CHARS_MIN && id.to_string().ends_with(suffix);
    let found: Vec<_> = workers.iter().filter(|worker| worker.worker == text || ends(worker.session_id)).collect();
    // A name that was used again means the one that was heard of last; they are listed in that order.
    let living: Vec<_> = found.iter().filter(|worker| worker.state != WorkerState::Offline).collect();
    match (&living[..], &found[..]) {
        ([one], _) => Ok(one.session_id),
        ([], [first, ..]) => Ok(first.session_id),
        ([], []) => {
            let names = workers.iter().map(|worker| worker.worker.as_str());
            let what = format!("there is no worker `{text}`; {}", hint(text, names));
            Err(ExitError::saying(Exit::NotFound, what))
        }
        (several, _) => {
            let ids: Vec<String> = several.iter().map(|worker| worker.session_id.to_string()).collect();
            let what =
                format!("{} workers are called `{text}`; name one by its session: {}", ids.len(), ids.join(", "));
            Err(ExitError::saying(Exit::NotFound, what))
        }
    }
}

/// The sessions that are over of the worker of this name; where there are none, the one that is meant by the text.
pub async fn over(client: &Client, text: &str) -> anyhow::Result<Vec<SessionId>> {
    let workers = client.get(path::WORKERS).query("all", Some(true)).send::<WorkerList>().await?.workers;
    let is_over = |worker: &&WorkerView| worker.state == WorkerState::Offline && worker.running == 0;
    let named = workers.iter().filter(|worker| worker.worker == text).filter(is_over);
    let sessions: Vec<SessionId> = named.map(|worker| worker.session_id).collect();
    if sessions.is_empty() { Ok(vec![find(client, text).await?]) } else { Ok(sessions) }
}

fn page(detail: &WorkerDetail, now: Timestamp, paint: Paint, width: usize) -> String {
    let worker = &detail.worker;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{} {value}", paint.dim(format!("{name:<13}")));
    };
    let (tone, state) = list::state(worker);
    line("worker", paint.bold(visible(&worker.worker)));
    line("session", worker.session_id.to_string());
    line("state", paint.tone(tone, state));
    for why in hindrance::words(worker, now) {
        line("", why);
    }
    line("heard", span::away(worker.last_heartbeat_at, now));
    line("lease ends", span::away(worker.lease_expires_at, now));
    line("registered", format!("{}, {}", span::instant(worker.registered_at), span::away(worker.registered_at, now)));
    line("queues", visible(&worker.queues.join(", ")).into_owned());
    let said = |list: &Option<Vec<String>>, none: &str| {
        list.as_ref().map_or_else(|| none.to_owned(), |list| visible(&list.join(", ")).into_owned())
    };
    line("tasks", said(&worker.tasks, "any (it has named none)"));
    line("capabilities", said(&worker.capabilities, "-"));
    if let Some(terms) = &worker.terms {
        let environments: Vec<&str> = terms.environments.iter().map(String::as_str).collect();
        line("environments", visible(&environments.join(", ")).into_owned());
    }
    if !worker.labels.is_empty() {
        let labels: Vec<String> = worker.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        line("labels", visible(&labels.join(", ")).into_owned());
    }
    if let Some(build) = &worker.build_id {
        line("build", visible(build).into_owned());
    }
    line("steps", format!("{} of {}", worker.running, worker.slots));
    if worker.shared {
        line("serves", "all tenants; it is inside a server".to_owned());
    }
    for run in &detail.assigned {
        let what = if run.state == AssignmentState::Acked { "has the run" } else { "is asked to take" };
        line("assigned", format!("{what} {}, {}", run.run_id, span::away(run.since, now)));
    }
    if !detail.holds.is_empty() {
        let mut table = Table::of(&layouts::WORKER_STEPS);
        for held in &detail.holds {
            table.row([
                Cell::new(held.run_id.to_string()),
                Cell::new(held.step.clone().unwrap_or_else(|| (held.position + 1).to_string())),
                Cell::new(held.attempt.to_string()),
                Cell::or_dash(held.since.map(|at| span::away(at, now))),
            ]);
        }
        text.push('\n');
        text.push_str(&table.render(paint, width));
    }
    text
}
