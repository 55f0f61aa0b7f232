//! One watcher's place in a stream: first what the store holds, then the frames that all watchers share.

use std::sync::Arc;
use std::time::Duration;

use interlock_engine::{Engine, EngineError};
use tokio::sync::watch;
use tokio::time::Instant;

use super::channel::{Channel, ChannelRead};
use super::envelope::Encoder;
use super::frame::Frame;
use super::{Topic, limits};
use crate::seats::Seat;

/// What comes next for a watcher.
#[derive(Debug)]
pub enum Next {
    Frames(Vec<Frame>),
    /// The watcher took what is kept more slowly than it went: it has to come back and replay.
    Behind,
    /// The run has ended, and this was all.
    End,
}

pub struct Subscription {
    engine: Engine,
    encoder: Encoder,
    topic: Topic,
    channel: Arc<Channel>,
    news: watch::Receiver<u64>,
    cursor: u64,
    /// Since when the frames that were last handed out are on their way; not while there is nothing to send.
    sending_since: Option<Instant>,
    seat: Seat,
}

impl Subscription {
    pub(super) fn new(
        engine: Engine,
        encoder: Encoder,
        topic: Topic,
        channel: Arc<Channel>,
        cursor: u64,
        seat: Seat,
    ) -> Self {
        let news = channel.listen();
        Self { engine, encoder, topic, channel, news, cursor, sending_since: None, seat }
    }

    /// The place behind the last frame that was handed out.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Goes on from another place, in the same seat.
    pub fn move_to(&mut self, cursor: u64) {
        self.cursor = cursor;
        self.sending_since = None;
    }

    /// The next frames, asked for when the last ones are sent; waits for them. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Next, EngineError> {
        let slow = self.sending_since.take().is_some_and(|since| since.elapsed() > limits::SLOW_AFTER);
        loop {
            // Before the look, so that what comes after it wakes us.
            self.news.mark_unchanged();
            match self.channel.after(self.cursor) {
                ChannelRead::Frames(frames) => return Ok(Next::Frames(self.hand_out(frames))),
                // Who fell behind although it took what it was given at once was outrun by a burst, and replays it.
                ChannelRead::TooOld if slow => return Ok(Next::Behind),
                ChannelRead::TooOld => {
                    let (frames, cursor) = self.replay().await?;
                    if !frames.is_empty() {
                        return Ok(Next::Frames(self.hand_out(frames)));
                    }
                    // All of that has been swept; what comes behind it may not be.
                    if cursor > self.cursor {
                        self.cursor = cursor;
                        continue;
                    }
                    // The store is behind what the pump has read: impossible on one database, and no reason to spin.
                    if self.news.changed().await.is_err() {
                        return Ok(Next::End);
                    }
                }
                ChannelRead::End => return Ok(Next::End),
                ChannelRead::Nothing => {
                    if self.news.changed().await.is_err() {
                        return Ok(Next::End);
                    }
                    self.wait_its_turn().await;
                }
            }
        }
    }

    /// Where many watch, they are not all written to at the same instant.
    async fn wait_its_turn(&self) {
        let spread = (limits::SPREAD_PER_WATCHER * self.channel.listeners() as u32).min(limits::SPREAD_MAX);
        let part = (self.seat.number % limits::SPREAD_PARTS) as u32;
        let turn = spread * part / limits::SPREAD_PARTS as u32;
        if turn >= Duration::from_millis(1) {
            tokio::time::sleep(turn).await;
        }
    }

    fn hand_out(&mut self, frames: Vec<Frame>) -> Vec<Frame> {
        self.cursor = frames.last().map_or(self.cursor, |frame| frame.cursor);
        self.sending_since = Some(Instant::now());
        frames
    }

    /// What is older than what is kept comes from the store, for this watcher alone. Also answers how far that goes.
    async fn replay(&self) -> Result<(Vec<Frame>, u64), EngineError> {
        match self.topic {
            Topic::Run(tenant, run) | Topic::Execution(tenant, run) => {
                let store = self.engine.for_tenant(tenant);
                let events = store.events(run, self.cursor, limits::REPLAY_EVENTS_MAX).await?;
                let cursor = events.last().map_or(self.cursor, |event| event.seq);
                Ok((self.encoder.of_run(run, events).await?, cursor))
            }
            Topic::Tenant(tenant) => {
                let store = self.engine.for_tenant(tenant);
                let page = store.tenant_events(self.cursor, limits::REPLAY_EVENTS_MAX).await?;
                Ok((self.encoder.of_tenant(page.events).await?, page.cursor))
            }
        }
    }
}
