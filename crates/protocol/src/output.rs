//! What steps write while they run, as it is asked for: in pages, or as a stream whose ids are [`OutputId`]s.

use std::fmt;
use std::str::FromStr;

use interlock_core::time::Timestamp;
use interlock_core::work::output::OutputStream;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Bounds of an answer.
pub mod limits {
    /// Chunks of one answer, and how many bytes of text it has, give or take a chunk.
    pub const CHUNKS_MAX: usize = 500;
    pub const PAGE_BYTES_MAX: usize = 1 << 20;
    /// Attempts whose output is listed.
    pub const ATTEMPTS_MAX: usize = 1_000;
}

/// A piece of output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputView {
    pub attempt: u32,
    /// Rises within the attempt, beginning with 1, over all streams.
    pub seq: u64,
    pub stream: OutputStream,
    /// When the server got it.
    pub at: Timestamp,
    pub text: String,
}

/// How much an attempt has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputAttempt {
    pub attempt: u32,
    /// The number of its last chunk.
    pub last_seq: u64,
    /// Of standard output and standard error, as far as they are kept.
    pub bytes: u64,
    /// There was more than is kept.
    pub cut: bool,
    pub began_at: Timestamp,
    pub last_at: Timestamp,
}

/// A page of what one attempt has written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputPage {
    pub step: String,
    pub position: u32,
    /// The attempt that the chunks are of; 0 where none has written anything.
    pub attempt: u32,
    pub chunks: Vec<OutputView>,
    /// Ask with this as `after` for what follows.
    pub next_after: u64,
    /// Whether there is more already.
    pub more: bool,
    /// All attempts of the step that have written something.
    pub attempts: Vec<OutputAttempt>,
}

/// The place behind a chunk in the stream of a step, written `ATTEMPT.SEQ`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OutputId {
    pub attempt: u32,
    pub seq: u64,
}

impl fmt::Display for OutputId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.attempt, self.seq)
    }
}

/// A text that is no place in a stream of output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no place in a step's output: send the `id` of the last chunk that you have, as in `1.17`")]
pub struct InvalidOutputId(String);

impl FromStr for OutputId {
    type Err = InvalidOutputId;

    fn from_str(text: &str) -> Result<Self, InvalidOutputId> {
        let parsed = text
            .split_once('.')
            .and_then(|(attempt, seq)| Some(Self { attempt: attempt.parse().ok()?, seq: seq.parse().ok()? }));
        parsed.ok_or_else(|| InvalidOutputId(text.chars().take(40).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        let place = OutputId { attempt: 2, seq: 17 };
        assert_eq!(place.to_string().parse(), Ok(place));
        for text in ["", "2", "2.", ".17", "2.17.1", "a.b", "-1.2"] {
            assert!(text.parse::<OutputId>().is_err(), "{text}");
        }
    }
}
