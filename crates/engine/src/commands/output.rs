//! What steps write while they run: taken from the worker whose attempt it is, stored beside the run, shown to its
//! watchers.

use interlock_boxed::boxed;
use interlock_core::ids::SessionId;
use interlock_core::limits;
use interlock_core::rejection::Rejection;
use interlock_core::run::Run;
use interlock_core::run::change::ChangeSet;
use interlock_core::work::output::{OutputBatch, OutputChunk, OutputTaken};
use interlock_store::{AppendOutput, OutputAppended};

use crate::Engine;
use crate::error::EngineError;
use crate::parts::Workers;
use crate::run_log::{OutputSize, log_output};

/// Output of all steps that may be on its way to the store, in KiB. Who brings more waits, and its worker with it.
pub(crate) const OUTPUT_IN_FLIGHT_KIB: usize = 16 << 10;

/// Attempts of one run whose output is counted when it ends.
const COUNTED_ATTEMPTS_MAX: usize = 10_000;

impl Engine {
    /// Adds what the commands of a run that ends have written to its numbers. Nothing comes after that: only the attempt that runs
    /// can write.
    pub(crate) async fn count_printed(&self, run: &Run, change: &mut ChangeSet) -> Result<(), EngineError> {
        let is_command = |position: u32| run.spec(position).is_command();
        let steps = run.steps.len() as u32;
        if !(0..steps).any(is_command) {
            return Ok(());
        }
        let heads = self.0.store.for_tenant(run.tenant).output_heads(run.id, COUNTED_ATTEMPTS_MAX).await?;
        let printed = heads.iter().filter(|head| head.position < steps && is_command(head.position));
        let printed: u64 = printed.map(|head| head.bytes).sum();
        let stored = change.end.as_mut().and_then(|end| end.notes.as_mut());
        for notes in stored.into_iter().chain(change.delta.notes.as_mut()) {
            if let Some(metrics) = &mut notes.metrics {
                metrics.printed_bytes = printed;
            }
        }
        Ok(())
    }
}

impl Workers {
    /// Takes what an attempt has written. The next batch of the attempt comes when this one is answered.
    #[boxed]
    pub async fn output(&self, session: SessionId, batch: OutputBatch) -> Result<OutputTaken, EngineError> {
        let OutputBatch { at, epoch, chunks } = batch;
        if epoch != self.0.0.epoch {
            return Err(EngineError::StaleEpoch);
        }
        self.speaks_for(session, at).await?;
        self.check_holder(session, at).await?;
        let bytes: usize = chunks.iter().map(|chunk| chunk.text.len()).sum();
        let longest = chunks.iter().map(|chunk| chunk.text.len()).max().unwrap_or_default();
        let invalid = |what: String| Err(Rejection::InvalidInput { what }.into());
        if chunks.is_empty() || chunks.len() > limits::OUTPUT_BATCH_CHUNKS_MAX {
            return invalid(format!("a batch has 1 to {} chunks of output", limits::OUTPUT_BATCH_CHUNKS_MAX));
        }
        if longest > limits::OUTPUT_CHUNK_BYTES_MAX || bytes > limits::OUTPUT_BATCH_BYTES_MAX {
            let (chunk, batch) = (limits::OUTPUT_CHUNK_BYTES_MAX, limits::OUTPUT_BATCH_BYTES_MAX);
            return invalid(format!("a chunk of output has at most {chunk} bytes, a batch {batch}"));
        }
        if chunks.windows(2).any(|pair| pair[0].seq.checked_add(1) != Some(pair[1].seq)) || chunks[0].seq == 0 {
            return invalid(
                "the chunks of a batch are numbered one after the other, the first one of all with 1".into(),
            );
        }
        let sizes: Vec<OutputSize> = if tracing::enabled!(tracing::Level::DEBUG) {
            let size =
                |chunk: &OutputChunk| OutputSize { seq: chunk.seq, stream: chunk.stream, bytes: chunk.text.len() };
            chunks.iter().map(size).collect()
        } else {
            Vec::new()
        };
        let room = (bytes >> 10) as u32 + 1;
        let _room = self.0.0.output_room.acquire_many(room).await.map_err(|_| EngineError::Closed)?;
        let bytes_max = self.0.0.options.output_kept_bytes;
        let append = AppendOutput { at, chunks, bytes_max, now: self.0.now() };
        match self.0.0.store.write(append).await? {
            OutputAppended::Taken(taken) => {
                self.0.0.feed.publish_output(at.tenant, at.run);
                for size in sizes {
                    log_output(at, size);
                }
                Ok(taken)
            }
            OutputAppended::Stale { current } => {
                self.0.0.counters.output_refused();
                Err(Rejection::StaleAttempt { run: at.run, position: at.position, given: at.attempt, current }.into())
            }
            OutputAppended::Gap { expected } => {
                invalid(format!("chunk {expected} of the attempt's output comes next, and is missing"))
            }
        }
    }
}
