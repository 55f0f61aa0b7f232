//! What a step writes, as server-sent events. Chunks are read from the store behind the watcher's place, at the pace of its
//! socket: a slow watcher does not hold up the others, and nothing is kept for it.

use std::fmt::Write;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures::stream::unfold;
use interlock_core::time::Millis;
use interlock_engine::EngineError;
use interlock_engine::output::{OutputNews, OutputWatcher};
use interlock_protocol::live::Control;
use interlock_protocol::output::{OutputId, OutputView};
use interlock_store::{OutputPlace, OutputRow};
use tokio::time::timeout;

use super::credential::{Credential, CredentialCheck};
use super::frame::control_event;
use super::hub::Hub;
use crate::seats::Seat;

const HEARTBEAT: Millis = interlock_protocol::live::limits::HEARTBEAT;
/// What a browser waits before it reconnects.
const RETRY: &str = "retry: 1000\n\n";

struct Following {
    hub: Hub,
    _seat: Seat,
    watcher: OutputWatcher,
    credential: Credential,
    /// The last event has been sent.
    over: bool,
}

/// The stream as an answer.
pub fn stream_output((hub, seat): (Hub, Seat), watcher: OutputWatcher, credential: Credential) -> Response {
    let following = Following { hub, _seat: seat, watcher, credential, over: false };
    let first = futures::stream::once(async { Ok(Bytes::from_static(RETRY.as_bytes())) });
    let rest = unfold(following, |mut following| async move {
        if following.over {
            return None;
        }
        let events = following.next().await;
        Some((Ok::<_, std::convert::Infallible>(events), following))
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(futures::StreamExt::chain(first, rest))).into_response()
}

impl Following {
    async fn next(&mut self) -> Bytes {
        let shutdown = self.hub.shutdown().clone();
        loop {
            let before = self.watcher.place();
            match shutdown.run_until_cancelled(self.credential.check()).await {
                Some(CredentialCheck::Counts) => {}
                Some(CredentialCheck::Unknown) => return heartbeat(),
                Some(CredentialCheck::Over) => return self.last_word(&Credential::refusal()),
                None => return self.last_word(&Control::Closing { last_event_id: id_of(before) }),
            }
            let next = tokio::select! {
                () = shutdown.cancelled() => Err(EngineError::Closed),
                next = timeout(HEARTBEAT.as_duration(), self.watcher.next()) => match next {
                    Ok(next) => next,
                    Err(_) => return heartbeat(),
                },
            };
            // It may have been due while this waited: what has come is told after the look.
            if self.credential.is_due() && next.is_ok() {
                self.watcher.move_to(before);
                continue;
            }
            let last_event_id = id_of(self.watcher.place());
            let last_word = match next {
                Ok(OutputNews::Chunks(rows)) => return events(rows),
                Ok(OutputNews::End) => Control::End { last_event_id },
                Err(error) => {
                    if !matches!(error, EngineError::Closed) {
                        tracing::warn!(%error, "a stream of output could not be read");
                    }
                    Control::Closing { last_event_id }
                }
            };
            return self.last_word(&last_word);
        }
    }

    fn last_word(&mut self, control: &Control) -> Bytes {
        self.over = true;
        control_event(control)
    }
}

fn heartbeat() -> Bytes {
    control_event(&Control::Heartbeat { last_event_id: String::new() })
}

fn id_of(place: OutputPlace) -> String {
    OutputId { attempt: place.attempt, seq: place.seq }.to_string()
}

fn events(rows: Vec<OutputRow>) -> Bytes {
    let mut text = String::new();
    for row in rows {
        let id = OutputId { attempt: row.attempt, seq: row.seq };
        let OutputRow { attempt, seq, stream, text: written, at } = row;
        let view = OutputView { attempt, seq, stream, at, text: written };
        let json = serde_json::to_string(&view).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = write!(text, "id: {id}\nevent: output\ndata: {json}\n\n");
    }
    text.into()
}
