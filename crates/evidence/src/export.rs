//! A log as a file: one JSON object a line, each with one field that says what it is. The order of the lines does not
//! matter, but for that of the entries.

use std::io::BufRead;

use interlock_core::json::HashHex;
use interlock_core::text::json_words::json_error;
use serde::{Deserialize, Serialize};

use crate::entry::{Entry, EntryOpening, Salt};
use crate::limits::{ENTRIES_MAX, LINE_BYTES_MAX};

/// An entry with what its leaf and its hashes need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoggedEntry {
    pub entry: Entry,
    pub leaf_salt: Salt,
    /// Absent where it was erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<EntryOpening>,
}

/// Leaves of the tree, as the server keeps them beside the entries: with them the exact entry is named that was altered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeafSpan {
    pub first: u64,
    pub hashes: Vec<HashHex>,
}

/// A log as it came from somewhere.
#[derive(Debug, Clone, Default)]
pub struct LogCopy {
    pub entries: Vec<LoggedEntry>,
    pub leaves: Vec<LeafSpan>,
    /// Signed heads. The largest one of the log's own name is its head.
    pub checkpoints: Vec<String>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "nearly all lines are entries, and each is written at once")]
pub enum ExportLine {
    Entry(LoggedEntry),
    Leaves(LeafSpan),
    /// The signed head at some size; the largest one is the log's.
    Checkpoint(String),
}

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("line {line} cannot be read: {what}")]
    Line { line: usize, what: String },
    #[error("the file has more than {ENTRIES_MAX} entries")]
    TooLong,
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// What is wrong with a line. That it is its own first line is not said: which one of the file it is stands before it.
fn in_words(error: &serde_json::Error) -> String {
    if error.to_string().starts_with("expected value") {
        return "it is not one field, `entry`, `leaves` or `checkpoint`, with its value".to_owned();
    }
    let words = json_error(error).replacen(" at line 1 column ", " at column ", 1);
    // The fields of a line are values to the parser.
    words.replacen("unknown value `", "unknown field `", 1)
}

/// Reads an exported log.
pub fn read(mut file: impl BufRead) -> Result<LogCopy, ExportError> {
    let mut log = LogCopy::default();
    let mut text = Vec::new();
    for line in 1.. {
        text.clear();
        let read = std::io::Read::take(&mut file, LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut text)?;
        let failed = |what: String| ExportError::Line { line, what };
        if read == 0 {
            break;
        }
        if read > LINE_BYTES_MAX {
            return Err(failed(format!("it is longer than {LINE_BYTES_MAX} bytes")));
        }
        if text.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice(text.trim_ascii_end()).map_err(|error| failed(in_words(&error)))? {
            ExportLine::Entry(entry) => log.entries.push(entry),
            ExportLine::Leaves(leaves) => log.leaves.push(leaves),
            ExportLine::Checkpoint(checkpoint) => log.checkpoints.push(checkpoint),
        }
        if log.entries.len() > ENTRIES_MAX {
            return Err(ExportError::TooLong);
        }
    }
    Ok(log)
}
