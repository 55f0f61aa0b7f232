//! `interlock run attempts`: which worker had which step when, and what became of it.

use clap::Args;
use interlock_core::time::Timestamp;
use interlock_protocol::runs::{AttemptList, AttemptOutcome, AttemptView, path};

use super::{RunArg, find};
use crate::client::{Client, fill};
use crate::output::layouts;
use crate::output::paint::Tone;
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};

#[derive(Debug, Args)]
pub struct AttemptsArgs {
    #[command(flatten)]
    run: RunArg,
}

pub async fn run(client: &Client, printer: Printer, args: AttemptsArgs) -> anyhow::Result<()> {
    let run = find::run(client, &args.run.run).await?;
    let list: AttemptList = client.get(fill(path::ATTEMPTS, &[("run", &run)])).send().await?;
    printer.list(&list.attempts, |_| table(&list.attempts, span::now()), "No worker has had a step of it yet.")
}

fn table(attempts: &[AttemptView], now: Timestamp) -> Table {
    let mut table = Table::of(&layouts::ATTEMPTS);
    for attempt in attempts {
        let took = attempt.ended_at.unwrap_or(now).since(attempt.started_at);
        let (tone, words) = words(attempt.outcome);
        table.row([
            Cell::new(&attempt.step),
            Cell::new(attempt.attempt.to_string()),
            Cell::new(attempt.worker.clone().unwrap_or_else(|| attempt.session_id.to_string())),
            Cell::new(span::instant(attempt.started_at)),
            Cell::new(span::span(took)),
            Cell::toned(tone, words),
            Cell::or_dash(attempt.error.as_ref().map(ToString::to_string)),
        ]);
    }
    table
}

const fn words(outcome: AttemptOutcome) -> (Tone, &'static str) {
    match outcome {
        AttemptOutcome::Running => (Tone::Busy, "running"),
        AttemptOutcome::Completed => (Tone::Good, "completed"),
        AttemptOutcome::Retried => (Tone::Careful, "failed, tried again"),
        AttemptOutcome::Failed => (Tone::Bad, "failed"),
        AttemptOutcome::InDoubt => (Tone::Bad, "in doubt"),
        AttemptOutcome::Waiting => (Tone::Plain, "waits"),
        AttemptOutcome::GivenBack => (Tone::Careful, "given back"),
        AttemptOutcome::Canceled => (Tone::Dim, "canceled"),
    }
}
