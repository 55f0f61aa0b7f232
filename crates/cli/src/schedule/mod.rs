//! `interlock schedule`: what starts workflows at times.

mod create;
mod show;

use clap::{Args, Subcommand};
use interlock_protocol::runs::Started;
use interlock_protocol::schedules::{PauseSchedule, ScheduleDetail, ScheduleList, ScheduleView, Upcoming, path};
use reqwest::Method;

use crate::client::{Client, ClientArgs, fill};
use crate::output::confirm::ConfirmArgs;
use crate::output::layouts;
use crate::output::paint::Tone;
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};
use crate::run::start::not_started;

#[derive(Args)]
pub struct ScheduleArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    verb: ScheduleVerb,
}

#[derive(Subcommand)]
enum ScheduleVerb {
    /// List schedules by name.
    List,
    /// Show a schedule and what became of its latest slots.
    Show(ScheduleArg),
    /// Make a schedule.
    Create(create::CreateScheduleArgs),
    /// Pause a schedule; slots that pass meanwhile are left out.
    Pause(PauseArgs),
    /// Resume a schedule; slots count from now on.
    Resume(ScheduleArg),
    /// Remove a schedule. Its runs stay.
    Delete {
        #[command(flatten)]
        named: ScheduleArg,
        #[command(flatten)]
        sure: ConfirmArgs,
    },
    /// Start a run of a schedule now, whatever the clock says.
    Trigger(TriggerArgs),
    /// Show the next slots in the schedule's zone and in UTC.
    Next(NextArgs),
}

#[derive(Debug, Args)]
struct ScheduleArg {
    /// The schedule's name or id.
    #[arg(value_name = "NAME")]
    name: String,
}

#[derive(Debug, Args)]
struct PauseArgs {
    #[command(flatten)]
    named: ScheduleArg,
    /// Why; it stands with the schedule.
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Debug, Args)]
struct TriggerArgs {
    #[command(flatten)]
    named: ScheduleArg,
    /// Your own name for this request: the same one again makes no second run.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

#[derive(Debug, Args)]
struct NextArgs {
    #[command(flatten)]
    named: ScheduleArg,
    /// How many, 1 to 100.
    #[arg(long, short = 'n', default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    count: u32,
}

pub async fn run(args: ScheduleArgs) -> anyhow::Result<()> {
    let (client, printer) = args.client.open()?;
    match args.verb {
        ScheduleVerb::List => list(&client, printer).await,
        ScheduleVerb::Show(named) => show::run(&client, printer, &named.name).await,
        ScheduleVerb::Create(args) => create::run(&client, printer, args).await,
        ScheduleVerb::Pause(args) => {
            let body = PauseSchedule { reason: args.reason };
            stands(printer, &client.post(at(path::PAUSE, &args.named), &body).send().await?)
        }
        ScheduleVerb::Resume(named) => {
            stands(printer, &client.call(Method::POST, at(path::RESUME, &named)).send().await?)
        }
        ScheduleVerb::Delete { named, sure } => {
            sure.ask(&format!("Remove the schedule `{}`?", named.name))?;
            client.call(Method::DELETE, at(path::SCHEDULE, &named)).done().await?;
            printer.show(&serde_json::json!({ "removed": named.name }), |_| format!("{} is removed", named.name))
        }
        ScheduleVerb::Trigger(args) => trigger(&client, printer, args).await,
        ScheduleVerb::Next(args) => next(&client, printer, args).await,
    }
}

fn at(path: &str, named: &ScheduleArg) -> String {
    fill(path, &[("schedule", &named.name)])
}

async fn list(client: &Client, printer: Printer) -> anyhow::Result<()> {
    let mut schedules: Vec<ScheduleView> = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page: ScheduleList = client.get(path::SCHEDULES).query("after", after).send().await?;
        schedules.extend(page.schedules);
        after = page.next_after;
        if after.is_none() {
            break;
        }
    }
    let now = span::now();
    let table = |_| {
        let mut table = Table::of(&layouts::SCHEDULES);
        for schedule in &schedules {
            let next = match &schedule.next {
                _ if schedule.paused => Cell::toned(Tone::Dim, "paused"),
                Some(next) => Cell::new(span::away(next.starts_at, now)),
                None => Cell::toned(Tone::Dim, "-"),
            };
            table.row([
                Cell::new(&schedule.name),
                Cell::new(&schedule.workflow),
                Cell::new(&schedule.cron),
                Cell::new(&schedule.timezone),
                Cell::new(schedule.overlap.as_str()),
                next,
                Cell::or_dash(schedule.last_run_id.map(|run| run.to_string())),
            ]);
        }
        table
    };
    printer.list(&schedules, table, "There are no schedules.")
}

fn stands(printer: Printer, schedule: &ScheduleView) -> anyhow::Result<()> {
    printer.show(schedule, |_| match &schedule.next {
        _ if schedule.paused => format!("{} is paused", schedule.name),
        Some(next) => format!("{} runs next at {} ({})", schedule.name, next.local, next.utc),
        None => format!("{} has no slot to come", schedule.name),
    })
}

async fn trigger(client: &Client, printer: Printer, args: TriggerArgs) -> anyhow::Result<()> {
    let key = args.idempotency_key.unwrap_or_else(|| format!("cli-{:032x}", fastrand::u128(..)));
    let call = client.call(Method::POST, at(path::TRIGGER, &args.named)).idempotency_key(&key);
    let started: Started = call.send().await.map_err(|error| not_started(error, &key))?;
    printer.show(&started, |_| format!("{} started", started.run_id))
}

async fn next(client: &Client, printer: Printer, args: NextArgs) -> anyhow::Result<()> {
    let call = client.get(at(path::NEXT, &args.named)).query("count", Some(args.count));
    let upcoming: Upcoming = call.send().await?;
    let schedule: ScheduleDetail = client.get(at(path::SCHEDULE, &args.named)).send().await?;
    if schedule.schedule.paused {
        let name = &upcoming.name;
        printer.note(&format!(
            "{name} is paused: none of these slots starts a run before `interlock schedule resume {name}`."
        ));
    }
    let now = span::now();
    let table = |_| {
        let mut table = Table::of(&layouts::SLOTS);
        for slot in &upcoming.slots {
            table.row([Cell::new(&slot.local), Cell::new(&slot.utc), Cell::new(span::away(slot.starts_at, now))]);
        }
        table
    };
    printer.list(&upcoming, table, "It has no slot to come.")
}
