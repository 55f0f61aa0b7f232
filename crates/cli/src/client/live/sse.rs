//! A stream as server-sent events.

use interlock_protocol::live::{EventView, limits, path};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Response, StatusCode};
use tokio::time::timeout;

use super::socket::LAST_EVENT_ID;
use super::{Failed, RunEvent, StreamItem, Topic};
use crate::client::{Client, ClientError};

/// The largest event that is taken.
pub(super) const EVENT_BYTES_MAX: usize = 16 << 20;

pub struct Events {
    response: Response,
    /// What came in and is not a whole event yet.
    pending: Vec<u8>,
    ended: bool,
    server: String,
}

impl Events {
    pub async fn open(client: &Client, topic: Topic, cursor: Option<u64>) -> Result<Self, Failed> {
        let mut call = client.get(topic.path(path::SSE_RUN, path::SSE_FEED)).header(ACCEPT, "text/event-stream");
        if let Some(cursor) = cursor {
            call = call.header(LAST_EVENT_ID, cursor.to_string());
        }
        let response = call.open().await.map_err(Failed::Away)?;
        let status = response.status();
        let server = client.target().server.clone();
        if status == StatusCode::NO_CONTENT {
            return Ok(Self { response, pending: Vec::new(), ended: true, server });
        }
        if !status.is_success() {
            return match client.refusal(response).await {
                Some(error) if error.is_transient() => Err(Failed::Away(error)),
                Some(error) => Err(Failed::Refused(error)),
                None => Err(Failed::Blocked(format!("no event stream from {server}: it answered {status}"))),
            };
        }
        let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if !media_type.is_some_and(|value| value.starts_with("text/event-stream")) {
            return Err(Failed::Blocked(format!("no event stream from {server}: it answered something else")));
        }
        Ok(Self { response, pending: Vec::new(), ended: false, server })
    }

    pub async fn next(&mut self) -> Result<StreamItem, Failed> {
        if self.ended {
            return Ok(StreamItem::End);
        }
        let away = |what: String| {
            Failed::Away(ClientError::Unreachable { server: self.server.clone(), loopback: false, what })
        };
        let patience = limits::HEARTBEAT.as_duration() * 3;
        let chunk = match timeout(patience, self.response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => return Ok(StreamItem::Closed),
            Ok(Err(error)) => return Err(away(error.to_string())),
            Err(_) => return Err(away("nothing came, not even a heartbeat".into())),
        };
        if self.pending.len() + chunk.len() > EVENT_BYTES_MAX {
            return Err(away("an event is too large".into()));
        }
        self.pending.extend_from_slice(&chunk);
        let mut events = Vec::new();
        while let Some(end) = self.pending.windows(2).position(|pair| pair == b"\n\n") {
            let block: Vec<u8> = self.pending.drain(..end + 2).collect();
            let (name, data) = fields(&String::from_utf8_lossy(&block));
            match name.as_str() {
                "stream.end" => self.ended = true,
                "stream.resync" | "stream.closing" if events.is_empty() => return Ok(StreamItem::Closed),
                _ => events.extend(serde_json::from_str::<EventView>(&data).ok().and_then(RunEvent::from_view)),
            }
        }
        Ok(if events.is_empty() { StreamItem::Nothing } else { StreamItem::Events(events) })
    }
}

/// The name and the data of an event; comments and the rest are passed over.
pub(super) fn fields(block: &str) -> (String, String) {
    let (mut name, mut data) = (String::new(), String::new());
    for line in block.lines() {
        if let Some(value) = line.strip_prefix("event:") {
            value.trim_start().clone_into(&mut name);
        } else if let Some(value) = line.strip_prefix("data:") {
            if !data.is_empty() {
                data.push('\n');
            }
            data.push_str(value.strip_prefix(' ').unwrap_or(value));
        }
    }
    (name, data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_comments_passed_over() {
        let (name, data) = fields(": hello\nid: 4\nevent: session.created\ndata: {\"a\":\ndata: 1}\n\n");
        assert_eq!((name.as_str(), data.as_str()), ("session.created", "{\"a\":\n1}"));
        assert_eq!(fields(": heartbeat\n\n"), (String::new(), String::new()));
    }
}
