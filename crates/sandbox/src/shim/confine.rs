//! The last restrictions, which the child takes upon itself in this order: limits, Landlock, descriptors, system calls.

use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};

use super::config::{LandlockStatus, ResourceLimits, ShimConfig, SocketRule};
use super::files;
use crate::seccomp::{self, Sockets};
use crate::spec::Syscalls;
use crate::sys;

pub(super) fn confine(config: &ShimConfig) -> io::Result<LandlockStatus> {
    limit(config.resources)?;
    let landlocked = files::restrict(config.landlock, &config.files)?;
    sys::close_on_exec_from(3)?;
    let sockets = match config.sockets {
        SocketRule::None => Sockets::None,
        SocketRule::Unix => Sockets::Unix,
        SocketRule::Local => Sockets::Local,
    };
    let filters = seccomp::listed(config.syscalls, sockets).map_err(io::Error::other)?;
    let log = matches!(config.syscalls, Syscalls::Listed { log: true, .. });
    for filter in filters {
        sys::add_filter(&filter, log)?;
    }
    Ok(landlocked)
}

/// A limit on a resource of the process.
pub(super) struct OrderedLimit {
    resource: Resource,
    /// In the attestation.
    pub name: &'static str,
    /// In `/proc/self/limits`.
    pub kernel_name: &'static str,
    pub most: u64,
}

/// All limits that a command gets.
pub(super) fn ordered(limits: ResourceLimits) -> [OrderedLimit; 8] {
    [
        (Resource::Core, "core_bytes", "Max core file size", 0),
        (Resource::Nofile, "open_files", "Max open files", limits.open_files),
        (Resource::Fsize, "file_bytes", "Max file size", limits.file_bytes),
        (Resource::Nproc, "processes", "Max processes", limits.processes),
        (Resource::Memlock, "locked_bytes", "Max locked memory", 64 << 10),
        (Resource::Msgqueue, "message_queue_bytes", "Max msgqueue size", 64 << 10),
        (Resource::Rtprio, "realtime_priority", "Max realtime priority", 0),
        (Resource::Nice, "nice_priority", "Max nice priority", 0),
    ]
    .map(|(resource, name, kernel_name, most)| OrderedLimit { resource, name, kernel_name, most })
}

fn limit(limits: ResourceLimits) -> io::Result<()> {
    for OrderedLimit { resource, most, .. } in ordered(limits) {
        // A limit that is lower already stays.
        let most = rustix::process::getrlimit(resource).maximum.map_or(most, |already| already.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}
