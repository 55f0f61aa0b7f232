use interlock_core::limits::OUTPUT_STATUS_BYTES_MAX;
use interlock_core::time::Timestamp;
use interlock_core::work::AttemptRef;
use interlock_core::work::output::{OutputChunk, OutputStream, OutputTaken};

use super::sql;
use crate::db::Db;
use crate::error::DbError;
use crate::value::args;
use crate::write::{Write, WriteLane, boxed};

/// Stores the next chunks of an attempt, if it is the one that runs.
#[derive(Debug, Clone)]
pub struct AppendOutput {
    pub at: AttemptRef,
    pub chunks: Vec<OutputChunk>,
    /// What is kept of an attempt; the rest is cut, with a mark.
    pub bytes_max: u64,
    pub now: Timestamp,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputAppended {
    Taken(OutputTaken),
    /// The attempt is over. The step is at this one.
    Stale {
        current: u32,
    },
    /// Chunks before these are missing.
    Gap {
        expected: u64,
    },
}

/// An attempt's output as it stands while chunks are added.
struct OutputStanding {
    next_seq: u64,
    bytes: u64,
    status_bytes: u64,
    cut: bool,
}

impl Write for AppendOutput {
    type Answer = OutputAppended;
    const LANE: WriteLane = WriteLane::Output;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<OutputAppended, DbError> {
        let at = self.at;
        let begun = args![self.now, at.tenant, at.run, at.position, at.attempt];
        let Some(mut row) = db.query(&sql::OUTPUT_BEGIN, begun).await?.pop() else {
            let current = db.query(&sql::OUTPUT_CURRENT, args![at.tenant, at.run, at.position]).await?.pop();
            // A step that is not under way has no attempt that could take it: this one is over.
            let current = current.map(|mut row| row.num("attempt")).transpose()?.unwrap_or(at.attempt);
            return Ok(OutputAppended::Stale { current });
        };
        let mut standing = OutputStanding {
            next_seq: row.num("next_seq")?,
            bytes: row.num("bytes")?,
            status_bytes: row.num("status_bytes")?,
            cut: row.flag("cut")?,
        };
        let first = standing.next_seq;
        let mut expected = first;
        for chunk in self.chunks.iter().filter(|chunk| chunk.seq >= first) {
            if chunk.seq != expected {
                return Ok(OutputAppended::Gap { expected });
            }
            expected += 1;
        }
        for chunk in self.chunks.iter().filter(|chunk| chunk.seq >= first) {
            self.add(db, &mut standing, chunk).await?;
        }
        // Also past what was not kept, so that a repeat of the batch adds nothing.
        standing.next_seq = standing.next_seq.max(expected);
        if standing.next_seq > first {
            let OutputStanding { next_seq, bytes, status_bytes, cut } = standing;
            let values = args![next_seq, bytes, status_bytes, cut, at.tenant, at.run, at.position, at.attempt];
            db.execute(&sql::OUTPUT_ADVANCE, values).await?;
        }
        Ok(OutputAppended::Taken(OutputTaken { next_seq: standing.next_seq, cut: standing.cut }))
    }
}

impl AppendOutput {
    async fn add<D: Db>(&self, db: &D, standing: &mut OutputStanding, chunk: &OutputChunk) -> Result<(), DbError> {
        let length = chunk.text.len() as u64;
        if chunk.stream == OutputStream::Status {
            if standing.status_bytes + length <= OUTPUT_STATUS_BYTES_MAX {
                standing.status_bytes += length;
                return self.put(db, standing, chunk.stream, &chunk.text).await;
            }
            return Ok(());
        }
        if standing.cut {
            return Ok(());
        }
        let room = usize::try_from(self.bytes_max.saturating_sub(standing.bytes)).unwrap_or(usize::MAX);
        let kept = &chunk.text[..chunk.text.floor_char_boundary(room)];
        standing.bytes += kept.len() as u64;
        if !kept.is_empty() {
            self.put(db, standing, chunk.stream, kept).await?;
        }
        if kept.len() < chunk.text.len() {
            standing.cut = true;
            let mark = format!("[output cut: the first {} bytes are kept]\n", standing.bytes);
            standing.status_bytes += mark.len() as u64;
            self.put(db, standing, OutputStream::Status, &mark).await?;
        }
        Ok(())
    }

    async fn put<D: Db>(
        &self,
        db: &D,
        standing: &mut OutputStanding,
        stream: OutputStream,
        text: &str,
    ) -> Result<(), DbError> {
        let (at, data) = (self.at, text.as_bytes().to_vec());
        let key = args![at.tenant, at.run, at.position, at.attempt, standing.next_seq];
        let values = key.into_iter().chain(args![stream.as_str(), data, self.now]).collect();
        db.execute(&sql::OUTPUT_PUT, values).await?;
        standing.next_seq += 1;
        Ok(())
    }
}
