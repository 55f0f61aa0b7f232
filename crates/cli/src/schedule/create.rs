//! `interlock schedule create`.

use clap::Args;
use interlock_core::json::Json;
use interlock_core::schedule::{CATCH_UP_DEFAULT, DstPolicy, Overlap};
use interlock_core::time::Millis;
use interlock_protocol::schedules::{NewSchedule, ScheduleView, path};

use crate::client::Client;
use crate::output::Printer;
use crate::run::start::json;

#[derive(Debug, Args)]
pub struct CreateArgs {
    /// The schedule's name, unique in the tenant.
    #[arg(value_name = "NAME")]
    name: String,
    /// The workflow whose newest version is started.
    #[arg(long)]
    workflow: String,
    /// Minute, hour, day of month, month, day of week: `0 3 * * 1` is Mondays at 3:00. Seconds may stand in front.
    #[arg(long)]
    cron: String,
    /// An IANA time zone.
    #[arg(long, default_value = "UTC", value_name = "ZONE")]
    timezone: String,
    /// What a change of the clocks does to a slot: skip, once, twice.
    #[arg(long, default_value = "once")]
    dst: DstPolicy,
    /// What happens while the run before has not ended: allow, skip, queue, cancel_previous.
    #[arg(long, default_value = "skip")]
    overlap: Overlap,
    /// How old a slot may be that is made up for after an outage, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = CATCH_UP_DEFAULT.0 / 1_000)]
    catch_up: u64,
    /// Delay each slot by a span up to this, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    jitter: u64,
    /// What its runs are given: JSON, `@FILE`, or `-` for stdin.
    #[arg(long, value_name = "JSON")]
    inputs: Option<String>,
    #[arg(long)]
    workspace: Option<String>,
    /// Make it, but let it rest.
    #[arg(long)]
    paused: bool,
}

pub async fn run(client: &Client, printer: Printer, args: CreateArgs) -> anyhow::Result<()> {
    let inputs = match &args.inputs {
        Some(given) => json(given)?,
        None => Json::trusted("{}"),
    };
    let new = NewSchedule {
        name: args.name,
        workflow: args.workflow,
        cron: args.cron,
        timezone: args.timezone,
        dst: args.dst,
        overlap: args.overlap,
        catch_up_ms: Millis::from_secs(args.catch_up),
        jitter_ms: Millis::from_secs(args.jitter),
        inputs,
        workspace: args.workspace,
        paused: args.paused,
    };
    let made: ScheduleView = client.post(path::SCHEDULES, &new).send().await?;
    super::stands(printer, &made)
}
