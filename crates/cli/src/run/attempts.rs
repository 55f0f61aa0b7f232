//! `interlock run attempts`: which worker had which step when, and what became of it.

use clap::Args;
use interlock_core::cost::Cost;
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
            Cell::toned(tone, format!("{words}{}", attempt.cost.as_ref().map(price).unwrap_or_default())),
            Cell::or_dash(attempt.error.as_ref().map(ToString::to_string)),
        ]);
    }
    table
}

/// What an attempt has cost, to stand behind its outcome; nothing where it was free.
fn price(cost: &Cost) -> String {
    if cost.unpriced {
        return ", at a price that is not known".to_owned();
    }
    if cost.micros == 0 {
        return String::new();
    }
    let amount = format!("{}.{:06}", cost.micros / 1_000_000, cost.micros % 1_000_000);
    let amount = amount.trim_end_matches('0').trim_end_matches('.');
    let unit = cost.unit.as_deref().map(|unit| format!(" {unit}")).unwrap_or_default();
    format!(", cost {amount}{unit}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_told_in_the_unit_of_the_workflow() {
        let told = |cost: serde_json::Value| price(&serde_json::from_value(cost).unwrap());
        assert_eq!(told(serde_json::json!({ "micros": 12_500, "unit": "EUR" })), ", cost 0.0125 EUR");
        assert_eq!(told(serde_json::json!({ "micros": 30_000_000 })), ", cost 30");
        assert_eq!(told(serde_json::json!({ "micros": 0, "input_tokens": 7 })), "");
        assert_eq!(told(serde_json::json!({ "micros": 0, "unpriced": true })), ", at a price that is not known");
    }
}
