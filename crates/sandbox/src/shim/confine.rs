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
    for (_, to) in &config.secrets {
        sys::keep_on_exec(*to)?;
    }
    let sockets = match config.sockets {
        SocketRule::None => Sockets::None,
        SocketRule::Unix => Sockets::Unix,
        SocketRule::Local => Sockets::Local,
    };
    let filters = seccomp::listed(config.syscalls, sockets).map_err(io::Error::other)?;
    let log = matches!(config.syscalls, Syscalls::Listed { log: true });
    for filter in filters {
        sys::add_filter(&filter, log)?;
    }
    Ok(landlocked)
}

fn limit(limits: ResourceLimits) -> io::Result<()> {
    for (resource, most) in [
        (Resource::Core, 0),
        (Resource::Nofile, limits.open_files),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nproc, limits.processes),
        (Resource::Memlock, 64 << 10),
        (Resource::Msgqueue, 64 << 10),
        (Resource::Rtprio, 0),
        (Resource::Nice, 0),
    ] {
        // A limit that is lower already stays.
        let most = rustix::process::getrlimit(resource).maximum.map_or(most, |already| already.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}
