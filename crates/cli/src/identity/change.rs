//! `interlock change`: changes of the policy or of who has access that a second admin must agree to.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use interlock_core::ids::ChangeId;
use interlock_core::text::visible::visible;
use interlock_protocol::changes::{ChangeList, ChangeView, DecideChange, path};
use interlock_protocol::identity::limits;

use crate::client::{Client, ClientArgs, fill};
use crate::output::layouts;
use crate::output::paint::Tone;
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};

#[derive(Args)]
pub struct ChangeArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    verb: ChangeVerb,
}

#[derive(Subcommand)]
enum ChangeVerb {
    /// List changes that wait for a second admin, newest first.
    List {
        /// Also those that are decided on or over.
        #[arg(long)]
        all: bool,
    },
    /// Show a change: what exactly was asked for, by whom.
    Show {
        /// Its id (`interlock change list`).
        #[arg(value_name = "CHANGE")]
        which: ChangeId,
    },
    /// Agree to a change that another admin has asked for. That admin carries it out after that.
    Approve {
        /// Its id (`interlock change list`).
        #[arg(value_name = "CHANGE")]
        which: ChangeId,
        /// Stands beside the decision.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Refuse a change.
    Reject {
        /// Its id (`interlock change list`).
        #[arg(value_name = "CHANGE")]
        which: ChangeId,
        /// Why.
        #[arg(long)]
        reason: String,
    },
}

pub async fn run(args: ChangeArgs) -> anyhow::Result<()> {
    let (client, printer) = args.client.open()?;
    match args.verb {
        ChangeVerb::List { all } => list(&client, printer, all).await,
        ChangeVerb::Show { which } => {
            let shown: ChangeView = client.get(fill(path::CHANGE, &[("change", &which)])).send().await?;
            show(printer, &shown)
        }
        ChangeVerb::Approve { which, reason } => decide(&client, printer, which, true, reason).await,
        ChangeVerb::Reject { which, reason } => decide(&client, printer, which, false, Some(reason)).await,
    }
}

async fn decide(
    client: &Client,
    printer: Printer,
    which: ChangeId,
    approve: bool,
    notes: Option<String>,
) -> anyhow::Result<()> {
    let word = DecideChange { approve, notes };
    let decided: ChangeView = client.post(fill(path::DECISION, &[("change", &which)]), &word).send().await?;
    show(printer, &decided)?;
    if approve {
        printer.note(&format!(
            "{} carries it out within an hour: the same command again, with --change {which}",
            visible(&decided.asked_by)
        ));
    }
    Ok(())
}

async fn list(client: &Client, printer: Printer, all: bool) -> anyhow::Result<()> {
    let mut changes: Vec<ChangeView> = Vec::new();
    let mut after = None;
    loop {
        let call = client.get(path::CHANGES).query("all", all.then_some(true));
        let page: ChangeList = call.query("limit", Some(limits::PAGE_MAX)).query("after", after).send().await?;
        changes.extend(page.changes);
        after = page.next_after;
        if after.is_none() {
            break;
        }
    }
    printer.list(&changes, |_| table(&changes), "No change waits for a second admin.")
}

fn table(changes: &[ChangeView]) -> Table {
    let mut table = Table::of(&layouts::CHANGES);
    for change in changes {
        table.row([
            Cell::new(change.change.to_string()),
            Cell::toned(tone(&change.state), &change.state),
            Cell::new(format!("{} {}", change.method, change.path)),
            Cell::new(&change.asked_by),
            Cell::new(span::instant(change.asked_at)),
            Cell::new(span::instant(change.expires_at)),
        ]);
    }
    table
}

fn tone(state: &str) -> Tone {
    match state {
        "requested" => Tone::Careful,
        "approved" | "used" => Tone::Good,
        "rejected" => Tone::Bad,
        _ => Tone::Dim,
    }
}

fn show(printer: Printer, change: &ChangeView) -> anyhow::Result<()> {
    printer.show(change, |paint| {
        let body = change.body.to_value().ok().and_then(|body| serde_json::to_string_pretty(&body).ok());
        let body = body.unwrap_or_else(|| change.body.as_str().to_owned());
        let mut text = format!(
            "{}  {}\nrequest   {} {}\nasked by  {}, {}\nuntil     {}\n",
            paint.bold(change.change),
            paint.tone(tone(&change.state), &change.state),
            change.method,
            visible(&change.path),
            visible(&change.asked_by),
            span::instant(change.asked_at),
            span::instant(change.expires_at),
        );
        if let (Some(by), Some(at)) = (&change.decided_by, change.decided_at) {
            let notes = change.notes.as_deref().map(|notes| format!(": {}", visible(notes))).unwrap_or_default();
            let _ = writeln!(text, "decided   {}, {}{notes}", visible(by), span::instant(at));
        }
        for line in body.lines() {
            let _ = writeln!(text, "  {}", visible(line));
        }
        text
    })
}
