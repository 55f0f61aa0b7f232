//! `interlock audit erase`: what the log tells of a person goes, and the log still verifies.

use clap::Args;
use interlock_protocol::audit::{DetailsErased, EraseDetails, path};
use serde_json::json;

use crate::client::ClientArgs;
use crate::output::confirm::confirm;

#[derive(Debug, Args)]
pub struct AuditEraseArgs {
    /// The person's name, as the log has it.
    #[arg(long, value_name = "NAME")]
    person: String,
    /// Why; it stands in the log, without the person's name.
    #[arg(long)]
    reason: String,
    /// Do not ask.
    #[arg(long, short = 'y')]
    yes: bool,
}

pub async fn run(client: &ClientArgs, args: AuditEraseArgs) -> anyhow::Result<()> {
    let AuditEraseArgs { person, reason, yes } = args;
    let (client, printer) = client.open()?;
    confirm(yes, &format!("Erase for ever what the audit log tells of {person}?"))?;
    let mut body = EraseDetails { person, reason, from: None };
    let mut erased = 0;
    loop {
        let part: DetailsErased = client.post(path::ERASURES, &body).send().await?;
        erased += part.erased;
        match part.next {
            Some(next) => body.from = Some(next),
            None => break,
        }
    }
    let shown = json!({ "erased": erased });
    printer.show(&shown, |_| match erased {
        0 => "The log tells nothing of them; nothing was erased.".to_owned(),
        count => format!("{count} details erased. The log verifies as before: `interlock audit verify`."),
    })
}
