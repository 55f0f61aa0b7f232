//! `interlock run receipts`: the run's effects on other systems.

use clap::Args;
use interlock_core::state::ReceiptState;
use interlock_protocol::runs::{ReceiptList, StepView, path};

use super::{RunArg, find, show};
use crate::client::{Client, fill};
use crate::output::layouts;
use crate::output::paint::Tone;
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};

#[derive(Debug, Args)]
pub struct ReceiptsArgs {
    #[command(flatten)]
    run: RunArg,
}

pub async fn run(client: &Client, printer: Printer, args: ReceiptsArgs) -> anyhow::Result<()> {
    let run = find::run(client, &args.run.run).await?;
    let list: ReceiptList = client.get(fill(path::RECEIPTS, &[("run", &run)])).send().await?;
    let steps = show::steps(client, run).await?;
    printer.list(&list.receipts, |_| table(&list, &steps), "It has named no effect on another system.")
}

/// How much of a bundle's hash is shown: as much as tells two versions apart.
const BUNDLE_CHARS: usize = 12;

fn table(list: &ReceiptList, steps: &[StepView]) -> Table {
    let mut table = Table::of(&layouts::RECEIPTS);
    for receipt in &list.receipts {
        let bundle = list.bundles.get(&receipt.id.to_string());
        let bundle: Option<String> = bundle.map(|hash| hash.chars().take(BUNDLE_CHARS).collect());
        let step = steps.iter().find(|step| step.position == receipt.position).map(|step| step.key.as_str());
        let late = if receipt.late { " (late)" } else { "" };
        table.row([
            Cell::or_dash(step),
            Cell::new(receipt.attempt.to_string()),
            Cell::new(receipt.effect.as_str()),
            Cell::toned(tone(receipt.state), format!("{}{late}", receipt.state.as_str().replace('_', " "))),
            Cell::new(span::instant(receipt.intent_at)),
            Cell::or_dash(receipt.outcome_at.map(span::instant)),
            Cell::new(&receipt.key),
            Cell::new(receipt.id.to_string()),
            Cell::or_dash(bundle),
        ]);
    }
    table
}

const fn tone(state: ReceiptState) -> Tone {
    match state {
        ReceiptState::Succeeded => Tone::Good,
        ReceiptState::Failed => Tone::Bad,
        ReceiptState::InDoubt => Tone::Careful,
        ReceiptState::Intent => Tone::Plain,
    }
}
