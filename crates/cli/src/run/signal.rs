//! `interlock run signal`: a message for a run that waits for one.

use clap::Args;
use interlock_core::json::Json;
use interlock_protocol::runs::{RunSignal, Signaled, path};

use super::start::json;
use super::{RunArg, find};
use crate::client::{Client, fill};
use crate::output::Printer;

#[derive(Debug, Args)]
pub struct SignalArgs {
    #[command(flatten)]
    run: RunArg,
    /// The signal's type, as the workflow names it.
    #[arg(value_name = "TYPE")]
    signal: String,
    /// What it carries: JSON, `@FILE`, or `-` for stdin.
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// Your own id for it: the same one again is dropped.
    #[arg(long, value_name = "ID")]
    source_id: Option<String>,
}

pub async fn run(client: &Client, printer: Printer, args: SignalArgs) -> anyhow::Result<()> {
    let run = find::run(client, &args.run.run).await?;
    let payload = args.payload.as_deref().map(json).transpose()?.unwrap_or_else(Json::null);
    let body = RunSignal { signal: args.signal, payload, source_id: args.source_id };
    let signaled: Signaled = client.post(fill(path::RUN_SIGNALS, &[("run", &run)]), &body).send().await?;
    printer.show(&signaled, |_| match signaled.signal_id {
        Some(id) => format!("{id} sent\n"),
        None => "that signal came before; nothing was sent\n".to_owned(),
    })
}
