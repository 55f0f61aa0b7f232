//! `--wait`: stays until a run has ended, and ends the way the run did.

use std::time::Duration;

use clap::Args;
use interlock_core::ids::RunId;
use interlock_core::state::RunState;
use interlock_core::time::Millis;
use interlock_protocol::runs::{RunView, path};
use tokio::time::{Instant, timeout_at};

use crate::client::{Client, fill};
use crate::output::exit::{Exit, ExitError};
use crate::output::{Printer, span};

/// How long one request waits; the next one goes on. Short enough that the user soon hears of a run that stands still.
const ROUND: Millis = Millis::from_secs(5);

#[derive(Debug, Clone, Copy, Args)]
pub struct WaitArgs {
    /// Stay until the run has ended; the exit code says how.
    #[arg(long)]
    pub wait: bool,
    /// Give up waiting after this long, such as 30s or 10m; the run goes on.
    #[arg(long, requires = "wait", value_name = "SPAN", value_parser = span::parse)]
    pub timeout: Option<Duration>,
}

/// Waits for the end of a run and prints it. Anything but `wanted` is not a success.
pub async fn until(
    client: &Client,
    printer: Printer,
    run: RunId,
    args: WaitArgs,
    wanted: RunState,
) -> anyhow::Result<()> {
    let deadline = args.timeout.map(|span| Instant::now() + span);
    let mut seen = None;
    let ended = async {
        loop {
            let call = client.get(fill(path::RUN, &[("run", &run)])).query("wait_ms", Some(ROUND.0));
            match call.waits(ROUND.as_duration()).send::<RunView>().await {
                Ok(view) if view.state.is_terminal() => return Ok(view),
                Ok(view) => {
                    if seen.replace(view.state) != Some(view.state) {
                        let state = view.state;
                        printer.note(&format!("{run} is {state}; waiting … `interlock run why {run}` says what for"));
                    }
                }
                // A server that restarts comes back; the run has not gone anywhere.
                Err(error) if error.is_transient() && seen.is_some() => {
                    printer.note(&format!("{error}; trying again …"));
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Err(error) => return Err(anyhow::Error::from(error)),
            }
        }
    };
    let view = match deadline {
        Some(deadline) => timeout_at(deadline, ended).await.unwrap_or_else(|_| {
            let still =
                format!("{run} has not ended in time; it goes on. `interlock run why {run}` says what it waits for");
            Err(ExitError::saying(Exit::TryLater, still))
        })?,
        None => ended.await?,
    };
    printer.show(&view, |paint| super::show::one_line(&view, paint))?;
    if view.state == wanted { Ok(()) } else { Err(ExitError::silently(Exit::Unsuccessful)) }
}
