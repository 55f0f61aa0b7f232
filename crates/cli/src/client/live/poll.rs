//! The last resort: asking again and again, with the server holding each question until it has an answer.

use interlock_core::ids::RunId;
use interlock_core::time::Millis;
use interlock_protocol::live::{Cursor, FeedPage, path};
use interlock_protocol::runs::{self, EventList, RunView};

use super::{Failed, RunEvent, StreamItem, Topic};
use crate::client::{Client, ClientError, fill};

/// How long the server holds a question.
const WAIT: Millis = Millis::from_secs(20);

pub struct Polling {
    topic: Topic,
    since: u64,
}

impl Polling {
    pub async fn open(client: &Client, topic: Topic, cursor: Option<u64>) -> Result<Self, Failed> {
        let since = match (cursor, topic) {
            (Some(cursor), _) => cursor,
            (None, Topic::Run(_)) => 0,
            (None, Topic::Feed) => newest(client).await?,
        };
        Ok(Self { topic, since })
    }

    pub async fn next(&mut self, client: &Client) -> Result<StreamItem, Failed> {
        let events = match self.topic {
            Topic::Run(run) => self.of_run(client, run).await?,
            Topic::Feed => self.of_feed(client).await?,
        };
        if !events.is_empty() {
            return Ok(StreamItem::Events(events));
        }
        match self.topic {
            Topic::Run(run) if is_over(client, run, self.since).await? => Ok(StreamItem::End),
            _ => Ok(StreamItem::Nothing),
        }
    }

    async fn of_run(&mut self, client: &Client, run: RunId) -> Result<Vec<RunEvent>, Failed> {
        let path = fill(runs::path::EVENTS, &[("run", &run)]);
        let call = client.get(path).query("last_event_id", Some(self.since)).query("wait_ms", Some(WAIT.0));
        let page: EventList = call.waits(WAIT.as_duration()).send().await.map_err(failed)?;
        let events: Vec<_> = page.events.into_iter().filter_map(RunEvent::from_view).collect();
        self.since = events.last().map_or(self.since, |event| event.cursor);
        Ok(events)
    }

    async fn of_feed(&mut self, client: &Client) -> Result<Vec<RunEvent>, Failed> {
        let call = client.get(path::FEED).query("last_event_id", Some(self.since)).query("wait_ms", Some(WAIT.0));
        let page: FeedPage = call.waits(WAIT.as_duration()).send().await.map_err(failed)?;
        self.since = place(&page.last_event_id).unwrap_or(self.since);
        Ok(page.events.into_iter().filter_map(RunEvent::from_view).collect())
    }
}

async fn is_over(client: &Client, run: RunId, since: u64) -> Result<bool, Failed> {
    let view: RunView = client.get(fill(runs::path::RUN, &[("run", &run)])).send().await.map_err(failed)?;
    Ok(view.state.is_terminal() && since >= view.version)
}

/// The cursor of the newest event.
async fn newest(client: &Client) -> Result<u64, Failed> {
    let call = client.get(path::FEED).query("order", Some("newest")).query("limit", Some(1));
    let page: FeedPage = call.send().await.map_err(failed)?;
    Ok(place(&page.last_event_id).unwrap_or_default())
}

fn place(id: &str) -> Option<u64> {
    id.parse::<Cursor>().ok().map(|cursor| cursor.seq)
}

fn failed(error: ClientError) -> Failed {
    if error.is_transient() { Failed::Away(error) } else { Failed::Refused(error) }
}
