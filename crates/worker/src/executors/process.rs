//! A child process in a group of its own: fed, read within limits, and killed with everything it started.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use interlock_core::limits;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::stderr::ProgramErrors;
use crate::context::TaskContext;

/// How much of standard error is kept: its end.
pub(super) const STDERR_TAIL_BYTES: usize = limits::ERROR_BYTES_MAX / 2;
/// How long the pipes may stay open after the program and its group have ended.
const PIPES_GRACE: Duration = Duration::from_secs(1);

/// What a child gets, and how far it may go.
pub(super) struct Supervised<'a> {
    pub input: &'a str,
    pub output_bytes_max: usize,
    pub stop: &'a CancellationToken,
    pub kill_grace: Duration,
    /// Whose standard error it is.
    pub context: &'a TaskContext,
}

pub(super) struct FinishedProgram {
    pub ended: ProgramEnd,
    pub stdout: Vec<u8>,
    pub stderr_tail: String,
}

pub(super) enum ProgramEnd {
    Exited(ExitStatus),
    /// It was told to stop; what it exited with then says nothing.
    Stopped,
    TooMuchOutput,
    /// A process outside of the group still holds a pipe.
    OutputHeldOpen,
}

/// Runs the command to its end. An error means that nothing was started. Dropping the future kills the group.
pub(super) async fn run(mut command: Command, supervised: Supervised<'_>) -> io::Result<FinishedProgram> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
    let mut child = command.spawn()?;
    let group = Group::of(&child);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());

    let overflow = CancellationToken::new();
    let piping = async {
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A program need not read its input; then the pipe breaks, and that is its choice.
                let _ = stdin.write_all(supervised.input.as_bytes()).await;
            }
        };
        let capture = capture(stdout, supervised.output_bytes_max, &overflow);
        tokio::join!(feed, capture, tail(stderr, supervised.context))
    };
    tokio::pin!(piping);
    let ending = wait(&mut child, &group, &supervised, &overflow);
    tokio::pin!(ending);

    let mut piped = None;
    let ended = loop {
        tokio::select! {
            biased;
            all = &mut piping, if piped.is_none() => piped = Some(all),
            ended = &mut ending => break ended?,
        }
    };
    let piped = match piped {
        Some(piped) => Some(piped),
        None => timeout(PIPES_GRACE, &mut piping).await.ok(),
    };
    Ok(match piped {
        Some(((), stdout, stderr_tail)) => FinishedProgram { ended, stdout, stderr_tail },
        None => FinishedProgram { ended: ProgramEnd::OutputHeldOpen, stdout: Vec::new(), stderr_tail: String::new() },
    })
}

async fn wait(
    child: &mut Child,
    group: &Group,
    supervised: &Supervised<'_>,
    overflow: &CancellationToken,
) -> io::Result<ProgramEnd> {
    let ended = tokio::select! {
        biased;
        () = overflow.cancelled() => ProgramEnd::TooMuchOutput,
        status = child.wait() => ProgramEnd::Exited(status?),
        () = supervised.stop.cancelled() => {
            group.signal(Signal::TERM);
            let _ = timeout(supervised.kill_grace, child.wait()).await;
            ProgramEnd::Stopped
        }
    };
    // What it wrote last is taken at once: nothing waits for the server now.
    supervised.context.output().hurry();
    // Whatever the program left behind must not outlive the attempt, nor hold the pipes.
    group.signal(Signal::KILL);
    child.wait().await?;
    Ok(if overflow.is_cancelled() { ProgramEnd::TooMuchOutput } else { ended })
}

/// Everything up to the limit. One byte more says that there is too much, and ends the program.
async fn capture(pipe: Option<impl AsyncRead + Unpin>, bytes_max: usize, overflow: &CancellationToken) -> Vec<u8> {
    let mut captured = Vec::new();
    if let Some(pipe) = pipe {
        let _ = pipe.take(bytes_max as u64 + 1).read_to_end(&mut captured).await;
    }
    if captured.len() > bytes_max {
        overflow.cancel();
    }
    captured
}

/// Sends standard error on while it is written, and answers with its end.
async fn tail(pipe: Option<impl AsyncRead + Unpin>, context: &TaskContext) -> String {
    let mut stderr = ProgramErrors::new(context);
    let mut chunk = [0; 4096];
    if let Some(mut pipe) = pipe {
        while let Ok(read @ 1..) = pipe.read(&mut chunk).await {
            stderr.take(&chunk[..read]);
            context.output().room().await;
        }
    }
    stderr.end()
}

/// The process group of a child, killed when dropped.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // The group may have ended by itself.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
