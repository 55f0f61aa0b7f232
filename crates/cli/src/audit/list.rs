//! `interlock audit list`.

use clap::Args;
use interlock_core::ids::RunId;
use interlock_evidence::export::LoggedEntry;
use interlock_protocol::audit::{AuditPageView, path};

use crate::client::ClientArgs;
use crate::output::layouts;
use crate::output::span;
use crate::output::table::{Cell, Table};

#[derive(Debug, Args)]
pub struct AuditListArgs {
    /// Entries about this run.
    #[arg(long)]
    run: Option<RunId>,
    /// Entries with this event: a name, or its first words (`approval` finds `approval.voted`).
    #[arg(long = "type", value_name = "NAME")]
    kind: Option<String>,
    /// Entries by this person.
    #[arg(long, value_name = "PERSON")]
    actor: Option<String>,
    /// How many to show at most.
    #[arg(long, short = 'n', default_value_t = 50, value_parser = crate::run::filter::limit)]
    limit: usize,
}

pub async fn run(client: &ClientArgs, args: AuditListArgs) -> anyhow::Result<()> {
    let (client, printer) = client.open()?;
    let call = client.get(path::AUDIT).query("order", Some("newest")).query("limit", Some(args.limit));
    let call = call.query("run", args.run).query("type", args.kind).query("actor", args.actor);
    let page: AuditPageView = call.send().await?;
    let now = span::now();
    let mut entries: Vec<LoggedEntry> = Vec::with_capacity(page.entries.len());
    for entry in &page.entries {
        entries.push(entry.decode()?);
    }
    let table = |_| {
        let mut table = Table::of(&layouts::AUDIT);
        for logged in &entries {
            let body = &logged.entry.body;
            let actor = logged.opened.as_ref().and_then(|opened| opened.actor.clone());
            let about = body.run.map(|run| run.to_string()).or_else(|| body.subject.clone());
            table.row([
                Cell::new(logged.entry.index.to_string()),
                Cell::new(span::away(body.at, now)),
                Cell::new(body.types.join(", ")),
                Cell::new(actor.unwrap_or_else(|| body.initiator.clone())),
                Cell::or_dash(about.as_ref()),
            ]);
        }
        table
    };
    printer.list(&page, table, "No entry of the audit log matches.")?;
    if let Some(next) = page.next {
        printer.note(&format!("The log goes on below entry {}; narrow the search, or raise --limit.", next + 1));
    }
    Ok(())
}
