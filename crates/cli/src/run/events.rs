//! `interlock events`: what has happened in all runs, or in one, the newest first; or as it happens.

use clap::Args;
use interlock_core::ids::RunId;
use interlock_core::run::event::Event;
use interlock_core::state::ReceiptState;
use interlock_core::text::visible::visible;
use interlock_core::time::Timestamp;
use interlock_protocol::live::{Cursor, FeedPage, path};
use interlock_protocol::runs::{self, EventList};
use unicode_width::UnicodeWidthStr as _;

use super::filter::{limit, when};
use super::show;
use crate::client::live::{Follow, FollowUpdate, RunEvent, Topic, Via};
use crate::client::{Client, ClientArgs, fill};
use crate::output::exit::{Exit, ExitError};
use crate::output::table::cut;
use crate::output::tell::tell;
use crate::output::wrap::wrapped;
use crate::output::{Format, Printer, say, span};
use crate::run::find;

/// Events that are shown where the user says no number.
const SHOWN_BY_DEFAULT: usize = 100;
/// Columns of the run, and of the event's name, which has room on terminals that are this wide.
const RUN_COLUMNS: usize = 14;
const NAME_COLUMNS: usize = 26;
const NAMES_FROM: usize = 100;

#[derive(Args)]
pub struct EventsArgs {
    #[command(flatten)]
    client: ClientArgs,
    /// One run only: its id, the end of it, its subject, or `latest`.
    run: Option<String>,
    /// Stay, and print what happens from now on, in its order.
    #[arg(long, short)]
    follow: bool,
    /// Only what happened since then: a span back from now, as in `10m`, a day, as in `2026-12-01`, or an instant.
    #[arg(long, value_name = "WHEN", value_parser = when)]
    since: Option<Timestamp>,
    /// With --follow: what comes after the event with this `id`.
    #[arg(long, value_name = "ID", requires = "follow", conflicts_with_all = ["since", "limit"])]
    after: Option<u64>,
    /// How many at most; 100 where omitted. With --follow: how many of the newest are printed first.
    #[arg(long, short = 'n', value_parser = limit)]
    limit: Option<usize>,
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
        let mut earlier = match args.limit {
            Some(limit) => newest(&client, topic, args.since, limit).await?,
            None => Vec::new(),
        };
        earlier.reverse();
        for event in &earlier {
            print(printer, event)?;
        }
        let after = match (earlier.last(), args.since, topic) {
            (Some(last), _, _) => Some(last.cursor),
            (None, Some(since), Topic::Feed) => Some(cursor_at(&client, since).await?),
            _ => args.after,
        };
        let follow = Follow::new(client, topic, after, args.via);
        return tokio::select! {
            ended = stay(printer, follow, args.since) => ended,
            _ = tokio::signal::ctrl_c() => Err(ExitError::silently(Exit::Interrupted)),
        };
    }
    let limit = args.limit.unwrap_or(SHOWN_BY_DEFAULT);
    let events = newest(&client, topic, args.since, limit).await?;
    printer.show(&events, |_| {
        let now = span::now();
        if events.is_empty() {
            return "Nothing has happened.".to_owned();
        }
        events.iter().map(|event| line(event, now, printer.width())).collect()
    })?;
    if events.len() >= limit {
        let more = format!("The newest {} are shown; `--limit {}` shows more", events.len(), limit.saturating_mul(10));
        printer.note(&format!("{more}, `--follow` what happens from now on."));
    }
    Ok(())
}

/// The newest events of a run, or of all, the newest first.
async fn newest(
    client: &Client,
    topic: Topic,
    since: Option<Timestamp>,
    limit: usize,
) -> anyhow::Result<Vec<RunEvent>> {
    match topic {
        Topic::Run(run) => of_run(client, run, since, limit).await,
        Topic::Feed => of_all(client, since, limit).await,
    }
}

