//! All sandboxes of a process are started by one thread that never ends.
//!
//! bubblewrap asks the kernel to be killed when its parent dies, and the kernel takes the *thread* that forked for the
//! parent. A thread of a runtime may end while the worker lives on.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tokio::sync::oneshot;

use super::command::BwrapCommand;

struct Job {
    command: BwrapCommand,
    reply: oneshot::Sender<io::Result<StartedProcess>>,
}

/// Killed and collected unless its caller takes it: a command must not go on unwatched.
struct StartedProcess(Option<Pid>);

impl Drop for StartedProcess {
    fn drop(&mut self) {
        if let Some(process) = self.0.take() {
            end_process(process);
        }
    }
}

/// Kills a child of the spawner's thread, and collects it.
pub(crate) fn end_process(process: Pid) {
    let _ = kill_process(process, Signal::KILL);
    let _ = waitpid(Some(process), WaitOptions::empty());
}

/// Starts a process as a child of the spawner's thread.
pub(super) async fn spawn(command: BwrapCommand) -> io::Result<Pid> {
    let (reply, answer) = oneshot::channel();
    let jobs = jobs().ok_or_else(|| io::Error::other("the thread that starts sandboxes cannot be started"))?;
    let gone = || io::Error::other("the thread that starts sandboxes is gone");
    jobs.send(Job { command, reply }).map_err(|_| gone())?;
    let mut started = answer.await.map_err(|_| gone())??;
    started.0.take().ok_or_else(gone)
}

fn jobs() -> Option<&'static Sender<Job>> {
    static JOBS: OnceLock<Option<Sender<Job>>> = OnceLock::new();
    let start = || {
        let (jobs, queue) = channel::<Job>();
        let work = move || {
            for Job { command, reply } in queue {
                // Where the caller does not wait any more, what it is sent is dropped.
                let _ = reply.send(command.start().map(|process| StartedProcess(Some(process))));
            }
        };
        std::thread::Builder::new().name("sandbox-spawner".to_owned()).spawn(work).ok()?;
        Some(jobs)
    };
    JOBS.get_or_init(start).as_ref()
}
