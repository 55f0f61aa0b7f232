//! A stream as server-sent events.

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures::stream::unfold;
use interlock_core::time::Millis;
use interlock_engine::EngineError;
use interlock_protocol::live::{Control, Cursor};
use tokio::time::timeout;

use super::credential::{Credential, CredentialCheck};
use super::frame::{Frame, control_event};
use super::hub::Hub;
use super::subscription::{Next, Subscription};

const HEARTBEAT: Millis = interlock_protocol::live::limits::HEARTBEAT;
/// What a browser waits before it reconnects, unless it is told otherwise.
const FIRST_WORDS: &str = "retry: 1000\n\n";

struct Reading {
    hub: Hub,
    subscription: Subscription,
    credential: Credential,
    /// The last event has been sent.
    over: bool,
}

/// The stream as an answer.
pub fn stream(hub: Hub, subscription: Subscription, credential: Credential) -> Response {
    let reading = Reading { hub, subscription, credential, over: false };
    let first = futures::stream::once(async { Ok(Bytes::from_static(FIRST_WORDS.as_bytes())) });
    let rest = unfold(reading, |mut reading| async move {
        if reading.over {
            return None;
        }
        let chunk = reading.next().await;
        Some((Ok::<_, std::convert::Infallible>(chunk), reading))
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        // Proxies that collect an answer before they pass it on would turn live into late.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(futures::StreamExt::chain(first, rest))).into_response()
}

impl Reading {
    async fn next(&mut self) -> Bytes {
        let shutdown = self.hub.shutdown().clone();
        loop {
            let before = self.subscription.cursor();
            match shutdown.run_until_cancelled(self.credential.check()).await {
                Some(CredentialCheck::Counts) => {}
                Some(CredentialCheck::Unknown) => return heartbeat(),
                Some(CredentialCheck::Over) => return self.last_word(&Credential::refusal()),
                None => {
                    let last_event_id = Cursor::after(before).to_string();
                    return self.last_word(&Control::Closing { last_event_id });
                }
            }
            let next = tokio::select! {
                () = shutdown.cancelled() => Err(EngineError::Closed),
                next = timeout(HEARTBEAT.as_duration(), self.subscription.next()) => match next {
                    Ok(next) => next,
                    Err(_) => return heartbeat(),
                },
            };
            // It may have been due while this waited: what has come is told after the look.
            if self.credential.is_due() && next.is_ok() {
                self.subscription.move_to(before);
                continue;
            }
            return self.told(next);
        }
    }

    fn told(&mut self, next: Result<Next, EngineError>) -> Bytes {
        let last_event_id = Cursor::after(self.subscription.cursor()).to_string();
        let last_word = match next {
            Ok(Next::Frames(frames)) => return joined(frames),
            Ok(Next::End) => Control::End { last_event_id },
            Ok(Next::Behind) => {
                let reason = "events came faster than this connection took them".to_owned();
                Control::Resync { last_event_id, reason }
            }
            Err(error) => {
                if !matches!(error, EngineError::Closed) {
                    tracing::warn!(%error, "a live stream could not be read");
                }
                Control::Closing { last_event_id }
            }
        };
        self.last_word(&last_word)
    }

    fn last_word(&mut self, control: &Control) -> Bytes {
        self.over = true;
        control_event(control)
    }
}

fn heartbeat() -> Bytes {
    control_event(&Control::Heartbeat { last_event_id: String::new() })
}

/// One frame is passed on as it is; several are written in one go.
fn joined(mut frames: Vec<Frame>) -> Bytes {
    if frames.len() == 1
        && let Some(frame) = frames.pop()
    {
        return frame.event;
    }
    let mut all = Vec::with_capacity(frames.iter().map(Frame::bytes).sum());
    for frame in &frames {
        all.extend_from_slice(&frame.event);
    }
    all.into()
}
