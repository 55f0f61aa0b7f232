//! `interlock flag`: parts of the product that are switched on for each tenant.

use clap::builder::PossibleValuesParser;
use clap::{ArgAction, Args, Subcommand};
use interlock_core::tenant::{FLAGS, TASK_WORKSPACE, WORKER_BROKER, WORKER_CHANNEL, WORKER_ORCHESTRATION};
use interlock_protocol::identity::{ChangeTenant, Me, TenantView, path};
use reqwest::Method;
use serde::Serialize;

use crate::client::{Client, ClientArgs, fill};
use crate::output::Printer;
use crate::output::layouts;
use crate::output::paint::Tone;
use crate::output::table::{Cell, Table};

#[derive(Args)]
pub struct FlagArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    verb: FlagVerb,
}

#[derive(Subcommand)]
enum FlagVerb {
    /// List the flags, and which are on for your tenant.
    List,
    /// Switch a flag on or off for your tenant.
    Set {
        /// Which one.
        #[arg(value_parser = PossibleValuesParser::new(FLAGS.iter().copied()))]
        flag: String,
        /// `true` or `false`.
        #[arg(action = ArgAction::Set)]
        on: bool,
    },
}

#[derive(Serialize)]
struct Flag {
    flag: &'static str,
    on: bool,
}

pub async fn run(args: FlagArgs) -> anyhow::Result<()> {
    let (client, printer) = args.client.open()?;
    let me: Me = client.get(path::ME).send().await?;
    match args.verb {
        FlagVerb::List => list(printer, &me.flags),
        FlagVerb::Set { flag, on } => set(&client, printer, &me, (&flag, on)).await,
    }
}

async fn set(client: &Client, printer: Printer, me: &Me, (flag, on): (&str, bool)) -> anyhow::Result<()> {
    let mut change = ChangeTenant::default();
    match flag {
        TASK_WORKSPACE => change.task_workspace = Some(on),
        WORKER_BROKER => change.worker_broker = Some(on),
        WORKER_CHANNEL => change.worker_channel = Some(on),
        WORKER_ORCHESTRATION => change.worker_orchestration = Some(on),
        other => anyhow::bail!("`{other}` is no flag; `interlock flag list` names them"),
    }
    let path = fill(path::TENANT, &[("tenant", &me.tenant)]);
    let tenant: TenantView = client.call(Method::PATCH, path).body(&change).send().await?;
    list(printer, &tenant.settings.flags())
}

fn list(printer: Printer, on: &[String]) -> anyhow::Result<()> {
    let flags: Vec<Flag> = FLAGS.iter().map(|flag| Flag { flag, on: on.iter().any(|name| name == flag) }).collect();
    let table = || {
        let mut table = Table::of(&layouts::FLAGS);
        for Flag { flag, on } in &flags {
            let state = if *on { Cell::toned(Tone::Good, "on") } else { Cell::toned(Tone::Dim, "off") };
            table.row([Cell::new(*flag), state]);
        }
        table
    };
    printer.list(&flags, |_| table(), "There are no flags.")
}
