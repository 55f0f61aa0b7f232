//! From a launched sandbox to a running command: who the first process is, the attestation, the start.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, pidfd_open, pidfd_send_signal, waitid,
};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::kill::Killer;
use super::output::Pump;
use super::supervise::{Supervisor, exited, reap};
use super::{Chunk, Running};
use crate::cgroup::Group;
use crate::egress::Broker;
use crate::launch::{Launch, LaunchedSandbox, Programs, end_process};
use crate::limits;
use crate::redact::Values;
use crate::shim::{self, Attestation, Report};

/// What goes with a command for its whole life.
pub(crate) struct PreparedCommand {
    pub values: Arc<Values>,
    pub group: Option<Group>,
    pub broker: Option<Broker>,
    /// Not for the canary that is to die for want of renewals.
    pub renewed: bool,
    pub terminate_grace: Duration,
    /// Its time is up then at the latest.
    pub end_by: Option<Instant>,
}

/// Why a command was not executed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// Its sandbox was not made, or did not attest.
    #[error("{0}")]
    NotAttested(String),
    /// It is not in its sandbox, or is another file than the one that was judged.
    #[error("{0}")]
    NotExecuted(String),
}

impl From<String> for StartError {
    fn from(why: String) -> Self {
        Self::NotAttested(why)
    }
}

impl StartError {
    fn with(self, diagnosis: &str) -> Self {
        match self {
            Self::NotAttested(why) => Self::NotAttested(format!("{why}{diagnosis}")),
            Self::NotExecuted(why) => Self::NotExecuted(format!("{why}{diagnosis}")),
        }
    }
}

const ENDED_EARLY: &str = "the sandbox ended without an attestation";

/// Starts the sandbox and waits until the command has been executed in it. An error means that it was not.
pub(crate) async fn start(
    launch: Launch<'_>,
    programs: &Programs,
    prepared: PreparedCommand,
) -> Result<Running, StartError> {
    let (limit, wall, watchdog) = (launch.spec.limits.output_bytes, launch.wall, launch.watchdog);
    let launched = launch.start(programs).await.map_err(|error| error.to_string())?;
    let LaunchedSandbox { bwrap, stdout, stderr, status, json_status, renewals } = launched;
    let bwrap = Guard::of(bwrap).map_err(|error| error.to_string())?;
    let io = |error: io::Error| error.to_string();
    rustix::io::ioctl_fionbio(&renewals, true).map_err(|error| error.to_string())?;
    let mut json_status = BufReader::new(receiver(json_status).map_err(io)?);
    let mut status = BufReader::new(receiver(status).map_err(io)?);
    let (stdout, mut stderr) = (receiver(stdout).map_err(io)?, receiver(stderr).map_err(io)?);

    let deadline = Instant::now() + limits::START_TIMEOUT;
    let greeting = async {
        let (process, first) = first_process(&mut json_status, &bwrap).await?;
        // Seen from outside, where every group has its own path. The shim goes on after the first renewal.
        if let Some(control) = prepared.group.as_ref().and_then(|group| group.not_joined_by(process)) {
            // The kernel takes a process that ends out of its groups.
            if timeout(limits::DYING_TIMEOUT, exited(&first)).await.is_ok() {
                return Err(bwrap.ended(ENDED_EARLY).await.into());
            }
            let why = format!("the confinement is not what was ordered, control `{control}`: it is in another cgroup");
            return Err(StartError::NotAttested(why));
        }
        match rustix::io::write(&renewals, &[shim::RENEW]) {
            Ok(_) => {}
            Err(Errno::PIPE) => return Err(bwrap.ended(ENDED_EARLY).await.into()),
            Err(error) => return Err(format!("the shim cannot be told to go on: {error}").into()),
        }
        let attestation = attested(&mut status, &bwrap).await?;
        Ok::<_, StartError>((first, attestation))
    };
    let (first, attestation) = match timeout_at(deadline, greeting).await {
        Ok(Ok(greeted)) => greeted,
        Ok(Err(why)) => {
            bwrap.kill();
            return Err(why.with(&diagnosis(&mut stderr).await));
        }
        Err(_) => return Err(format!("no attestation within {} s", limits::START_TIMEOUT.as_secs()).into()),
    };

    let began = Instant::now();
    let killer = Arc::new(Killer::new(first, bwrap.release(), renewals));
    let (sender, chunks) = mpsc::channel::<Chunk>(limits::CHUNKS_WAITING_MAX);
    let (report, ended) = oneshot::channel();
    let pump = Pump { stdout, stderr, values: prepared.values, limit, began, chunks: sender };
    let supervisor = Supervisor {
        killer: Arc::clone(&killer),
        status,
        attestation: attestation.clone(),
        group: prepared.group,
        broker: prepared.broker,
        terminate_grace: prepared.terminate_grace,
        renew_every: prepared.renewed.then_some(watchdog / 4),
        began,
        over_at: prepared.end_by.map_or(began + wall, |end_by| end_by.min(began + wall)),
        pump: tokio::spawn(pump.run()),
    };
    tokio::spawn(async move {
        // A caller that is gone has killed the command by its drop.
        let _ = report.send(supervisor.run().await);
    });
    Ok(Running { chunks, ended, killer, attestation })
}

