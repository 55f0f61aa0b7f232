//! `interlock schedule create`.

use std::time::Duration;

use clap::Args;
use interlock_core::trigger::schedule::{DstPolicy, Overlap};
use interlock_protocol::schedules::{NewSchedule, ScheduleView, path};

use crate::client::Client;
use crate::identity::key::millis;
use crate::output::{Printer, span};
use crate::run::start::{InputArgs, inputs_of};

/// The same as where the API is told none.
const CATCH_UP_DEFAULT: &str = "1h";

#[derive(Debug, Args)]
pub struct CreateScheduleArgs {
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
    /// How old a slot may be that is made up for after an outage: `30m`, `1h`, `2d`; a bare number means seconds.
    #[arg(long, value_name = "SPAN", default_value = CATCH_UP_DEFAULT, value_parser = span::parse)]
    catch_up: Duration,
    /// Delay each slot by a random span up to this, as in `30s`.
    #[arg(long, value_name = "SPAN", default_value = "0s", value_parser = span::parse)]
    jitter: Duration,
    #[command(flatten)]
    inputs: InputArgs,
    /// The workspace that its runs belong to; `default` where omitted.
    #[arg(long, value_name = "NAME", value_parser = crate::client::workspace::name)]
    workspace: Option<String>,
    /// Make the schedule, and leave it paused.
    #[arg(long)]
    paused: bool,
}

pub async fn run(client: &Client, printer: Printer, args: CreateScheduleArgs) -> anyhow::Result<()> {
    let inputs = inputs_of(client, &args.workflow, None, &args.inputs).await?;
    let new = NewSchedule {
        name: args.name,
        workflow: args.workflow,
        cron: args.cron,
        timezone: args.timezone,
        dst: args.dst,
        overlap: args.overlap,
        catch_up_ms: millis(args.catch_up),
        jitter_ms: millis(args.jitter),
        inputs,
        workspace: args.workspace,
        paused: args.paused,
    };
    let made: ScheduleView = client.post(path::SCHEDULES, &new).send().await?;
    super::stands(printer, &made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_the_one_of_the_api() {
        let told = span::parse(CATCH_UP_DEFAULT).unwrap();
        assert_eq!(millis(told), interlock_core::trigger::schedule::CATCH_UP_DEFAULT);
    }
}
