//! The first process of the sandbox waits: for the command's end, for renewals, and for time to run out.
//!
//! It comes back with its last report; that it ends then is what kills everything that is left in the sandbox.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, wait};
use rustix::time::{ClockId, clock_gettime};

use super::config::{CommandEnd, Expiry, Report, ShimConfig};
use crate::limits;
use crate::sys;

/// A renewal, and the wish that the command ends by itself.
pub(crate) const RENEW: u8 = b'.';
pub(crate) const TERMINATE: u8 = b't';
/// Orphans are collected at least this often.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Waits for the worker to say that it watches. False where it does not.
pub(super) fn first_renewal(config: &ShimConfig, renewals: &OwnedFd) -> io::Result<bool> {
    let mut fds = [PollFd::from_borrowed_fd(renewals.as_fd(), PollFlags::IN)];
    let wait = Duration::from_millis(config.watchdog_ms).max(limits::START_TIMEOUT);
    match poll(&mut fds, Some(&timespec(wait))) {
        Ok(0) => Ok(false),
        Ok(_) => Ok(!matches!(read_renewal(renewals)?, RenewalMessage::Gone)),
        Err(error) => Err(error.into()),
    }
}

fn timespec(wait: Duration) -> Timespec {
    Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() }
}

pub(super) fn until_end(config: &ShimConfig, child: &Child, renewals: &OwnedFd) -> io::Result<Report> {
    let pid = Pid::from_child(child);
    let command = pidfd_open(pid, PidfdFlags::empty())?;
    let watchdog = Duration::from_millis(config.watchdog_ms);
    let dead_at = now() + Duration::from_millis(config.wall_ms);
    let mut renew_by = now() + watchdog;
    loop {
        let at = now();
        if at >= dead_at {
            return Ok(Report::Expired(Expiry::WallTime));
        }
        if at >= renew_by {
            return Ok(Report::Expired(Expiry::NoRenewal));
        }
        let wait = renew_by.min(dead_at).saturating_sub(at).min(LOOK_AGAIN);
        let mut fds = [
            PollFd::from_borrowed_fd(command.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(renewals.as_fd(), PollFlags::IN),
        ];
        match poll(&mut fds, Some(&timespec(wait))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let renewed = !fds[1].revents().is_empty();
        if let Some(end) = collect(pid)? {
            return Ok(Report::Ended(end));
        }
        if renewed {
            match read_renewal(renewals)? {
                RenewalMessage::Gone => return Ok(Report::Expired(Expiry::NoRenewal)),
                RenewalMessage::Renewed => renew_by = now() + watchdog,
                RenewalMessage::Terminate => {
                    renew_by = now() + watchdog;
                    // It may have ended just now.
                    let _ = kill_process(pid, Signal::TERM);
                }
            }
        }
    }
}

enum RenewalMessage {
    Renewed,
    Terminate,
    Gone,
}

fn read_renewal(renewals: &OwnedFd) -> io::Result<RenewalMessage> {
    let mut bytes = [0; 64];
    match rustix::io::read(renewals, &mut bytes) {
        Ok(0) => Ok(RenewalMessage::Gone),
        Ok(len) if bytes[..len].contains(&TERMINATE) => Ok(RenewalMessage::Terminate),
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(RenewalMessage::Renewed),
        Err(error) => Err(error.into()),
    }
}

/// Collects whatever has ended: the first process of a PID namespace inherits every orphan. Answers once the command is
/// among them.
fn collect(command: Pid) -> io::Result<Option<CommandEnd>> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == command => {
                return Ok(Some(CommandEnd {
                    code: status.exit_status(),
                    signal: status.terminating_signal(),
                    peak_bytes: sys::children_peak_bytes(),
                }));
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(rustix::io::Errno::CHILD) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}

/// On the monotonic clock, which cannot be set.
fn now() -> Duration {
    let at = clock_gettime(ClockId::Monotonic);
    Duration::new(at.tv_sec as u64, at.tv_nsec as u32)
}
