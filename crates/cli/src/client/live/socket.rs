//! A stream over a WebSocket. The handshake goes through the same HTTP client as everything else, so that TLS, proxies
//! and credentials are the same; only what follows it is a WebSocket.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use interlock_protocol::live::{Control, EventView, limits, path};
use reqwest::StatusCode;
use reqwest::header::{
    CONNECTION, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::{Failed, RunEvent, StreamItem, Topic};
use crate::client::{Client, ClientError};

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest message that is taken: an event with its payload.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Events that are already here are told together.
const BATCH_MAX: usize = 256;

pub struct Socket {
    stream: WebSocketStream<reqwest::Upgraded>,
    server: String,
    /// What ended the stream, kept until the events before it are told.
    last_word: Option<StreamItem>,
}

impl Socket {
    pub async fn open(client: &Client, topic: Topic, cursor: Option<u64>) -> Result<Self, Failed> {
        let key = generate_key();
        let call = client
            .get(topic.path(path::WS_RUN, path::WS_FEED))
            .query("last_event_id", cursor)
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, key.clone());
        let server = client.target().server.clone();
        let blocked = |what: &str| Failed::Blocked(format!("no WebSocket to {server}: {what}"));
        let response = match timeout(HANDSHAKE_TIMEOUT, call.open()).await {
            Ok(Ok(response)) => response,
            // A server that is not there is not there for the other ways either.
            Ok(Err(error @ (ClientError::Unreachable { .. } | ClientError::Lost { .. }))) => {
                return Err(Failed::Away(error));
            }
            Ok(Err(error)) => return Err(Failed::Refused(error)),
            Err(_) => return Err(blocked("the handshake took too long")),
        };
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            let status = response.status();
            // A refusal with a problem document is about the request; anything else is from a proxy before the server.
            return match client.refusal(response).await {
                Some(error) if !matches!(status.as_u16(), 426 | 501) => Err(Failed::Refused(error)),
                _ => Err(blocked(&format!("it answered {status}"))),
            };
        }
        let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT).and_then(|value| value.to_str().ok());
        if accepted != Some(derive_accept_key(key.as_bytes()).as_str()) {
            return Err(blocked("what answers does not speak it"));
        }
        let upgraded = response.upgrade().await.map_err(|error| blocked(&error.to_string()))?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX));
        let stream = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await;
        Ok(Self { stream, server, last_word: None })
    }

    pub async fn next(&mut self) -> Result<StreamItem, Failed> {
        if let Some(said) = self.last_word.take() {
            return Ok(said);
        }
        // Heartbeats come several times in this span; silence means that the connection is dead.
        let patience = limits::HEARTBEAT.as_duration() * 3;
        let Ok(first) = timeout(patience, self.stream.next()).await else {
            return Err(self.away("nothing came, not even a heartbeat"));
        };
        let mut events = Vec::new();
        let mut message = Some(first);
        while let Some(taken) = message {
            match self.take(taken, &mut events)? {
                Some(said) if events.is_empty() => return Ok(said),
                Some(said) => {
                    self.last_word = Some(said);
                    return Ok(StreamItem::Events(events));
                }
                None => {}
            }
            if events.len() >= BATCH_MAX {
                break;
            }
            message = futures::FutureExt::now_or_never(self.stream.next());
        }
        Ok(if events.is_empty() { StreamItem::Nothing } else { StreamItem::Events(events) })
    }

    fn take(
        &mut self,
        message: Option<Result<Message, tokio_tungstenite::tungstenite::Error>>,
        events: &mut Vec<RunEvent>,
    ) -> Result<Option<StreamItem>, Failed> {
        let text = match message {
            None | Some(Ok(Message::Close(_))) => return Ok(Some(StreamItem::Closed)),
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(_)) => return Ok(None),
            Some(Err(error)) => return Err(self.away(&error.to_string())),
        };
        if let Ok(envelope) = serde_json::from_str::<EventView>(&text) {
            events.extend(RunEvent::from_view(envelope));
            return Ok(None);
        }
        match serde_json::from_str::<Control>(&text) {
            Ok(Control::End { .. }) => Ok(Some(StreamItem::End)),
            Ok(Control::Refused { code, detail }) => {
                let what = format!("{detail} ({code})");
                Err(Failed::Refused(ClientError::Unreadable { server: self.server.clone(), what }))
            }
            Ok(Control::Resync { .. } | Control::Closing { .. }) => Ok(Some(StreamItem::Closed)),
            Ok(Control::Subscribed { .. } | Control::Heartbeat { .. }) | Err(_) => Ok(None),
        }
    }

    fn away(&self, what: &str) -> Failed {
        Failed::Away(ClientError::Unreachable { server: self.server.clone(), loopback: false, what: what.to_owned() })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // A goodbye if it can be said at once; the server notices the closed connection in any case.
        let _ = futures::FutureExt::now_or_never(self.stream.send(Message::Close(None)));
    }
}

/// The name is not among reqwest's constants.
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
