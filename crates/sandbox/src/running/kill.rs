//! Ends a sandbox, from outside and at once.

use std::os::fd::OwnedFd;
use std::sync::Mutex;

use rustix::process::{Signal, pidfd_send_signal};
use tokio::sync::Notify;

use crate::shim;

/// Why a command was ended. The first reason stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KillReason {
    Canceled,
    TimedOut,
    Dropped,
}

#[derive(Debug)]
pub(super) struct Killer {
    /// The first process of the sandbox's PID namespace: with it everything inside dies.
    pub first: OwnedFd,
    pub bwrap: OwnedFd,
    pub renewals: OwnedFd,
    pub asked: Notify,
    reason: Mutex<Option<KillReason>>,
}

impl Killer {
    pub fn new(first: OwnedFd, bwrap: OwnedFd, renewals: OwnedFd) -> Self {
        Self { first, bwrap, renewals, asked: Notify::new(), reason: Mutex::new(None) }
    }

    pub fn reason(&self) -> Option<KillReason> {
        *self.reason.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Leaves the killing to the supervisor, which gives the command its grace.
    pub fn ask(&self, reason: KillReason) {
        self.note(reason);
        self.asked.notify_one();
    }

    pub fn note(&self, reason: KillReason) {
        self.reason.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(reason);
    }

    /// Needs no runtime. A process that is gone already is no error.
    pub fn kill(&self) {
        let _ = pidfd_send_signal(&self.first, Signal::KILL);
        let _ = pidfd_send_signal(&self.bwrap, Signal::KILL);
    }

    pub fn terminate(&self) {
        let _ = rustix::io::write(&self.renewals, &[shim::TERMINATE]);
    }

    /// A full pipe holds enough renewals.
    pub fn renew(&self) {
        let _ = rustix::io::write(&self.renewals, &[shim::RENEW]);
    }
}
