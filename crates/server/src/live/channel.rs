//! The newest frames of one topic, kept once for all its watchers.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use super::frame::Frame;
use super::limits;

/// What a channel has for a reader at some cursor.
#[derive(Debug)]
pub enum ChannelRead {
    Frames(Vec<Frame>),
    /// Nothing yet: wait for news.
    Nothing,
    /// The cursor is before what is kept.
    TooOld,
    /// All has been read, and nothing more will come.
    End,
}

pub struct Channel {
    kept: Mutex<RecentFrames>,
    /// Rises with every change; waiting readers compare it.
    news: watch::Sender<u64>,
}

struct RecentFrames {
    frames: VecDeque<Frame>,
    bytes: usize,
    /// The cursor before the oldest frame that is kept.
    floor: u64,
    ended: bool,
}

impl Channel {
    /// A channel that will hold what comes after `cursor`.
    pub fn from(cursor: u64) -> Self {
        let kept = RecentFrames { frames: VecDeque::new(), bytes: 0, floor: cursor, ended: false };
        Self { kept: Mutex::new(kept), news: watch::Sender::new(0) }
    }

    pub fn listen(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    pub fn listeners(&self) -> usize {
        self.news.receiver_count()
    }

    /// Adds frames, in order, and lets go of the oldest beyond the bounds.
    pub fn push(&self, frames: Vec<Frame>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        for frame in frames {
            kept.bytes += frame.bytes();
            kept.frames.push_back(frame);
        }
        // The last one stays, however large it is: watchers must get it.
        while kept.frames.len() > 1
            && (kept.frames.len() > limits::KEPT_FRAMES_MAX || kept.bytes > limits::KEPT_BYTES_MAX)
        {
            if let Some(oldest) = kept.frames.pop_front() {
                kept.bytes -= oldest.bytes();
                kept.floor = oldest.cursor;
            }
        }
        drop(kept);
        self.tell();
    }

    /// Nothing more will come.
    pub fn end(&self) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
        self.tell();
    }

    pub fn after(&self, cursor: u64) -> ChannelRead {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if cursor < kept.floor {
            return ChannelRead::TooOld;
        }
        let start = kept.frames.partition_point(|frame| frame.cursor <= cursor);
        let frames: Vec<Frame> = kept.frames.iter().skip(start).take(limits::BATCH_FRAMES_MAX).cloned().collect();
        match (frames.is_empty(), kept.ended) {
            (false, _) => ChannelRead::Frames(frames),
            (true, false) => ChannelRead::Nothing,
            (true, true) => ChannelRead::End,
        }
    }

    fn tell(&self) {
        self.news.send_modify(|count| *count += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(cursor: u64, bytes: usize) -> Frame {
        Frame { cursor, message: "".into(), event: vec![b'x'; bytes].into() }
    }

    fn cursors(found: ChannelRead) -> Vec<u64> {
        match found {
            ChannelRead::Frames(frames) => frames.iter().map(|frame| frame.cursor).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn readers_get_what_comes_after_their_cursor() {
        let channel = Channel::from(5);
        assert!(matches!(channel.after(4), ChannelRead::TooOld));
        assert!(matches!(channel.after(5), ChannelRead::Nothing));
        channel.push(vec![frame(6, 1), frame(7, 1), frame(8, 1)]);
        assert_eq!(cursors(channel.after(5)), [6, 7, 8]);
        assert_eq!(cursors(channel.after(7)), [8]);
        assert!(matches!(channel.after(8), ChannelRead::Nothing));
        channel.end();
        assert_eq!(cursors(channel.after(7)), [8]);
        assert!(matches!(channel.after(8), ChannelRead::End));
    }

    #[test]
    fn what_is_kept_is_bounded_by_number_and_by_size() {
        let channel = Channel::from(0);
        let count = limits::KEPT_FRAMES_MAX as u64 + 10;
        channel.push((1..=count).map(|cursor| frame(cursor, 1)).collect());
        assert!(matches!(channel.after(9), ChannelRead::TooOld));
        assert_eq!(cursors(channel.after(10)).len(), limits::BATCH_FRAMES_MAX);

        let channel = Channel::from(0);
        channel.push(vec![frame(1, 10), frame(2, limits::KEPT_BYTES_MAX + 1)]);
        assert!(matches!(channel.after(0), ChannelRead::TooOld));
        assert_eq!(cursors(channel.after(1)), [2], "the newest stays, however large");
    }
}
