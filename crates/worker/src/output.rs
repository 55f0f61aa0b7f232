//! What an attempt writes while it runs, on its way to the server.
//!
//! ```text
//! push → pending, put together into chunks → one batch at a time, repeated until it is answered → finish
//! ```
//!
//! What is pending is bounded: a task that writes faster than the server takes waits for [`StepOutput::room`]. A server
//! that does not answer does not hold it up for long; then output is lost, and a chunk says how much.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use interlock_core::limits::{OUTPUT_BATCH_BYTES_MAX, OUTPUT_BATCH_CHUNKS_MAX, OUTPUT_CHUNK_BYTES_MAX};
use interlock_core::work::AttemptRef;
use interlock_core::work::output::{OutputBatch, OutputChunk, OutputStream, OutputTaken, text_of};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use crate::port::Port;
use crate::{limits, trace};

/// The output of one attempt.
pub(crate) struct StepOutput {
    at: AttemptRef,
    epoch: u64,
    port: Arc<dyn Port>,
    state: Mutex<Pending>,
    /// Something is to be sent, or nothing more will come.
    news: Notify,
    /// Something was sent.
    room: Notify,
}

#[derive(Default)]
struct Pending {
    chunks: VecDeque<(OutputStream, String)>,
    bytes: usize,
    /// Lost since the last chunk, for want of room.
    lost: usize,
    /// A writer has waited for room in vain; none waits until there is some.
    overrun: bool,
    /// Writers do not wait for room any more.
    hurried: bool,
    closed: bool,
    kept: KeptOutput,
    sender: Option<JoinHandle<()>>,
    stderr_tail: StderrTail,
}

/// How much of the output is still wanted.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum KeptOutput {
    #[default]
    All,
    /// The server keeps no more of it.
    Status,
    /// The server takes none, or the attempt is over.
    Nothing,
}

impl StepOutput {
    pub fn new(at: AttemptRef, epoch: u64, port: Arc<dyn Port>) -> Arc<Self> {
        Arc::new(Self { at, epoch, port, state: Mutex::default(), news: Notify::new(), room: Notify::new() })
    }

    /// The state is consistent after every statement that changes it, so a panic elsewhere cannot have broken it.
    fn state(&self) -> MutexGuard<'_, Pending> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what was written. Without [`StepOutput::room`] in between, what does not fit is lost.
    pub fn push(self: &Arc<Self>, stream: OutputStream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut state = self.state();
        if stream == OutputStream::Stderr {
            state.stderr_tail.push(bytes);
        }
        if !state.wants(stream) {
            return;
        }
        if state.bytes >= limits::OUTPUT_PENDING_MAX && stream != OutputStream::Status {
            state.lost += bytes.len();
            return;
        }
        state.tell_lost();
        state.add(stream, &text_of(bytes));
        if state.sender.is_none() {
            let output = Arc::clone(self);
            let sending = async move { output.send_all().await };
            state.sender = Some(tokio::spawn(trace::within(trace::of_attempt(), sending)));
        }
        drop(state);
        self.news.notify_one();
    }

    /// Waits until there is room again, for a while.
    pub async fn room(&self) {
        let waiting = async {
            loop {
                let room = self.room.notified();
                tokio::pin!(room);
                room.as_mut().enable();
                if self.state().has_room() {
                    return;
                }
                room.await;
            }
        };
        if timeout(limits::OUTPUT_ROOM_WAIT, waiting).await.is_err() {
            self.state().overrun = true;
        }
    }

    /// Writers do not wait for room from now on.
    pub fn hurry(&self) {
        self.state().hurried = true;
        self.room.notify_waiters();
    }

    /// The end of standard error, for people.
    pub fn stderr_tail(&self, chars_max: usize) -> String {
        self.state().stderr_tail.text(chars_max)
    }

    /// Nothing more comes. Waits until all of it is at the server, for a while.
    pub async fn finish(&self) {
        let sender = {
            let mut state = self.state();
            state.closed = true;
            state.tell_lost();
            state.sender.take()
        };
        self.news.notify_one();
        let Some(mut sender) = sender else { return };
        if timeout(limits::OUTPUT_FLUSH, &mut sender).await.is_err() {
            sender.abort();
            warn!(run = %self.at.run, attempt = self.at.attempt, "the end of a step's output did not reach the server");
        }
    }

    async fn send_all(&self) {
        let mut next_seq = 1;
        // The first word of a burst waits for the others.
        while let Some(chunks) = self.next_batch(next_seq).await {
            let batch = OutputBatch { at: self.at, epoch: self.epoch, chunks };
            match self.port.output(batch).await {
                Ok(OutputTaken { next_seq: next, cut }) => {
                    next_seq = next;
                    self.sent(if cut { KeptOutput::Status } else { KeptOutput::All });
                }
                Err(error) => {
                    debug!(run = %self.at.run, attempt = self.at.attempt, %error, "output is not taken any more");
                    self.sent(KeptOutput::Nothing);
                    return;
                }
            }
            sleep(limits::OUTPUT_PAUSE).await;
        }
    }

    fn sent(&self, kept: KeptOutput) {
        let mut state = self.state();
        state.keep(kept);
        state.overrun = state.overrun && !state.has_room_for_more();
        drop(state);
        self.room.notify_waiters();
    }

