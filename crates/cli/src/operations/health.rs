//! `interlock health`: whether a server is ready, for whatever starts and restarts it. An image without a shell has nothing
//! else to ask with.

use std::time::Duration;

use clap::Args;
use interlock_core::text::visible::visible;
use interlock_protocol::health::Health;
use interlock_protocol::problem::Problem;

use crate::client::{Client, ClientArgs};
use crate::output::exit::{Exit, ExitError};

/// A server that needs longer is not ready.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Args)]
pub struct HealthArgs {
    #[command(flatten)]
    client: ClientArgs,
}

pub async fn run(args: HealthArgs) -> anyhow::Result<()> {
    let mut target = args.client.server.target()?;
    // This needs no credential, so none leaves the machine.
    target.credential = None;
    let server = target.server.clone();
    let client = Client::new(target)?;
    let late = || ExitError::saying(Exit::Unavailable, format!("{server} has not answered within {ANSWER_TIMEOUT:?}"));
    let asked = async {
        let response = client.get("/readyz").open().await?;
        let status = response.status();
        Ok::<_, anyhow::Error>((status, response.bytes().await?))
    };
    let (status, answer) = tokio::time::timeout(ANSWER_TIMEOUT, asked).await.map_err(|_| late())??;
    if !status.is_success() {
        let problem = serde_json::from_slice::<Problem>(&answer).ok();
        let why = problem.map_or_else(String::new, |problem| format!(": {}", visible(&problem.detail)));
        let said = format!("{server} answers {status}: it is not ready{why}");
        return Err(ExitError::saying(Exit::Unavailable, said));
    }
    let foreign = |_| ExitError::saying(Exit::Unavailable, format!("{server} answers, and is not an Interlock server"));
    let health: Health = serde_json::from_slice(&answer).map_err(foreign)?;
    args.client.output.printer().show(&health, |_| {
        let mut lines = vec![format!("{server} is {}", health.status)];
        lines.extend(health.problems.iter().map(|problem| format!("  {problem}")));
        format!("{}\n", lines.join("\n"))
    })
}
