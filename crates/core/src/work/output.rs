//! What a step writes while it runs, in numbered chunks. A worker sends them in batches, one batch at a time for each attempt;
//! a batch that comes twice is stored once.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::AttemptRef;
use crate::json;
use crate::state::{UnknownName, names};

names!(
    /// Where a chunk of output comes from.
    OutputStream, "output stream", {
        Stdout = "stdout",
        Stderr = "stderr",
        /// From the worker or the server: how the program ended, that output was cut or lost.
        Status = "status",
    }
);

/// A piece of output. Numbers begin with 1 and are shared by all streams of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputChunk {
    pub seq: u64,
    pub stream: OutputStream,
    /// Without secrets. Bytes that are no text stand there as `\xNN`.
    pub text: String,
}

/// The next chunks of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputBatch {
    #[serde(flatten)]
    pub at: AttemptRef,
    pub epoch: u64,
    pub chunks: Vec<OutputChunk>,
}

/// The answer to an [`OutputBatch`]: its chunks are stored, or were before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputTaken {
    /// The number of the next chunk.
    pub next_seq: u64,
    /// The attempt has written as much as is kept: from here on only `status` is.
    pub cut: bool,
}

/// The text of some bytes. What is no UTF-8 is spelled out as `\xNN`, so that a reader does not take it for text, and so is NUL,
/// which no text may hold.
pub fn text_of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for part in bytes.utf8_chunks() {
        for (number, between) in part.valid().split(json::NUL).enumerate() {
            text.push_str(if number == 0 { "" } else { "\\x00" });
            text.push_str(between);
        }
        for byte in part.invalid() {
            // Writing to a string cannot fail.
            let _ = fmt::Write::write_fmt(&mut text, format_args!("\\x{byte:02x}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_seen() {
        assert_eq!(text_of("größe\n".as_bytes()), "größe\n");
        assert_eq!(text_of(b"a\xff\xfeb\xc3"), "a\\xff\\xfeb\\xc3");
        assert_eq!(text_of(b"\0a\0\0b"), "\\x00a\\x00\\x00b");
    }
}
