//! Output on its way to the caller: redacted, put together into chunks, numbered, and cut at the limit.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use crate::limits;
use crate::redact::{Redactor, Values};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Stdout,
    Stderr,
    /// From the sandbox itself: that output was cut, that the command was killed.
    Status,
}

/// A piece of output. Numbers are dense and shared by all streams of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub seq: u64,
    pub stream: Stream,
    /// Since the command started.
    pub at: Duration,
    pub bytes: Vec<u8>,
}

impl Chunk {
    /// For people; bytes that are no text are replaced.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// How much output there was.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct OutputCount {
    /// Handed to the caller.
    pub bytes: u64,
    /// Thrown away beyond the limit.
    pub cut_bytes: u64,
}

pub(super) struct Pump {
    pub stdout: Receiver,
    pub stderr: Receiver,
    pub values: Arc<Values>,
    pub limit: u64,
    pub began: Instant,
    pub chunks: mpsc::Sender<Chunk>,
}

impl Pump {
    /// Until both streams have ended. A caller that does not read holds the command up; one that is gone does not.
    pub async fn run(self) -> OutputCount {
        let Self { mut stdout, mut stderr, values, limit, began, chunks } = self;
        let mut sink = Sink { seq: 0, count: OutputCount::default(), limit, began, chunks };
        let mut out = Lane::new(Stream::Stdout, &values);
        let mut err = Lane::new(Stream::Stderr, &values);
        loop {
            let due = [out.due, err.due].into_iter().flatten().min();
            let far = Instant::now() + limits::CHUNK_AGE * 1_000;
            let read = async {
                tokio::select! {
                    read = stdout.read(&mut out.buffer), if !out.ended => (Stream::Stdout, read),
                    read = stderr.read(&mut err.buffer), if !err.ended => (Stream::Stderr, read),
                }
            };
            match timeout_at(due.unwrap_or(far), read).await {
                Ok((stream, read)) => {
                    let lane = if stream == Stream::Stdout { &mut out } else { &mut err };
                    lane.take(read.unwrap_or(0), sink.is_full());
                    if lane.pending.len() >= limits::CHUNK_BYTES || lane.ended {
                        sink.send(lane).await;
                    }
                }
                Err(_) => {
                    for lane in [&mut out, &mut err] {
                        if lane.due.is_some_and(|due| due <= Instant::now()) {
                            sink.send(lane).await;
                        }
                    }
                }
            }
            if out.ended && err.ended {
                sink.count.cut_bytes += out.discarded + err.discarded;
                return sink.count;
            }
        }
    }
}

/// One stream's state.
struct Lane {
    stream: Stream,
    redactor: Redactor,
    buffer: Box<[u8]>,
    pending: Vec<u8>,
    /// When what is pending must go.
    due: Option<Instant>,
    ended: bool,
    discarded: u64,
}

impl Lane {
    fn new(stream: Stream, values: &Arc<Values>) -> Self {
        Self {
            stream,
            redactor: Redactor::new(Arc::clone(values)),
            buffer: vec![0; 4 * limits::CHUNK_BYTES].into(),
            pending: Vec::new(),
            due: None,
            ended: false,
            discarded: 0,
        }
    }

    fn take(&mut self, len: usize, full: bool) {
        if len == 0 {
            self.ended = true;
            self.redactor.finish(&mut self.pending);
        } else if full {
            self.discarded += len as u64;
        } else {
            self.redactor.push(&self.buffer[..len], &mut self.pending);
        }
        if !self.pending.is_empty() && self.due.is_none() {
            self.due = Some(Instant::now() + limits::CHUNK_AGE);
        }
    }
}

struct Sink {
    seq: u64,
    count: OutputCount,
    limit: u64,
    began: Instant,
    chunks: mpsc::Sender<Chunk>,
}

impl Sink {
    fn is_full(&self) -> bool {
        self.count.bytes >= self.limit
    }

    async fn send(&mut self, lane: &mut Lane) {
        lane.due = None;
        let mut pending = std::mem::take(&mut lane.pending);
        if !lane.ended {
            lane.pending = pending.split_off(whole_characters(&pending));
        }
        let was_full = self.is_full();
        let room = usize::try_from(self.limit - self.count.bytes).unwrap_or(usize::MAX);
        if pending.len() > room {
            self.count.cut_bytes += (pending.len() - room) as u64;
            pending.truncate(room);
        }
        self.count.bytes += pending.len() as u64;
        for part in pending.chunks(limits::CHUNK_BYTES) {
            self.chunk(lane.stream, part.to_vec()).await;
        }
        if self.is_full() && !was_full {
            let mark = format!("[output cut at {} bytes: the rest is not kept]\n", self.limit);
            self.chunk(Stream::Status, mark.into_bytes()).await;
        }
    }

    async fn chunk(&mut self, stream: Stream, bytes: Vec<u8>) {
        let chunk = Chunk { seq: self.seq, stream, at: self.began.elapsed(), bytes };
        self.seq += 1;
        // A caller that has stopped listening still gets the command's end.
        let _ = self.chunks.send(chunk).await;
    }
}

/// The length without a character that is not complete yet.
fn whole_characters(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(3);
    match bytes[tail..].iter().rposition(|byte| byte & 0b1100_0000 != 0b1000_0000) {
        Some(at) => {
            let begun = tail + at;
            let length = match bytes[begun] {
                0xc0..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf7 => 4,
                _ => 1,
            };
            if begun + length > bytes.len() { begun } else { bytes.len() }
        }
        None => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_not_cut_in_two() {
        assert_eq!(whole_characters("aü".as_bytes()), 3);
        assert_eq!(whole_characters(&"aü".as_bytes()[..2]), 1);
        assert_eq!(whole_characters(&"\u{1F600}".as_bytes()[..3]), 0);
        assert_eq!(whole_characters(&[0x80; 8]), 8, "no text at all");
        assert_eq!(whole_characters(b""), 0);
    }
}
