//! `interlock webhook in`.

use clap::{Args, Subcommand};
use interlock_core::ids::RunId;
use interlock_core::trigger::Source;
use interlock_protocol::webhooks::{
    ChangeInbound, DeliveredRun, InboundDelivery, InboundDeliveryList, InboundList, InboundMade, InboundView,
    MissedTrigger, NewInbound, Rotate, SkippedRun, path,
};
use reqwest::Method;
use serde::Deserialize;

use super::{DeleteArgs, EndpointArg, SigningSecretArgs, told};
use crate::client::{Client, fill};
use crate::output::exit::{Exit, ExitError};
use crate::output::layouts;
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};

#[derive(Subcommand)]
pub enum InboundVerb {
    /// List them.
    List,
    /// Make one, and say where senders send to.
    Create(CreateInboundArgs),
    /// Give one another secret; the one before counts for another day.
    Rotate(RotateArgs),
    /// Take nothing for a while.
    Pause(EndpointArg),
    /// Take webhooks again.
    Resume(EndpointArg),
    /// Remove one.
    Delete(DeleteArgs),
    /// List what came in, and what became of it.
    Deliveries(EndpointArg),
}

#[derive(Debug, Args)]
pub struct CreateInboundArgs {
    /// Its name, by which `on.webhook.endpoint` of a workflow finds it.
    #[arg(value_name = "NAME")]
    name: String,
    /// Who sends: github, slack, servicenow, standard, generic.
    #[arg(long)]
    source: Source,
    /// Where a generic sender puts its signature.
    #[arg(long)]
    header: Option<String>,
    /// GitHub: take the same pull request, event, action and head within 5 s as several deliveries.
    #[arg(long)]
    no_secondary: bool,
    #[command(flatten)]
    secret: SigningSecretArgs,
}

#[derive(Debug, Args)]
pub struct RotateArgs {
    #[command(flatten)]
    named: EndpointArg,
    #[command(flatten)]
    secret: SigningSecretArgs,
}

pub async fn run(client: &Client, printer: Printer, verb: InboundVerb) -> anyhow::Result<()> {
    match verb {
        InboundVerb::List => list(client, printer).await,
        InboundVerb::Create(args) => {
            let secret = args.secret.read()?;
            if args.source == Source::Slack && secret.is_none() {
                let what = "Slack signs with a secret of its own: give it with --secret-file; it stands at \
                            api.slack.com/apps, under Basic Information, as Signing Secret";
                return Err(ExitError::saying(Exit::Usage, what));
            }
            let (name, source, header) = (args.name, args.source, args.header);
            let new = NewInbound { name, source, header, secondary: !args.no_secondary, secret };
            made(client, printer, &client.post(path::INBOUND, &new).send().await?)
        }
        InboundVerb::Rotate(args) => {
            let body = Rotate { secret: args.secret.read()? };
            made(client, printer, &client.post(at(path::INBOUND_ROTATE, &args.named), &body).send().await?)
        }
        InboundVerb::Pause(named) => change(client, printer, &named, true).await,
        InboundVerb::Resume(named) => change(client, printer, &named, false).await,
        InboundVerb::Delete(DeleteArgs { named, sure }) => {
            sure.ask(&format!("Remove the endpoint `{}`?", named.name))?;
            client.call(Method::DELETE, at(path::INBOUND_ONE, &named)).done().await?;
            printer.show(&serde_json::json!({ "removed": named.name }), |_| format!("{} is removed", named.name))
        }
        InboundVerb::Deliveries(named) => deliveries(client, printer, &named).await,
    }
}

fn at(path: &str, named: &EndpointArg) -> String {
    fill(path, &[("endpoint", &named.name)])
}

async fn list(client: &Client, printer: Printer) -> anyhow::Result<()> {
    let list: InboundList = client.get(path::INBOUND).send().await?;
    let table = |_| {
        let mut table = Table::of(&layouts::WEBHOOKS_IN);
        for endpoint in &list.endpoints {
            let state = if endpoint.paused { "paused" } else { "open" };
            let source = endpoint.source.as_str();
            table.row([Cell::new(&endpoint.name), Cell::new(source), Cell::new(&endpoint.path), Cell::new(state)]);
        }
        table
    };
    printer.list(&list, table, "No webhooks are taken.")
}

fn made(client: &Client, printer: Printer, made: &InboundMade) -> anyhow::Result<()> {
    printer.show(made, |_| {
        let InboundView { name, path, .. } = &made.endpoint;
        // The address under which this command has reached the server; a sender elsewhere may know it by another name.
        let server = &client.target().server;
        format!("{name} takes webhooks at {server}{path}\n{}", told(made.secret.as_deref()))
    })
}

