//! Who watches what: one channel and one pump for each topic that has a watcher.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use axum::http::StatusCode;
use interlock_core::ids::{RunId, TenantId};
use interlock_core::state::RunState;
use interlock_engine::{Engine, EngineError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::channel::Channel;
use super::envelope::Encoder;
use super::frame::Frame;
use super::names::Names;
use super::subscription::Subscription;
use super::{Topic, limits};
use crate::api_error::ApiError;
use crate::seats::{Full, Seat, Seats};

/// Cheap to clone; all clones are one hub.
#[derive(Clone)]
pub struct Hub(Arc<HubState>);

pub struct HubState {
    pub engine: Engine,
    pub names: Arc<Names>,
    /// Weak: a channel lives as long as it has a watcher.
    topics: Mutex<HashMap<Topic, Weak<Channel>>>,
    seats: Arc<Seats>,
    /// For WebSockets that have not said yet who they are.
    unknown: Arc<Semaphore>,
    /// Sockets and pumps, so that a server that stops can wait for their last words.
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl Hub {
    pub fn new(engine: Engine, per_tenant_max: usize, shutdown: CancellationToken) -> Self {
        Self(Arc::new(HubState {
            names: Arc::new(Names::new(engine.clone())),
            engine,
            topics: Mutex::default(),
            seats: Seats::new(limits::SUBSCRIBERS_MAX, per_tenant_max),
            unknown: Arc::new(Semaphore::new(limits::UNKNOWN_SOCKETS_MAX)),
            tasks: TaskTracker::new(),
            shutdown,
        }))
    }

    pub fn encoder(&self, topic: Topic) -> Encoder {
        Encoder::new(topic, Arc::clone(&self.0.names))
    }

    /// The place of the newest event of a topic.
    pub async fn newest(&self, topic: Topic) -> Result<u64, ApiError> {
        let store = self.0.engine.for_tenant(topic.tenant());
        Ok(match topic {
            Topic::Tenant(_) => store.last_cursor().await?,
            Topic::Run(_, run) | Topic::Execution(_, run) => {
                store.run_overview(run).await?.ok_or_else(|| ApiError::unknown_run(run))?.version
            }
        })
    }

    /// Fires when the server stops.
    pub fn shutdown(&self) -> &CancellationToken {
        &self.0.shutdown
    }

    pub fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }

    /// Waits until every watcher has been told that the server stops.
    pub async fn drained(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// A place for one more watcher of this tenant. It is taken only when the caller is known, so that clients without
    /// a credential hold none.
    pub fn seat(&self, tenant: TenantId) -> Result<Seat, ApiError> {
        self.0.seats.take(tenant).map_err(|Full { whose, max }| {
            let detail = format!("{whose} has {max} live streams open already; poll, or try again");
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "LIVE_STREAMS_FULL", detail)
        })
    }

    /// How many watchers there are.
    pub fn taken(&self) -> usize {
        self.0.seats.taken_by_all()
    }

    /// A place for a WebSocket that has yet to say who it is.
    pub fn unknown_socket(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        Arc::clone(&self.0.unknown).try_acquire_owned().map_err(|_| {
            let detail = "too many live streams are waiting for their first frame; send the token with the request";
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "LIVE_STREAMS_FULL", detail)
        })
    }

    /// Watches a topic from a cursor on.
    pub fn subscribe(&self, topic: Topic, cursor: u64, seat: Seat) -> Subscription {
        let channel = self.channel(topic, cursor);
        Subscription::new(self.0.engine.clone(), self.encoder(topic), topic, channel, cursor, seat)
    }

    fn channel(&self, topic: Topic, cursor: u64) -> Arc<Channel> {
        let mut topics = self.0.topics.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = topics.get(&topic).and_then(Weak::upgrade) {
            return channel;
        }
        // Before it grows, topics without a watcher go.
        topics.retain(|_, channel| channel.strong_count() > 0);
        let channel = Arc::new(Channel::from(cursor));
        topics.insert(topic, Arc::downgrade(&channel));
        let pump = Pump {
            engine: self.0.engine.clone(),
            encoder: self.encoder(topic),
            topic,
            cursor,
            channel: Arc::downgrade(&channel),
        };
        let shutdown = self.0.shutdown.clone();
        self.0.tasks.spawn(async move { shutdown.run_until_cancelled(Box::pin(pump.run())).await });
        channel
    }
}

