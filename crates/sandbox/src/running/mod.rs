//! A command that runs: its output while it happens, and its end.

mod kill;
mod output;
mod start;
mod supervise;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

pub use output::{Chunk, OutputCount, Stream};
pub(crate) use start::{PreparedCommand, StartError, start};

use crate::egress::EgressAttempt;
use crate::shim::Attestation;
use kill::{KillReason, Killer};

/// A started command. Dropping it kills the command with everything that it has started.
#[derive(Debug)]
pub struct Running {
    chunks: mpsc::Receiver<Chunk>,
    ended: oneshot::Receiver<CommandResult>,
    killer: Arc<Killer>,
    attestation: Attestation,
}

/// How a command ended. Nothing that it had started runs any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandResult {
    pub outcome: Outcome,
    pub duration: Duration,
    /// Of all processes together where cgroups count it, else of the largest one.
    pub peak_memory_bytes: u64,
    /// Limits that the command ran into, by name.
    pub limits_met: Vec<&'static str>,
    pub output: OutputCount,
    pub attestation: Attestation,
    pub egress: Vec<EgressAttempt>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Exited {
        code: i32,
    },
    Signaled {
        signal: i32,
    },
    Canceled,
    TimedOut,
    /// The shim ended it: renewals did not arrive.
    NotRenewed,
    /// The sandbox died from outside, without a word: for want of memory, or by a signal.
    Killed,
}

impl Running {
    /// The next piece of output; none once all output has been read.
    pub async fn next(&mut self) -> Option<Chunk> {
        self.chunks.recv().await
    }

    /// Waits for the end. Output that was not read is thrown away.
    pub async fn end(mut self) -> CommandResult {
        while self.chunks.recv().await.is_some() {}
        let ended = (&mut self.ended).await;
        ended.unwrap_or_else(|_| CommandResult {
            // The runtime is shutting down and has dropped the supervisor.
            outcome: Outcome::Killed,
            duration: Duration::ZERO,
            peak_memory_bytes: 0,
            limits_met: Vec::new(),
            output: OutputCount::default(),
            attestation: self.attestation.clone(),
            egress: Vec::new(),
        })
    }

    /// Ends the command, after its grace where the request gave one. The end is still to be waited for.
    pub fn cancel(&self) {
        self.killer.ask(KillReason::Canceled);
    }

    /// What the shim saw of its confinement, right before the command.
    pub fn attestation(&self) -> &Attestation {
        &self.attestation
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.killer.note(KillReason::Dropped);
        self.killer.kill();
    }
}
