//! Following a server: events as they happen, over a WebSocket, else over server-sent events, else by polling.
//!
//! [`Follow::next`] hands out one [`FollowUpdate`] after the other and sees to the rest: it reconnects from where it was, takes
//! the next way where one does not get through, and ends when the run has.

mod happened;
pub mod output;
mod poll;
mod socket;
mod sse;

use std::time::Duration;

use clap::ValueEnum;
use interlock_core::ids::RunId;

use super::{Client, ClientError, fill};
pub use happened::RunEvent;

/// A way to hear of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Via {
    /// A WebSocket.
    Ws,
    /// Server-sent events.
    Sse,
    /// Asking again and again.
    Poll,
}

/// What is followed.
#[derive(Debug, Clone, Copy)]
pub enum Topic {
    Run(RunId),
    /// All runs of the tenant.
    Feed,
}

/// What comes next.
#[derive(Debug)]
pub enum FollowUpdate {
    Events(Vec<RunEvent>),
    /// The connection was lost, and why; it is tried again.
    Lost(String),
    /// The run has ended, and this was all.
    End,
}

/// One open connection, however it was made.
enum LiveConnection {
    Ws(Box<socket::Socket>),
    Sse(Box<sse::Events>),
    Poll(poll::Polling),
}

/// What a connection says.
enum StreamItem {
    Events(Vec<RunEvent>),
    Nothing,
    /// Closed by the server: come back.
    Closed,
    End,
}

/// Why a connection cannot be made or kept.
enum Failed {
    /// This way does not get through; another one may.
    Blocked(String),
    /// The server is away; the same may work later.
    Away(ClientError),
    /// The server has answered, and the answer is no.
    Refused(ClientError),
}

/// The pauses between attempts to reconnect; the last one repeats.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
];

pub struct Follow {
    client: Client,
    topic: Topic,
    /// The last event that was handed out; none yet means from the topic's own beginning.
    cursor: Option<u64>,
    via: Via,
    /// The user has chosen the way, so there is no other.
    fixed: bool,
    connection: Option<LiveConnection>,
    failures: usize,
    ever_connected: bool,
}

impl Follow {
    pub fn new(client: Client, topic: Topic, cursor: Option<u64>, via: Option<Via>) -> Self {
        Self {
            client,
            topic,
            cursor,
            via: via.unwrap_or(Via::Ws),
            fixed: via.is_some(),
            connection: None,
            failures: 0,
            ever_connected: false,
        }
    }

    /// What comes next. Dropping the future loses at most a connection, and no event.
    pub async fn next(&mut self) -> Result<FollowUpdate, ClientError> {
        loop {
            let Some(connection) = &mut self.connection else {
                match self.connect().await? {
                    Some(lost) => return Ok(FollowUpdate::Lost(lost)),
                    None => continue,
                }
            };
            let said = match connection {
                LiveConnection::Ws(socket) => socket.next().await,
                LiveConnection::Sse(events) => events.next().await,
                LiveConnection::Poll(polling) => polling.next(&self.client).await,
            };
            match said {
                Ok(StreamItem::Events(events)) => {
                    // What was seen already, after a reconnect, is not told again.
                    let seen = self.cursor.unwrap_or(0);
                    let fresh: Vec<_> = events.into_iter().filter(|event| event.cursor > seen).collect();
                    self.failures = 0;
                    if let Some(last) = fresh.last() {
                        self.cursor = Some(last.cursor);
                        return Ok(FollowUpdate::Events(fresh));
                    }
                }
                Ok(StreamItem::Nothing) => self.failures = 0,
                Ok(StreamItem::End) => return Ok(FollowUpdate::End),
                Ok(StreamItem::Closed) => {
                    self.connection = None;
                    return Ok(FollowUpdate::Lost("the server closed the stream".into()));
                }
                Err(Failed::Refused(error)) => return Err(error),
                Err(Failed::Away(error)) => {
                    self.connection = None;
                    return Ok(FollowUpdate::Lost(error.to_string()));
                }
                Err(Failed::Blocked(what)) => {
                    self.connection = None;
                    return Ok(FollowUpdate::Lost(what));
                }
            }
        }
    }

    /// Opens a connection, or says why there is none yet. The first failure of a server that was never reached is
    /// final: it is better to say so than to wait.
    async fn connect(&mut self) -> Result<Option<String>, ClientError> {
        if self.failures > 0 {
            tokio::time::sleep(PAUSES[self.failures.min(PAUSES.len()) - 1]).await;
        }
        let opened = match self.via {
            Via::Ws => socket::Socket::open(&self.client, self.topic, self.cursor)
                .await
                .map(|s| LiveConnection::Ws(Box::new(s))),
            Via::Sse => {
                sse::Events::open(&self.client, self.topic, self.cursor).await.map(|e| LiveConnection::Sse(Box::new(e)))
            }
            Via::Poll => poll::Polling::open(&self.client, self.topic, self.cursor).await.map(LiveConnection::Poll),
        };
        match opened {
            Ok(connection) => {
                self.connection = Some(connection);
                self.ever_connected = true;
                // It counts as well only once it has said something.
                self.failures += 1;
                Ok(None)
            }
            Err(Failed::Refused(error)) => Err(error),
            Err(Failed::Away(error)) if !self.ever_connected && self.via == Via::Poll => Err(error),
            Err(Failed::Away(error)) if !self.ever_connected && matches!(error, ClientError::Unreachable { .. }) => {
                Err(error)
            }
            Err(Failed::Away(error)) => {
                self.failures += 1;
                Ok(Some(error.to_string()))
            }
            Err(Failed::Blocked(what)) => {
                self.via = match self.via {
                    _ if self.fixed => return Err(ClientError::Setup(what)),
                    Via::Ws => Via::Sse,
                    Via::Sse | Via::Poll => Via::Poll,
                };
                tracing::info!(what, "taking another way");
                Ok(None)
            }
        }
    }
}

impl Topic {
    /// The path of a stream for this topic: the run's, or the feed's.
    fn path(self, of_run: &str, of_feed: &str) -> String {
        match self {
            Self::Run(run) => fill(of_run, &[("run", &run)]),
            Self::Feed => of_feed.to_owned(),
        }
    }
}
