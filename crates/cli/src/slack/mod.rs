//! `interlock slack`: where people are asked for approvals in Slack, and who is who there.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use interlock_protocol::identity::limits;
use interlock_protocol::slack::{PutSlackConnection, SlackLinkList, SlackLinkView, SlackView, path};
use interlock_server::private_file;
use reqwest::Method;

use crate::client::{Client, ClientArgs, fill};
use crate::output::confirm::ConfirmArgs;
use crate::output::layouts;
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};

#[derive(Args)]
pub struct SlackArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    verb: SlackVerb,
}

#[derive(Subcommand)]
enum SlackVerb {
    /// Show the connection.
    Show,
    /// Connect to a Slack workspace, or change the connection.
    Connect(Box<ConnectArgs>),
    /// Disconnect from Slack: people are not asked there any more.
    Disconnect(ConfirmArgs),
    /// List which person is which Slack user.
    Links,
    /// Unlink a person from their Slack user: they decide nothing in Slack until they link themselves again.
    Unlink(UnlinkArgs),
}

/// A secret never stands in the arguments, where every process can read it.
#[derive(Debug, Args)]
struct ConnectArgs {
    /// Slack's own id of the workspace: `T…`.
    #[arg(long, value_name = "ID")]
    team: String,
    /// Slack's own id of the Enterprise organization that it belongs to: `E…`.
    #[arg(long, value_name = "ID")]
    enterprise: Option<String>,
    /// The channel in which people are asked: `C…`. The app has to be a member.
    #[arg(long, value_name = "ID")]
    channel: String,
    /// The channel that is told when no decision is made in time: `C…`.
    #[arg(long, value_name = "ID")]
    escalation_channel: Option<String>,
    /// A file that holds the app's bot token (`xoxb-…`); without it the token stays.
    #[arg(long, value_name = "FILE")]
    bot_token_file: Option<PathBuf>,
    /// A file that holds the app's signing secret; without it the secret stays.
    #[arg(long, value_name = "FILE")]
    signing_secret_file: Option<PathBuf>,
    /// A file that holds the routing key of a PagerDuty integration (Events API v2); an empty file takes it away.
    #[arg(long, value_name = "FILE")]
    pagerduty_key_file: Option<PathBuf>,
    /// In production: how long an approval is open before the next step of its escalation, as in `10m`.
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    rung_prod: Option<Duration>,
    /// In other environments: how long an approval is open before the next step of its escalation, as in `30m`.
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    rung_other: Option<Duration>,
}

#[derive(Debug, Args)]
struct UnlinkArgs {
    /// The person's name.
    #[arg(value_name = "PERSON")]
    person: String,
    #[command(flatten)]
    sure: ConfirmArgs,
}

pub async fn run(args: SlackArgs) -> anyhow::Result<()> {
    let (client, printer) = args.client.open()?;
    match args.verb {
        SlackVerb::Show => shown(printer, &client.get(path::SLACK).send().await?),
        SlackVerb::Connect(args) => connect(&client, printer, *args).await,
        SlackVerb::Disconnect(sure) => {
            sure.ask("Disconnect from Slack? All links of people go with it.")?;
            client.call(Method::DELETE, path::SLACK.to_owned()).done().await?;
            printer.show(&serde_json::json!({ "connected": false }), |_| "Slack is disconnected\n".to_owned())
        }
        SlackVerb::Links => links(&client, printer).await,
        SlackVerb::Unlink(UnlinkArgs { person, sure }) => {
            sure.ask(&format!("Unlink {person} from Slack?"))?;
            client.call(Method::DELETE, fill(path::LINK, &[("person", &person)])).done().await?;
            printer.show(&serde_json::json!({ "unlinked": person }), |_| format!("{person} decides nothing in Slack\n"))
        }
    }
}

async fn connect(client: &Client, printer: Printer, args: ConnectArgs) -> anyhow::Result<()> {
    let body = PutSlackConnection {
        team: args.team,
        enterprise: args.enterprise,
        channel: args.channel,
        escalation_channel: args.escalation_channel,
        bot_token: args.bot_token_file.as_deref().map(read).transpose()?,
        signing_secret: args.signing_secret_file.as_deref().map(read).transpose()?,
        pagerduty_routing_key: args.pagerduty_key_file.as_deref().map(read).transpose()?,
        rung_prod_s: args.rung_prod.map(|span| span.as_secs()),
        rung_other_s: args.rung_other.map(|span| span.as_secs()),
    };
    shown(printer, &client.call(Method::PUT, path::SLACK.to_owned()).body(&body).send().await?)
}

fn read(path: &Path) -> anyhow::Result<String> {
    let text = private_file::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn shown(printer: Printer, view: &SlackView) -> anyhow::Result<()> {
    printer.show(view, |_| {
        let escalation = view.escalation_channel.as_deref().unwrap_or("no channel");
        let pager = if view.pagerduty { "paged" } else { "not paged" };
        let minutes = |seconds: u64| seconds / 60;
        format!(
            "People of team {} are asked in {}\nWithout a decision: {escalation} is told, on-call is {pager}, {} min \
             apart in production and {} min elsewhere\nRequest URL for the app's Interactivity: {}\n",
            view.team,
            view.channel,
            minutes(view.rung_prod_s),
            minutes(view.rung_other_s),
            view.interactions_url
        )
    })
}

async fn links(client: &Client, printer: Printer) -> anyhow::Result<()> {
    let mut links: Vec<SlackLinkView> = Vec::new();
    let mut after = None;
    loop {
        let call = client.get(path::LINKS).query("limit", Some(limits::PAGE_MAX));
        let page: SlackLinkList = call.query("after", after).send().await?;
        links.extend(page.links);
        after = page.next_after;
        if after.is_none() {
            break;
        }
    }
    let table = |_| {
        let mut table = Table::of(&layouts::SLACK_LINKS);
        for link in &links {
            let since = Cell::new(span::instant(link.linked_at));
            table.row([Cell::new(&link.person), Cell::new(&link.user), Cell::new(&link.team), since]);
        }
        table
    };
    printer.list(&links, table, "No person is linked.")
}