/// The newest events of all runs, the newest first.
async fn of_all(client: &Client, since: Option<Timestamp>, limit: usize) -> anyhow::Result<Vec<RunEvent>> {
    let mut events = Vec::new();
    let mut before = None;
    while events.len() < limit {
        let count = (limit - events.len()).min(runs::limits::PAGE_MAX);
        let call = client.get(path::FEED).query("order", Some("newest")).query("from", since.map(|at| at.0));
        let page: FeedPage = call.query("before", before).query("limit", Some(count)).send().await?;
        events.extend(page.events.into_iter().filter_map(RunEvent::from_view));
        before = page.next_before;
        if before.is_none() {
            break;
        }
    }
    events.retain(|event| since.is_none_or(|since| event.at >= since));
    Ok(events)
}

/// The newest events of one run, the newest first. They are numbered without gaps.
pub async fn of_run(
    client: &Client,
    run: RunId,
    since: Option<Timestamp>,
    limit: usize,
) -> anyhow::Result<Vec<RunEvent>> {
    let newest = show::view(client, run).await?.version;
    let mut after = newest.saturating_sub(limit as u64);
    let mut events: Vec<RunEvent> = Vec::new();
    while after < newest {
        let path = fill(runs::path::EVENTS, &[("run", &run)]);
        let page: EventList = client.get(path).query("last_event_id", Some(after)).send().await?;
        let fresh: Vec<_> = page.events.into_iter().filter_map(RunEvent::from_view).collect();
        let Some(last) = fresh.last() else { break };
        after = last.cursor;
        events.extend(fresh);
    }
    events.retain(|event| since.is_none_or(|since| event.at >= since));
    events.reverse();
    events.truncate(limit);
    Ok(events)
}

/// The place in the feed behind which everything since an instant stands.
async fn cursor_at(client: &Client, since: Timestamp) -> anyhow::Result<u64> {
    let call = client.get(path::FEED).query("from", Some(since.0)).query("limit", Some(1));
    let page: FeedPage = call.send().await?;
    let first = page.events.into_iter().find_map(RunEvent::from_view);
    let last = page.last_event_id.parse::<Cursor>().map_or(0, |cursor| cursor.seq);
    Ok(first.map_or(last, |event| event.cursor.saturating_sub(1)))
}

async fn stay(printer: Printer, mut follow: Follow, since: Option<Timestamp>) -> anyhow::Result<()> {
    loop {
        match follow.next().await? {
            FollowUpdate::Events(events) => {
                for event in events.iter().filter(|event| since.is_none_or(|since| event.at >= since)) {
                    print(printer, event)?;
                }
            }
            FollowUpdate::Lost(what) => printer.note(&format!("{what}; reconnecting …")),
            FollowUpdate::End => return Ok(()),
        }
    }
}

fn print(printer: Printer, event: &RunEvent) -> anyhow::Result<()> {
    // One JSON document a line for YAML as well: few tools read a stream of YAML documents.
    let text = match printer.format {
        Format::Table => line(event, span::now(), printer.width()),
        Format::Json | Format::Yaml => serde_json::to_string(event)?,
    };
    say(&text)
}

/// One event as a line: when, which run, its name in the catalogue, the step, what it says, who caused it and why. On a
/// narrow terminal the name is left out where there are words for it, and the words are broken under each other.
fn line(event: &RunEvent, now: Timestamp, width: usize) -> String {
    let run = event.subject.as_deref().map_or_else(
        || {
            let id = event.run_id.to_string();
            format!("…{}", &id[id.len() - 8..])
        },
        |subject| visible(subject).into_owned(),
    );
    let words = event.known.as_ref().map(words).unwrap_or_default();
    let step = event.step.as_deref().map_or_else(String::new, |step| format!("{} ", visible(step)));
    let said = format!("{step}{}{}", visible(&words), event.caused(&words));
    let at = span::clock_on_its_day(event.at, now);
    // A pipe has no width, and gets everything.
    let run = if width == usize::MAX { run } else { cut(&run, RUN_COLUMNS) };
    let mut line = format!("{at}  {} ", padded(&run, RUN_COLUMNS));
    if words.is_empty() || width >= NAMES_FROM {
        line.push_str(&padded(&visible(&event.event), NAME_COLUMNS));
        line.push(' ');
    }
    let indent = line.width();
    line.push_str(said.trim());
    format!("{}\n", wrapped(line.trim_end(), width, indent))
}