    /// What is pending, numbered; waits for it. None once all is sent.
    async fn next_batch(&self, mut seq: u64) -> Option<Vec<OutputChunk>> {
        loop {
            let news = self.news.notified();
            {
                let mut state = self.state();
                let mut chunks = Vec::new();
                let mut bytes = 0;
                while let Some((_, text)) = state.chunks.front() {
                    if chunks.len() == OUTPUT_BATCH_CHUNKS_MAX || bytes + text.len() > OUTPUT_BATCH_BYTES_MAX {
                        break;
                    }
                    bytes += text.len();
                    if let Some((stream, text)) = state.chunks.pop_front() {
                        chunks.push(OutputChunk { seq, stream, text });
                        seq += 1;
                    }
                }
                state.bytes -= bytes;
                match (chunks.is_empty(), state.closed) {
                    (false, _) => return Some(chunks),
                    (true, true) => return None,
                    (true, false) => {}
                }
            }
            news.await;
        }
    }
}

impl Pending {
    fn wants(&self, stream: OutputStream) -> bool {
        !self.closed
            && match self.kept {
                KeptOutput::All => true,
                KeptOutput::Status => stream == OutputStream::Status,
                KeptOutput::Nothing => false,
            }
    }

    const fn has_room_for_more(&self) -> bool {
        self.bytes < limits::OUTPUT_PENDING_MAX
    }

    fn has_room(&self) -> bool {
        self.has_room_for_more() || self.overrun || self.hurried || self.closed || self.kept != KeptOutput::All
    }

    /// Says how much was lost, once.
    fn tell_lost(&mut self) {
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 && self.kept != KeptOutput::Nothing {
            let mark = format!("[{lost} bytes of output lost: the server did not take them in time]\n");
            self.add(OutputStream::Status, &mark);
        }
    }

    /// Adds to the last chunk, where that is of the same stream, and to further ones.
    fn add(&mut self, stream: OutputStream, text: &str) {
        self.bytes += text.len();
        let mut rest = text;
        if let Some((_, joined)) = self.chunks.back_mut().filter(|(last, _)| *last == stream) {
            let room = OUTPUT_CHUNK_BYTES_MAX.saturating_sub(joined.len());
            let (fits, more) = rest.split_at(rest.floor_char_boundary(room));
            joined.push_str(fits);
            rest = more;
        }
        while !rest.is_empty() {
            let (part, more) = rest.split_at(rest.floor_char_boundary(OUTPUT_CHUNK_BYTES_MAX));
            self.chunks.push_back((stream, part.to_owned()));
            rest = more;
        }
    }

    fn keep(&mut self, kept: KeptOutput) {
        if self.kept == kept || kept == KeptOutput::All {
            return;
        }
        self.kept = kept;
        self.chunks.retain(|(stream, _)| kept == KeptOutput::Status && *stream == OutputStream::Status);
        self.bytes = self.chunks.iter().map(|(_, text)| text.len()).sum();
    }
}

/// The last bytes of a stream.
#[derive(Default)]
struct StderrTail(Vec<u8>);

impl StderrTail {
    fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        let excess = self.0.len().saturating_sub(limits::STDERR_TAIL_BYTES);
        self.0.drain(..excess);
    }

    fn text(&self, chars_max: usize) -> String {
        let text = String::from_utf8_lossy(&self.0);
        let text = text.trim();
        let from = text.char_indices().rev().nth(chars_max).map_or(0, |(at, _)| at);
        text[from..].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_one_stream_become_chunks_of_bounded_size() {
        let mut pending = Pending::default();
        pending.add(OutputStream::Stdout, "a");
        pending.add(OutputStream::Stdout, "b");
        pending.add(OutputStream::Stderr, "c");
        pending.add(OutputStream::Stdout, &"ü".repeat(OUTPUT_CHUNK_BYTES_MAX));
        let lengths: Vec<usize> = pending.chunks.iter().map(|(_, text)| text.len()).collect();
        assert_eq!(lengths, [2, 1, OUTPUT_CHUNK_BYTES_MAX, OUTPUT_CHUNK_BYTES_MAX]);
        assert_eq!(pending.bytes, lengths.iter().sum::<usize>());
    }

    #[test]
    fn once_output_is_cut_only_the_workers_own_words_are_sent() {
        let mut pending = Pending::default();
        pending.add(OutputStream::Stdout, "much");
        pending.add(OutputStream::Status, "exit code 0");
        pending.keep(KeptOutput::Status);
        assert_eq!(pending.chunks.len(), 1);
        assert!(pending.wants(OutputStream::Status) && !pending.wants(OutputStream::Stdout) && pending.has_room());
        pending.keep(KeptOutput::Nothing);
        assert!(pending.chunks.is_empty() && pending.bytes == 0);
    }

    #[test]
    fn a_tail_is_the_end_in_whole_characters() {
        let mut tail = StderrTail::default();
        tail.push(&vec![b'x'; limits::STDERR_TAIL_BYTES * 2]);
        tail.push("größe\n".as_bytes());
        assert_eq!(tail.text(4), "größe");
        assert!(tail.0.len() <= limits::STDERR_TAIL_BYTES);
    }
}
