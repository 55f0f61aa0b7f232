//! What a step writes, as server-sent events: goes on behind the last chunk when the connection is lost.

use std::time::Duration;

use interlock_core::ids::RunId;
use interlock_protocol::live::{limits, path};
use interlock_protocol::output::{OutputId, OutputView};
use reqwest::Response;
use reqwest::header::ACCEPT;
use tokio::time::{sleep, timeout};

use super::socket::LAST_EVENT_ID;
use super::sse::{EVENT_BYTES_MAX, fields};
use crate::client::{Client, ClientError, fill};

const RECONNECT_AFTER: Duration = Duration::from_secs(1);

/// What comes next.
pub enum OutputUpdate {
    Chunks(Vec<OutputView>),
    /// The connection was lost; it is tried again.
    Lost(String),
    /// The step has ended, and this was all.
    End,
}

pub struct OutputFollow {
    client: Client,
    run: RunId,
    step: String,
    attempt: Option<u32>,
    last: Option<OutputId>,
    open: Option<(Response, Vec<u8>)>,
    ended: bool,
}

impl OutputFollow {
    pub fn new(client: Client, run: RunId, step: String, attempt: Option<u32>) -> Self {
        Self { client, run, step, attempt, last: None, open: None, ended: false }
    }

    pub async fn next(&mut self) -> Result<OutputUpdate, ClientError> {
        loop {
            if self.ended {
                return Ok(OutputUpdate::End);
            }
            let Some((response, pending)) = &mut self.open else {
                if let Some(what) = self.connect().await? {
                    sleep(RECONNECT_AFTER).await;
                    return Ok(OutputUpdate::Lost(what));
                }
                continue;
            };
            let lost = match timeout(limits::HEARTBEAT.as_duration() * 3, response.chunk()).await {
                Ok(Ok(Some(bytes))) if pending.len() + bytes.len() <= EVENT_BYTES_MAX => {
                    pending.extend_from_slice(&bytes);
                    let chunks = self.take();
                    if chunks.is_empty() {
                        continue;
                    }
                    return Ok(OutputUpdate::Chunks(chunks));
                }
                Ok(Ok(Some(_))) => "a chunk is too large".to_owned(),
                Ok(Ok(None)) => "the server has closed the stream".to_owned(),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "nothing came, not even a heartbeat".to_owned(),
            };
            self.open = None;
            sleep(RECONNECT_AFTER).await;
            return Ok(OutputUpdate::Lost(lost));
        }
    }

    /// Opens the stream behind the last chunk. Answers why not, where it is worth another try.
    async fn connect(&mut self) -> Result<Option<String>, ClientError> {
        let path = fill(path::SSE_OUTPUT, &[("run", &self.run), ("step", &self.step)]);
        let mut call = self.client.get(path).query("attempt", self.attempt).header(ACCEPT, "text/event-stream");
        if let Some(last) = self.last {
            call = call.header(LAST_EVENT_ID, last.to_string());
        }
        let response = match call.open().await {
            Ok(response) => response,
            Err(error) if self.last.is_some() => return Ok(Some(error.to_string())),
            Err(error) => return Err(error),
        };
        if response.status().is_success() {
            self.open = Some((response, Vec::new()));
            return Ok(None);
        }
        let status = response.status();
        match self.client.refusal(response).await {
            Some(error) if !error.is_transient() => Err(error),
            _ => Ok(Some(format!("the server answered {status}"))),
        }
    }

    /// The chunks of the events that are complete.
    fn take(&mut self) -> Vec<OutputView> {
        let Some((_, pending)) = &mut self.open else { return Vec::new() };
        let mut chunks = Vec::new();
        while let Some(end) = pending.windows(2).position(|pair| pair == b"\n\n") {
            let block: Vec<u8> = pending.drain(..end + 2).collect();
            let (name, data) = fields(&String::from_utf8_lossy(&block));
            match name.as_str() {
                "stream.end" => self.ended = true,
                "output" => chunks.extend(serde_json::from_str::<OutputView>(&data)),
                _ => {}
            }
        }
        if let Some(last) = chunks.last() {
            self.last = Some(OutputId { attempt: last.attempt, seq: last.seq });
        }
        chunks
    }
}
