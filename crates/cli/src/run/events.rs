//! `interlock events`: what happens in all runs, or in one.

use clap::Args;
use interlock_core::text::visible::visible;
use interlock_protocol::live::{FeedPage, path};
use interlock_protocol::runs::{self, EventList};

use crate::client::live::{Follow, FollowUpdate, Happened, Topic, Via};
use crate::client::{Client, ClientArgs, fill};
use crate::output::exit::{Ended, Exit};
use crate::output::tell::tell;
use crate::output::{Format, Printer, say, span};
use crate::run::find;

#[derive(Args)]
pub struct EventsArgs {
    #[command(flatten)]
    client: ClientArgs,
    /// One run only: its id, the end of it, its subject, or `latest`.
    run: Option<String>,
    /// Stay, and print what happens from now on.
    #[arg(long, short)]
    follow: bool,
    /// Only what comes after this cursor; of one run, after this event.
    #[arg(long, value_name = "CURSOR")]
    since: Option<u64>,
    /// How many at most; without --follow.
    #[arg(long, short = 'n', default_value_t = 100)]
    limit: usize,
    /// How to listen with --follow; by default a WebSocket, else server-sent events, else polling.
    #[arg(long, value_enum, requires = "follow")]
    via: Option<Via>,
}

pub async fn run(args: EventsArgs) -> anyhow::Result<()> {
    let (client, printer) = args.client.open()?;
    let topic = match &args.run {
        Some(run) => Topic::Run(find::run(&client, run).await?),
        None => Topic::Feed,
    };
    if args.follow {
        let follow = Follow::new(client, topic, args.since, args.via);
        return tokio::select! {
            ended = stay(printer, follow) => ended,
            _ = tokio::signal::ctrl_c() => Err(Ended::silently(Exit::Interrupted)),
        };
    }
    let events = page(&client, topic, args.since.unwrap_or(0), args.limit).await?;
    printer.show(&events, |_| {
        if events.is_empty() { "Nothing has happened.".to_owned() } else { events.iter().map(line).collect() }
    })?;
    if let Some(last) = events.last().filter(|_| events.len() >= args.limit) {
        let more = format!("{} are shown, the oldest first; `--since {}` goes on", events.len(), last.cursor);
        printer.note(&format!("{more}, `--follow` shows what happens from now on."));
    }
    Ok(())
}

async fn page(client: &Client, topic: Topic, since: u64, limit: usize) -> anyhow::Result<Vec<Happened>> {
    let mut events = Vec::new();
    let mut since = since;
    while events.len() < limit {
        let count = (limit - events.len()).min(runs::limits::PAGE_MAX);
        let fresh: Vec<Happened> = match topic {
            Topic::Run(run) => {
                let call = client.get(fill(runs::path::EVENTS, &[("run", &run)]));
                let list: EventList = call.query("since", Some(since)).query("limit", Some(count)).send().await?;
                list.events.iter().map(|view| Happened::from_view(run, view)).collect()
            }
            Topic::Feed => {
                let call = client.get(path::FEED).query("since", Some(since)).query("limit", Some(count));
                call.send::<FeedPage>().await?.events.into_iter().filter_map(Happened::from_envelope).collect()
            }
        };
        let Some(last) = fresh.last() else { break };
        since = last.cursor;
        events.extend(fresh);
    }
    Ok(events)
}

async fn stay(printer: Printer, mut follow: Follow) -> anyhow::Result<()> {
    loop {
        match follow.next().await? {
            FollowUpdate::Events(events) => {
                for event in &events {
                    // One document a line, whichever format: a stream of YAML documents helps nobody.
                    let text =
                        if printer.format == Format::Table { line(event) } else { serde_json::to_string(event)? };
                    say(&text)?;
                }
            }
            FollowUpdate::Lost(what) => printer.note(&format!("{what}; reconnecting …")),
            FollowUpdate::End => return Ok(()),
        }
    }
}

/// One event as a line: when, which run, its name in the catalogue, and what it says.
fn line(event: &Happened) -> String {
    let run = event.subject.as_deref().map_or_else(
        || {
            let id = event.run_id.to_string();
            format!("…{}", &id[id.len() - 8..])
        },
        |subject| visible(subject).into_owned(),
    );
    let words = event.known.as_ref().and_then(tell).map(|(_, words)| words).unwrap_or_default();
    let step = event.step.as_deref().map_or_else(String::new, |step| format!("{} ", visible(step)));
    format!("{}  {run:<14} {:<26} {step}{}\n", span::clock(event.at), visible(&event.event), visible(&words))
}