fn receiver(descriptor: OwnedFd) -> io::Result<Receiver> {
    Receiver::from_owned_fd(descriptor)
}

/// Kills and collects bubblewrap, and with it the sandbox, unless the start succeeds.
struct Guard(Option<OwnedFd>);

impl Guard {
    fn of(pid: Pid) -> io::Result<Self> {
        let opened = pidfd_open(pid, PidfdFlags::NONBLOCK).inspect_err(|_| end_process(pid));
        Ok(Self(Some(opened?)))
    }

    fn kill(&self) {
        if let Some(pidfd) = &self.0 {
            let _ = pidfd_send_signal(pidfd, Signal::KILL);
        }
    }

    /// That the sandbox has ended, and how: bubblewrap passes on how its first process ended.
    async fn ended(&self, what: &str) -> String {
        let Some(pidfd) = &self.0 else { return what.to_owned() };
        let _ = timeout(limits::DYING_TIMEOUT, exited(pidfd)).await;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::PidFd(pidfd.as_fd()), options).ok().flatten();
        let code = status.as_ref().and_then(WaitIdStatus::exit_status);
        let signal = status.as_ref().and_then(WaitIdStatus::terminating_signal);
        match (code, signal) {
            (Some(code), _) => format!("{what} (exit status {code})"),
            (None, Some(signal)) => format!("{what} (killed by signal {signal})"),
            (None, None) => what.to_owned(),
        }
    }

    fn release(mut self) -> OwnedFd {
        match self.0.take() {
            Some(pidfd) => pidfd,
            // Only this function takes it, and it takes the guard.
            None => unreachable!("a guard is released once"),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.kill();
        if let Some(pidfd) = self.0.take()
            && tokio::runtime::Handle::try_current().is_ok()
        {
            tokio::spawn(reap(pidfd));
        }
    }
}

#[derive(Deserialize)]
struct BwrapStatus {
    #[serde(rename = "child-pid")]
    child_pid: Option<i32>,
}

/// bubblewrap says which process is the first of the PID namespace.
async fn first_process(json_status: &mut BufReader<Receiver>, bwrap: &Guard) -> Result<(Pid, OwnedFd), String> {
    let Some(line) = line(json_status).await else {
        return Err(bwrap.ended("bubblewrap ended before the sandbox was made").await);
    };
    let said: BwrapStatus =
        serde_json::from_str(&line).map_err(|error| format!("bubblewrap said `{line}`: {error}"))?;
    let pid = said.child_pid.and_then(Pid::from_raw).ok_or_else(|| format!("bubblewrap said `{line}`"))?;
    match pidfd_open(pid, PidfdFlags::NONBLOCK) {
        Ok(first) => Ok((pid, first)),
        Err(Errno::SRCH) => Err(bwrap.ended(ENDED_EARLY).await),
        Err(error) => Err(format!("the sandbox's first process cannot be watched: {error}")),
    }
}

/// The shim's first two words: what it saw, and that the command was executed.
async fn attested(status: &mut BufReader<Receiver>, bwrap: &Guard) -> Result<Attestation, StartError> {
    let mut attestation = None;
    while let Some(line) = line(status).await {
        let report = serde_json::from_str(&line).map_err(|error| format!("the shim said `{line}`: {error}"))?;
        match (report, attestation.take()) {
            (Report::Attested(seen), None) => attestation = Some(seen),
            (Report::Started, Some(seen)) => return Ok(seen),
            (Report::NotStarted(why), _) => return Err(StartError::NotExecuted(why)),
            (Report::NotConfined(why), _) => return Err(why.into()),
            (report, _) => return Err(format!("the shim said {report:?} out of turn").into()),
        }
    }
    Err(bwrap.ended(ENDED_EARLY).await.into())
}

pub(super) async fn line(from: &mut BufReader<Receiver>) -> Option<String> {
    let mut line = String::new();
    let mut bounded = from.take(limits::STATUS_LINE_BYTES_MAX as u64);
    let read = bounded.read_line(&mut line).await.ok()?;
    (read > 0 && line.ends_with('\n')).then(|| line.trim_end().to_owned())
}

/// What bubblewrap or the shim wrote to standard error.
async fn diagnosis(stderr: &mut Receiver) -> String {
    let mut said = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(1);
    let mut bounded = stderr.take(limits::DIAGNOSIS_BYTES_MAX as u64);
    let _ = timeout_at(deadline, bounded.read_to_end(&mut said)).await;
    let said = String::from_utf8_lossy(&said);
    let said = said.trim();
    if said.is_empty() { String::new() } else { format!(": {said}") }
}
