//! Watches one command to its end: renewals, time, cancellation, the shim's last word.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{WaitId, WaitIdOptions, waitid};
use tokio::io::BufReader;
use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, sleep_until, timeout};

use super::kill::{KillReason, Killer};
use super::start::line;
use super::{CommandResult, Outcome, OutputCount};
use crate::cgroup::{Group, GroupUsage};
use crate::egress::Broker;
use crate::limits;
use crate::shim::{Attestation, CommandEnd, Expiry, Report};
use crate::sys;

pub(super) struct Supervisor {
    pub killer: Arc<Killer>,
    pub status: BufReader<Receiver>,
    pub attestation: Attestation,
    pub group: Option<Group>,
    pub broker: Option<Broker>,
    pub terminate_grace: Duration,
    /// None for the canary that is to die for want of renewals.
    pub renew_every: Option<Duration>,
    pub began: Instant,
    pub over_at: Instant,
    pub pump: JoinHandle<OutputCount>,
}

impl Supervisor {
    pub async fn run(mut self) -> CommandResult {
        let last = self.until_last_word().await;
        self.gone().await;
        let duration = self.began.elapsed();
        let usage = self.group.as_ref().map(Group::usage).unwrap_or_default();
        let output = (&mut self.pump).await.unwrap_or_default();
        let end = match &last {
            Some(Report::Ended(end)) => Some(*end),
            _ => None,
        };
        CommandResult {
            outcome: outcome(self.killer.reason(), last.as_ref()),
            duration,
            peak_memory_bytes: usage.peak_bytes.or(end.map(|end| end.peak_bytes)).unwrap_or(0),
            limits_met: limits_met(&usage, output),
            output,
            attestation: self.attestation,
            egress: self.broker.as_ref().map(Broker::attempts).unwrap_or_default(),
        }
    }

    /// The shim's last report; none where it died without one.
    async fn until_last_word(&mut self) -> Option<Report> {
        let killer = Arc::clone(&self.killer);
        let mut renewals = tokio::time::interval(self.renew_every.unwrap_or(limits::WATCHDOG));
        renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let timed_out = sleep_until(self.over_at);
        tokio::pin!(timed_out);
        // When the grace of a command that was told to end is over.
        let mut kill_at: Option<Instant> = None;
        loop {
            tokio::select! {
                said = line(&mut self.status) => {
                    return said.and_then(|said| serde_json::from_str(&said).ok());
                }
                _ = renewals.tick(), if self.renew_every.is_some() => killer.renew(),
                () = &mut timed_out, if kill_at.is_none() => {
                    killer.note(KillReason::TimedOut);
                    kill_at = Some(self.end_by_request());
                }
                () = killer.asked.notified(), if kill_at.is_none() => kill_at = Some(self.end_by_request()),
                () = sleep_until(kill_at.unwrap_or(self.began)), if kill_at.is_some() => {
                    self.kill();
                    kill_at = Some(Instant::now() + limits::KILL_TIMEOUT);
                }
            }
        }
    }

    /// When the command is killed, if it has not ended by then.
    fn end_by_request(&self) -> Instant {
        if self.terminate_grace.is_zero() {
            self.kill();
            return Instant::now() + limits::KILL_TIMEOUT;
        }
        self.killer.terminate();
        Instant::now() + self.terminate_grace
    }

    fn kill(&self) {
        self.killer.kill();
        if let Some(group) = &self.group {
            group.kill();
        }
    }

    /// Everything in the sandbox is dead: the kernel ends the first process of a PID namespace after all the others.
    async fn gone(&self) {
        let ended = async {
            exited(&self.killer.first).await;
            exited(&self.killer.bwrap).await;
        };
        // The shim's last word comes right before its end.
        if timeout(limits::KILL_TIMEOUT, ended).await.is_err() {
            tracing::warn!("a sandbox outlived its command; it is killed");
            self.kill();
            exited(&self.killer.first).await;
            exited(&self.killer.bwrap).await;
        }
        collect(&self.killer.bwrap);
    }
}

fn outcome(reason: Option<KillReason>, last: Option<&Report>) -> Outcome {
    match (last, reason) {
        (_, Some(KillReason::Canceled | KillReason::Dropped)) => Outcome::Canceled,
        (_, Some(KillReason::TimedOut)) | (Some(Report::Expired(Expiry::WallTime)), None) => Outcome::TimedOut,
        (Some(Report::Expired(Expiry::NoRenewal)), None) => Outcome::NotRenewed,
        (Some(Report::Ended(CommandEnd { code: Some(code), .. })), None) => Outcome::Exited { code: *code },
        (Some(Report::Ended(CommandEnd { signal: Some(signal), .. })), None) => Outcome::Signaled { signal: *signal },
        (_, None) => Outcome::Killed,
    }
}

fn limits_met(usage: &GroupUsage, output: OutputCount) -> Vec<&'static str> {
    let met = [
        (usage.killed_for_memory > 0, "memory"),
        (usage.refused_processes > 0, "processes"),
        (usage.throttled, "cpu"),
        (output.cut_bytes > 0, "output"),
    ];
    met.into_iter().filter(|(is_met, _)| *is_met).map(|(_, name)| name).collect()
}

/// Waits until a process has ended.
pub(super) async fn exited(pidfd: &OwnedFd) {
    if let Ok(watched) = pidfd.try_clone().and_then(sys::watch) {
        let _ = watched.readable().await;
    }
}

/// Takes a child that has ended off the kernel's list.
fn collect(pidfd: &OwnedFd) {
    let _ = waitid(WaitId::PidFd(std::os::fd::AsFd::as_fd(pidfd)), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
}

/// For a start that failed.
pub(super) async fn reap(pidfd: OwnedFd) {
    exited(&pidfd).await;
    collect(&pidfd);
}
