//! A stream over a WebSocket: frames at the pace of the socket, heartbeats in between, a word before it closes.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures::SinkExt;
use interlock_core::time::Millis;
use interlock_engine::EngineError;
use interlock_protocol::live::{Control, Cursor, Subscribe, close};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite::{self, error::ProtocolError};

use super::credential::{Credential, CredentialCheck};
use super::cursor::{ahead, cursor};
use super::frame::{Frame, control_message};
use super::hub::Hub;
use super::subscription::{Next, Subscription};
use super::{Topic, limits};
use crate::api_error::ApiError;

const HEARTBEAT: Millis = interlock_protocol::live::limits::HEARTBEAT;

/// An open WebSocket. Whatever fails on it means that the watcher has gone, which is no error of the server.
pub struct Socket(WebSocket);

/// The watcher has gone, or takes nothing any more.
pub struct Gone;

/// What a watcher sent.
pub enum WatcherMessage {
    Subscribe { last_event_id: Option<String>, token: Option<String> },
    NotUnderstood(String),
}

impl Socket {
    pub fn new(socket: WebSocket) -> Self {
        Self(socket)
    }

    pub async fn say(&mut self, control: &Control) -> Result<(), Gone> {
        within(self.0.send(Message::Text(control_message(control)))).await
    }

    /// Many frames with one flush: the socket is written to once. Each of them has its time, so that a narrow line is
    /// no reason to give up, and a dead one is.
    async fn send(&mut self, frames: Vec<Frame>) -> Result<(), Gone> {
        for frame in frames {
            within(self.0.feed(Message::Text(frame.message))).await?;
        }
        within(self.0.flush()).await
    }

    /// A last word, then the close frame with its code.
    pub async fn close(mut self, control: &Control, code: u16) {
        if self.say(control).await.is_ok() {
            let frame = CloseFrame { code, reason: "".into() };
            // A watcher that has gone already needs no close frame.
            let _ = within(self.0.send(Message::Close(Some(frame)))).await;
        }
    }

    /// The watcher's next frame; pings are answered by themselves.
    pub async fn hear(&mut self) -> Result<WatcherMessage, Gone> {
        loop {
            match self.0.recv().await {
                Some(Ok(Message::Text(text))) => {
                    return Ok(match serde_json::from_str(&text) {
                        Ok(Subscribe::Subscribe { last_event_id, token }) => {
                            WatcherMessage::Subscribe { last_event_id, token }
                        }
                        Err(error) => WatcherMessage::NotUnderstood(error.to_string()),
                    });
                }
                Some(Ok(Message::Binary(_))) => return Ok(WatcherMessage::NotUnderstood("it is not text".into())),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Close(_))) => {
                    self.answer_close().await;
                    return Err(Gone);
                }
                Some(Err(error)) => {
                    self.close_for(error).await;
                    return Err(Gone);
                }
                None => return Err(Gone),
            }
        }
    }
}

impl Socket {
    /// The answer to a close frame is made when it is read, and sent when the socket is read again.
    async fn answer_close(&mut self) {
        let rest = async { while self.0.recv().await.is_some_and(|message| message.is_ok()) {} };
        // A watcher that does not take the answer has gone.
        let _ = timeout(limits::CLOSE_TIMEOUT, rest).await;
    }

    /// Says what was wrong with a frame that could not be read, where the standard has a code for it.
    async fn close_for(&mut self, error: axum::Error) {
        let Some(code) = close_code(error) else { return };
        let frame = CloseFrame { code, reason: "".into() };
        let _ = timeout(limits::CLOSE_TIMEOUT, self.0.send(Message::Close(Some(frame)))).await;
    }
}

/// The code that the standard has for a frame that could not be read; none where the peer has gone without a word.
pub fn close_code(error: axum::Error) -> Option<u16> {
    match *error.into_inner().downcast::<tungstenite::Error>().ok()? {
        tungstenite::Error::Utf8(_) => Some(close::NOT_TEXT),
        tungstenite::Error::Capacity(_) => Some(close::TOO_LARGE),
        tungstenite::Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => None,
        tungstenite::Error::Protocol(_) => Some(close::PROTOCOL),
        _ => None,
    }
}

/// A write that takes too long means that the watcher does not read any more.
async fn within(write: impl Future<Output = Result<(), axum::Error>>) -> Result<(), Gone> {
    match timeout(limits::SEND_TIMEOUT, write).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(Gone),
    }
}