/// A text with blanks behind it up to so many columns of a terminal.
fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text.width())))
}

/// The event in words, also of those that a timeline leaves out.
fn words(event: &Event) -> String {
    match event {
        Event::ReceiptRecorded { state: ReceiptState::Intent, receipt, .. } => {
            format!("→ an effect is about to be sent ({receipt})")
        }
        Event::ReceiptRecorded { state, receipt, .. } => {
            format!("= the effect is {} ({receipt})", state.as_str().replace('_', " "))
        }
        event => tell(event).map(|(_, words)| words).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use interlock_core::ids::ReceiptId;

    use super::*;

    fn event(kind: &str, payload: &serde_json::Value) -> RunEvent {
        let told = serde_json::json!({
            "id": "7", "type": kind, "run_id": RunId::from_bytes([1; 16]), "seq": 7, "at": 1_500, "step": "pay",
            "position": 0, "payload": payload, "context": { "initiator": "system" },
        });
        RunEvent::from_view(serde_json::from_value(told).unwrap()).unwrap()
    }

    #[test]
    fn what_did_not_happen_today_has_its_day_in_front() {
        let done = event("execution.step.completed", &serde_json::json!({ "attempt": 1, "output_bytes": 4 }));
        let day_after = Timestamp(2 * 86_400_000);
        let (today, earlier) = (line(&done, Timestamp(2_000), usize::MAX), line(&done, day_after, usize::MAX));
        assert!(earlier.ends_with(&today) && earlier.len() == today.len() + 11, "{earlier}{today}");
    }

    #[test]
    fn lines_fit_the_terminal_whatever_the_subject_is() {
        for subject in ["日本語の件名がとても長い場合", "🚀 deploy the shop to everybody", "x"] {
            let payload = serde_json::json!({ "attempt": 1, "output_bytes": 4 });
            let mut done = event("execution.step.completed", &payload);
            done.subject = Some(subject.into());
            for width in [60, 80, 120] {
                let text = line(&done, Timestamp(2_000), width);
                assert!(text.lines().all(|line| line.width() <= width), "{width}: {text}");
                let (before, _) = text.split_once("pay ✓ done").unwrap();
                let name = if width < NAMES_FROM { 0 } else { NAME_COLUMNS + 1 };
                assert_eq!(before.width(), "00:00:01.500  ".len() + RUN_COLUMNS + 1 + name, "{width}: {text}");
            }
            assert!(line(&done, Timestamp(2_000), usize::MAX).contains(subject), "a pipe gets all of it");
        }
        let payload = serde_json::json!({ "attempt": 1, "receipt": ReceiptId::from_bytes([4; 16]), "state": "intent" });
        let text = line(&event("receipt.recorded", &payload), Timestamp(2_000), 60);
        assert!(text.lines().count() > 1 && text.lines().nth(1).unwrap().starts_with(&" ".repeat(29)), "{text}");
    }

    #[test]
    fn an_effect_is_told_by_its_receipt() {
        let receipt = ReceiptId::from_bytes([4; 16]);
        let told = |state: &str| {
            let payload = serde_json::json!({ "attempt": 1, "receipt": receipt, "state": state });
            line(&event("receipt.recorded", &payload), Timestamp(2_000), usize::MAX)
        };
        assert!(told("intent").contains(&format!("pay → an effect is about to be sent ({receipt})\n")));
        assert!(told("in_doubt").contains(&format!("pay = the effect is in doubt ({receipt})\n")));
    }
}