async fn change(client: &Client, printer: Printer, named: &EndpointArg, paused: bool) -> anyhow::Result<()> {
    let body = ChangeInbound { paused: Some(paused), secondary: None };
    let view: InboundView = client.call(Method::PATCH, at(path::INBOUND_ONE, named)).body(&body).send().await?;
    let word = if paused { "takes nothing for now" } else { "takes webhooks" };
    printer.show(&view, |_| format!("{} {word}", view.name))
}

async fn deliveries(client: &Client, printer: Printer, named: &EndpointArg) -> anyhow::Result<()> {
    let list: InboundDeliveryList = client.get(at(path::INBOUND_DELIVERIES, named)).send().await?;
    let now = span::now();
    let table = |_| {
        let mut table = Table::of(&layouts::WEBHOOK_ARRIVALS);
        for delivery in &list.deliveries {
            table.row([
                Cell::new(&delivery.delivery),
                Cell::new(&delivery.event),
                Cell::new(span::away(delivery.received_at, now)),
                Cell::new(delivery.status.as_str()),
                Cell::or_dash(outcome(delivery)),
            ]);
        }
        table
    };
    printer.list(&list, table, "Nothing came in.")
}

/// The answer to a delivery, as far as it is told in a line.
#[derive(Deserialize)]
struct DeliveryOutcome {
    #[serde(default)]
    duplicate_of: Option<String>,
    #[serde(default)]
    runs: Vec<DeliveredRun>,
    #[serde(default)]
    skipped: Vec<SkippedRun>,
    #[serde(default)]
    missed: Vec<MissedTrigger>,
}

/// What became of a delivery, in a line: the runs that it started, or why it started none.
fn outcome(delivery: &InboundDelivery) -> Option<String> {
    if let Some(error) = &delivery.error {
        return Some(format!("failed: {error}"));
    }
    let answer = delivery.answer.as_ref()?;
    let Ok(outcome) = answer.decode::<DeliveryOutcome>() else { return Some(answer.as_str().to_owned()) };
    if let Some(earlier) = outcome.duplicate_of {
        return Some(format!("duplicate of {earlier}"));
    }
    let runs: Vec<String> =
        outcome.runs.iter().map(|run| format!("{} of {}", short(run.run_id), run.workflow)).collect();
    let skipped = outcome.skipped.iter().map(|skipped| format!("{}: {}", skipped.workflow, skipped.reason));
    let missed = outcome.missed.iter().map(|missed| format!("{}: {}", missed.workflow, missed.detail));
    let mut reasons = skipped.chain(missed);
    if !runs.is_empty() {
        let not = reasons.next().map_or_else(String::new, |first| format!("; not {first}"));
        return Some(format!("started {}{not}", runs.join(", ")));
    }
    let first = reasons.next().unwrap_or_else(|| "no workflow has a trigger for it".to_owned());
    let more = match reasons.count() {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    Some(format!("started nothing: {first}{more}"))
}

/// `…c3d4e5f6` of `run_…c3d4e5f6`, which commands take for the whole id.
fn short(run: RunId) -> String {
    let id = run.to_string();
    format!("…{}", &id[id.len() - 8..])
}

#[cfg(test)]
mod tests {
    use interlock_core::json::Json;
    use interlock_core::state::IdempotencyState;
    use interlock_core::time::Timestamp;

    use super::*;

    fn told(answer: &str) -> String {
        let delivery = InboundDelivery {
            delivery: "d-1".into(),
            event: "push".into(),
            received_at: Timestamp(0),
            status: IdempotencyState::Completed,
            attempts: 1,
            answer: Some(Json::trusted(answer)),
            error: None,
        };
        outcome(&delivery).unwrap()
    }

    #[test]
    fn an_answer_is_told_in_words() {
        let run = RunId::from_bytes([0xab; 16]);
        let started = format!(r#"{{"delivery":"d-1","runs":[{{"workflow":"deploy","run_id":"{run}"}}],"skipped":[]}}"#);
        assert_eq!(told(&started), "started …abababab of deploy");
        assert_eq!(told(r#"{"delivery":"d-2","duplicate_of":"d-1","runs":[],"skipped":[]}"#), "duplicate of d-1");
        let missed = r#"{"delivery":"d-1","runs":[],"skipped":[],"missed":[
            {"workflow":"deploy","on":"github","failed":"event","detail":"the event is `push`, and not `release`"},
            {"workflow":"check","on":"github","failed":"filter","detail":"the filter does not hold: false"}]}"#;
        assert_eq!(told(missed), "started nothing: deploy: the event is `push`, and not `release`; and 1 more");
        assert_eq!(told(r#"{"delivery":"d-1"}"#), "started nothing: no workflow has a trigger for it");
        assert_eq!(told("[1]"), "[1]", "what a later server answers is shown as it is");
    }
}