/// Follows a topic until the watcher goes, the run ends, or the server stops.
pub async fn serve(socket: Socket, hub: Hub, topic: Topic, subscription: Subscription, credential: Credential) {
    let _tracked = hub.tasks().token();
    // A watcher that has gone needs nothing more.
    let _ = follow(socket, &hub, topic, subscription, credential).await;
}

async fn follow(
    mut socket: Socket,
    hub: &Hub,
    topic: Topic,
    mut subscription: Subscription,
    mut credential: Credential,
) -> Result<(), Gone> {
    let here = |subscription: &Subscription| Cursor::after(subscription.cursor()).to_string();
    socket.say(&Control::Subscribed { last_event_id: here(&subscription) }).await?;
    let mut silent_since = Instant::now();
    // Not while nobody knows whether the credential counts.
    let mut tells = true;
    loop {
        if credential.due() <= Instant::now()
            && let Some(found) = hub.shutdown().run_until_cancelled(credential.check()).await
        {
            if found == CredentialCheck::Over {
                socket.close(&Credential::refusal(), close::UNAUTHORIZED).await;
                return Ok(());
            }
            tells = found == CredentialCheck::Counts;
        }
        let before = subscription.cursor();
        tokio::select! {
            () = hub.shutdown().cancelled() => {
                socket.close(&Control::Closing { last_event_id: here(&subscription) }, close::RESTART).await;
                return Ok(());
            }
            next = subscription.next(), if tells => match next {
                // It was due while this waited: what has come is told after the look.
                Ok(_) if credential.is_due() => subscription.move_to(before),
                Ok(Next::Frames(frames)) => {
                    socket.send(frames).await?;
                    silent_since = Instant::now();
                }
                Ok(Next::End) => {
                    socket.close(&Control::End { last_event_id: here(&subscription) }, close::ENDED).await;
                    return Ok(());
                }
                Ok(Next::Behind) => {
                    let reason = "events came faster than this connection took them".to_owned();
                    let resync = Control::Resync { last_event_id: here(&subscription), reason };
                    socket.close(&resync, close::RESYNC).await;
                    return Ok(());
                }
                Err(error) => {
                    if !matches!(error, EngineError::Closed) {
                        tracing::warn!(%error, "a live stream could not be read");
                    }
                    socket.close(&Control::Closing { last_event_id: here(&subscription) }, close::RESTART).await;
                    return Ok(());
                }
            },
            heard = socket.hear() => match heard? {
                WatcherMessage::Subscribe { last_event_id, token } => {
                    match later_place(hub, topic, last_event_id.as_deref(), token.is_some()).await {
                        Ok(cursor) => {
                            subscription.move_to(cursor);
                            socket.say(&Control::Subscribed { last_event_id: here(&subscription) }).await?;
                        }
                        Err(error) => return turn_away(socket, &error).await,
                    }
                }
                WatcherMessage::NotUnderstood(what) => return refuse(socket, what).await,
            },
            () = sleep_until(credential.due()) => {}
            () = sleep_until(silent_since + Duration::from_millis(HEARTBEAT.0)) => {
                socket.say(&Control::Heartbeat { last_event_id: here(&subscription) }).await?;
                silent_since = Instant::now();
            }
        }
    }
}

/// The place to which a later `subscribe` moves the stream. It has to name one: where a stream begins that has not begun yet is
/// another question. And the stream stays that of the credential which has opened it.
async fn later_place(hub: &Hub, topic: Topic, last_event_id: Option<&str>, has_token: bool) -> Result<u64, ApiError> {
    if has_token {
        let detail = "this stream is open already, by the credential that it was opened with: a later `subscribe` takes no \
                      `token`; open another WebSocket for another credential";
        return Err(ApiError::malformed(detail));
    }
    let Some(last_event_id) = last_event_id else {
        let detail = "this stream is open already: a later `subscribe` moves it, and names the place as `last_event_id` \
                      (`0` is before the first event)";
        return Err(ApiError::malformed(detail));
    };
    let cursor = cursor(last_event_id)?;
    if cursor.seq > hub.newest(topic).await? {
        return Err(ahead());
    }
    Ok(cursor.seq)
}

async fn refuse(socket: Socket, what: String) -> Result<(), Gone> {
    let detail = format!("{what}; send {{\"type\":\"subscribe\",\"last_event_id\":\"…\"}}");
    turn_away(socket, &ApiError::malformed(detail)).await
}

async fn turn_away(socket: Socket, error: &ApiError) -> Result<(), Gone> {
    let refused = Control::Refused { code: error.code().to_owned(), detail: error.detail().to_owned() };
    socket.close(&refused, close::REFUSED).await;
    Ok(())
}
