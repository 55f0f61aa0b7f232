//! `interlock webhook out`.

use clap::{Args, Subcommand};
use interlock_core::ids::OutboxId;
use interlock_core::time::Millis;
use interlock_core::trigger::EndpointState;
use interlock_protocol::runs::Nothing;
use interlock_protocol::webhooks::{
    Disable, Enable, MessageState, NewOutbound, OutboundDeliveryList, OutboundList, OutboundMade, OutboundView, Replay,
    Replayed, path,
};
use reqwest::Method;

use super::{DeleteArgs, EndpointArg, told};
use crate::client::{Client, fill};
use crate::output::layouts;
use crate::output::paint::Tone;
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};

#[derive(Subcommand)]
pub enum OutboundVerb {
    /// List them.
    List,
    /// Make one. Its secret is shown once.
    Create(CreateOutboundArgs),
    /// Give one another secret; for a day messages are signed with both.
    Rotate(EndpointArg),
    /// Send messages again, those that were missed included.
    Enable(EnableArgs),
    /// Hold messages back.
    Disable(DisableArgs),
    /// Remove one; what was on its way ends.
    Delete(DeleteArgs),
    /// List what was sent, with every try.
    Deliveries(EndpointArg),
    /// Send a delivery again, or those of the last minutes.
    Replay(DeliveryReplayArgs),
}

#[derive(Debug, Args)]
pub struct CreateOutboundArgs {
    /// Where messages are sent.
    #[arg(value_name = "URL")]
    url: String,
    /// A name for it, which takes the place of the id: `webhook:NAME` is where a task's message goes.
    #[arg(long)]
    name: Option<String>,
    /// What it is for, as lists show it.
    #[arg(long)]
    description: Option<String>,
    /// Only this event; `session.*` takes all of a kind. May be given several times.
    #[arg(long = "event", value_name = "NAME")]
    events: Vec<String>,
    /// Only runs of this workflow. May be given several times.
    #[arg(long = "workflow", value_name = "NAME")]
    workflows: Vec<String>,
}

#[derive(Debug, Args)]
pub struct EnableArgs {
    #[command(flatten)]
    named: EndpointArg,
    /// Leave out the events that happened while the endpoint was disabled.
    #[arg(long)]
    skip_missed: bool,
}

#[derive(Debug, Args)]
pub struct DisableArgs {
    #[command(flatten)]
    named: EndpointArg,
    /// Why; it stands with the endpoint.
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Debug, Args)]
pub struct DeliveryReplayArgs {
    #[command(flatten)]
    named: EndpointArg,
    /// The delivery.
    #[arg(long, value_name = "ID", required_unless_present = "last_minutes", conflicts_with = "last_minutes")]
    delivery: Option<OutboxId>,
    /// Everything that was queued in the last minutes.
    #[arg(long, value_name = "MINUTES")]
    last_minutes: Option<u64>,
    /// Of those, only what was given up.
    #[arg(long, requires = "last_minutes")]
    dead_only: bool,
}