/// Reads what is new on a topic, once for all its watchers.
struct Pump {
    engine: Engine,
    encoder: Encoder,
    topic: Topic,
    cursor: u64,
    /// Weak: when the last watcher has gone, the pump ends.
    channel: Weak<Channel>,
}

/// How long a pump waits after the store failed it.
const AFTER_FAILURE: std::time::Duration = std::time::Duration::from_secs(1);
/// How often a pump with nothing to do looks whether it still has a watcher.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_secs(5);

impl Pump {
    async fn run(mut self) {
        loop {
            match self.turn().await {
                Ok(true) => {}
                Ok(false) | Err(EngineError::Closed) => return,
                Err(error) => {
                    tracing::warn!(%error, "the live stream could not be read; it is tried again");
                    tokio::time::sleep(AFTER_FAILURE).await;
                }
            }
        }
    }

    /// One read. False when there is nothing left to do.
    async fn turn(&mut self) -> Result<bool, EngineError> {
        let Some(channel) = self.channel.upgrade() else { return Ok(false) };
        if let Topic::Run(_, run) | Topic::Execution(_, run) = self.topic
            && self.is_over(run).await?
        {
            channel.end();
            return Ok(false);
        }
        drop(channel);
        let frames = match self.topic {
            Topic::Run(tenant, run) | Topic::Execution(tenant, run) => {
                let mut watcher = self.engine.events().watch_run(tenant, run, self.cursor);
                match tokio::time::timeout(LOOK_EVERY, watcher.next_of_run()).await {
                    Ok(events) => self.encoder.of_run(run, events?).await?,
                    Err(_) => return Ok(true),
                }
            }
            Topic::Tenant(tenant) => {
                let mut watcher = self.engine.events().watch_tenant(tenant, self.cursor);
                let Ok(events) = tokio::time::timeout(LOOK_EVERY, watcher.next_of_tenant()).await else {
                    // Behind what retention has removed.
                    self.cursor = watcher.cursor();
                    return Ok(true);
                };
                self.encoder.of_tenant(events?).await?
            }
        };
        for frames in in_parts(frames, limits::PUSH_BYTES_MAX) {
            let Some(channel) = self.channel.upgrade() else { return Ok(false) };
            self.cursor = frames.last().map_or(self.cursor, |frame| frame.cursor);
            channel.push(frames);
            let pause = (limits::PAUSE_PER_WATCHER * channel.listeners() as u32).min(limits::PAUSE_MAX);
            drop(channel);
            tokio::time::sleep(pause).await;
        }
        Ok(true)
    }

    /// Whether the run has ended and all its events have been read.
    async fn is_over(&self, run: RunId) -> Result<bool, EngineError> {
        let overview = self.engine.for_tenant(self.topic.tenant()).run_overview(run).await?;
        // Retention has swept it, or it never was: nothing more will come.
        Ok(overview.is_none_or(|run| RunState::is_terminal(run.state) && self.cursor >= run.version))
    }
}

/// The frames in order, in parts of at most so many bytes; a larger frame is a part of its own.
fn in_parts(frames: Vec<Frame>, bytes_max: usize) -> Vec<Vec<Frame>> {
    let (mut parts, mut bytes) = (Vec::new(), 0);
    for frame in frames {
        bytes += frame.bytes();
        match parts.last_mut() {
            Some(part) if bytes <= bytes_max => Vec::push(part, frame),
            _ => {
                bytes = frame.bytes();
                parts.push(vec![frame]);
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_the_order_and_the_bound() {
        let frame = |cursor| Frame { cursor, message: "".into(), event: vec![b'x'; cursor as usize].into() };
        let cursors = |numbers: &[u64], max| -> Vec<Vec<u64>> {
            let parts = in_parts(numbers.iter().copied().map(frame).collect(), max);
            parts.iter().map(|part| part.iter().map(|frame| frame.cursor).collect()).collect()
        };
        assert_eq!(cursors(&[1, 2, 3, 4, 20, 21], 6), [vec![1, 2, 3], vec![4], vec![20], vec![21]]);
        assert_eq!(cursors(&[1, 2], 6), [vec![1, 2]]);
        assert!(cursors(&[], 6).is_empty());
    }
}