pub async fn run(client: &Client, printer: Printer, verb: OutboundVerb) -> anyhow::Result<()> {
    match verb {
        OutboundVerb::List => list(client, printer).await,
        OutboundVerb::Create(args) => {
            let some = |list: Vec<String>| (!list.is_empty()).then_some(list);
            let (events, workflows) = (some(args.events), some(args.workflows));
            let new = NewOutbound { name: args.name, url: args.url, description: args.description, events, workflows };
            made(printer, &client.post(path::OUTBOUND, &new).send().await?)
        }
        OutboundVerb::Rotate(named) => {
            made(printer, &client.post(at(path::OUTBOUND_ROTATE, &named), &Nothing {}).send().await?)
        }
        OutboundVerb::Enable(args) => {
            let body = Enable { skip_missed: args.skip_missed };
            stands(printer, &client.post(at(path::OUTBOUND_ENABLE, &args.named), &body).send().await?)
        }
        OutboundVerb::Disable(args) => {
            let body = Disable { reason: args.reason };
            stands(printer, &client.post(at(path::OUTBOUND_DISABLE, &args.named), &body).send().await?)
        }
        OutboundVerb::Delete(DeleteArgs { named, sure }) => {
            sure.ask(&format!("Remove the endpoint `{}`?", named.name))?;
            client.call(Method::DELETE, at(path::OUTBOUND_ONE, &named)).done().await?;
            printer.show(&serde_json::json!({ "removed": named.name }), |_| format!("{} is removed", named.name))
        }
        OutboundVerb::Deliveries(named) => deliveries(client, printer, &named).await,
        OutboundVerb::Replay(args) => {
            let from = args.last_minutes.map(|minutes| span::now() - Millis::from_mins(minutes));
            let body = Replay { delivery_id: args.delivery, from, to: None, dead_only: args.dead_only };
            let replayed: Replayed = client.post(at(path::OUTBOUND_REPLAY, &args.named), &body).send().await?;
            printer.show(&replayed, |_| format!("{} queued", replayed.queued))
        }
    }
}

fn at(path: &str, named: &EndpointArg) -> String {
    fill(path, &[("endpoint", &named.name)])
}

async fn list(client: &Client, printer: Printer) -> anyhow::Result<()> {
    let list: OutboundList = client.get(path::OUTBOUND).send().await?;
    let table = |_| {
        let mut table = Table::of(&layouts::WEBHOOK_ENDPOINTS);
        for endpoint in &list.endpoints {
            let tone = if endpoint.state == EndpointState::Enabled { Tone::Good } else { Tone::Bad };
            table.row([
                Cell::new(endpoint.name.clone().unwrap_or_else(|| endpoint.endpoint_id.to_string())),
                Cell::new(&endpoint.url),
                Cell::new(endpoint.events.as_ref().map_or_else(|| "all".to_owned(), |events| events.join(", "))),
                Cell::toned(tone, endpoint.state.as_str()),
                Cell::or_dash(endpoint.note.as_ref()),
            ]);
        }
        table
    };
    printer.list(&list, table, "There are no outbound webhooks.")
}

fn made(printer: Printer, made: &OutboundMade) -> anyhow::Result<()> {
    printer.show(made, |_| {
        let OutboundView { endpoint_id, url, .. } = &made.endpoint;
        format!("{endpoint_id} sends to {url}\n{}", told(Some(&made.secret)))
    })
}

fn stands(printer: Printer, endpoint: &OutboundView) -> anyhow::Result<()> {
    printer.show(endpoint, |_| format!("{} is {}", endpoint.endpoint_id, endpoint.state))
}

async fn deliveries(client: &Client, printer: Printer, named: &EndpointArg) -> anyhow::Result<()> {
    let list: OutboundDeliveryList = client.get(at(path::OUTBOUND_DELIVERIES, named)).send().await?;
    let now = span::now();
    let table = |_| {
        let mut table = Table::of(&layouts::WEBHOOK_DELIVERIES);
        for delivery in &list.deliveries {
            let (state, tone) = match delivery.state {
                MessageState::Pending => ("pending", Tone::Plain),
                MessageState::Delivered => ("delivered", Tone::Good),
                MessageState::Dead => ("dead", Tone::Bad),
            };
            let last = delivery.attempts.last();
            let answer = last.map(|last| match (last.status, &last.error) {
                (Some(status), _) => status.to_string(),
                (None, Some(error)) => error.clone(),
                (None, None) => String::new(),
            });
            table.row([
                Cell::new(delivery.delivery_id.to_string()),
                Cell::new(&delivery.event),
                Cell::new(delivery.run_id.to_string()),
                Cell::new(span::away(delivery.created_at, now)),
                Cell::toned(tone, state),
                Cell::new(delivery.attempts.len().to_string()),
                Cell::or_dash(answer),
            ]);
        }
        table
    };
    printer.list(&list, table, "Nothing was sent.")
}
