//! Starts a sandbox: the view of files, the arguments of bubblewrap, the order to the shim, the descriptors between them.

mod bwrap;
mod command;
mod pipes;
mod spawner;
pub(crate) mod view;

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Gid, Pid, Uid};

use crate::cgroup::Doors;
use crate::limits;
use crate::seccomp;
use crate::secret::SecretFile;
use crate::shim::{self, Action, JoinedCgroup, ResourceLimits, ShimConfig, SocketRule};
use crate::spec::{EgressMode, Namespace, Spec, Syscalls};
use command::BwrapCommand;
pub(crate) use spawner::end_process;
use view::View;

/// Who a command is on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    pub uid: u32,
    pub gid: u32,
}

/// What is the same for all sandboxes of a worker.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    pub bwrap: PathBuf,
    pub shim: PathBuf,
    /// Set where the worker is root: commands never are.
    pub run_as: Option<Identity>,
}

/// One sandbox to start.
pub(crate) struct Launch<'a> {
    pub profile: &'a str,
    pub spec: &'a Spec,
    pub view: View,
    pub action: Action,
    pub secrets: &'a [SecretFile],
    /// Whether the broker's socket is in the view.
    pub broker: bool,
    pub watchdog: Duration,
    pub wall: Duration,
    /// Of the cgroups that the command joins.
    pub doors: Doors,
    /// The same, as the shim must find them.
    pub cgroups: Vec<JoinedCgroup>,
}

/// A started sandbox, seen from the worker: the near ends of all pipes.
#[derive(Debug)]
pub(crate) struct LaunchedSandbox {
    pub bwrap: Pid,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    /// The shim's reports.
    pub status: OwnedFd,
    /// bubblewrap's own.
    pub json_status: OwnedFd,
    pub renewals: OwnedFd,
}

impl Launch<'_> {
    pub async fn start(self, programs: &Programs) -> io::Result<LaunchedSandbox> {
        let (stdout, stdout_inside) = pipes::pipe()?;
        let (stderr, stderr_inside) = pipes::pipe()?;
        let (status, status_inside) = pipes::pipe()?;
        let (json_status, json_status_inside) = pipes::pipe()?;
        let (renewals_inside, renewals) = pipes::pipe()?;
        let mut passed = PassedDescriptors::default();
        // Programs open `/dev/stdout` anew, for which they must own the pipe.
        for pipe in [&stdout_inside, &stderr_inside] {
            give(pipe, programs.run_as)?;
        }

        let mut secret_files = Vec::new();
        for secret in self.secrets {
            let pipe = pipes::pipe_holding(secret.value.bytes())?;
            give(&pipe, programs.run_as)?;
            secret_files.push((passed.add(pipe), format!("{}/{}", view::SECRETS, secret.name)));
        }
        let config = ShimConfig {
            profile: self.profile.to_owned(),
            syscalls: self.spec.syscalls,
            sockets: self.sockets(),
            landlock: self.spec.landlock,
            files: self.view.files.clone(),
            resources: ResourceLimits {
                open_files: self.spec.limits.open_files,
                file_bytes: self.spec.limits.file_bytes,
                processes: self.spec.limits.pids,
            },
            other_namespaces_than: own_namespaces(self.spec.namespaces)?,
            cgroups: self.cgroups.clone(),
            status: passed.add(status_inside),
            renewals: passed.add(renewals_inside),
            watchdog_ms: self.watchdog.as_millis() as u64,
            wall_ms: (self.wall + limits::SHIM_WALL_GRACE).as_millis() as u64,
            action: self.action,
        };
        let mut filters = Vec::new();
        if self.spec.syscalls != Syscalls::Unfiltered {
            for filter in seccomp::base().map_err(io::Error::other)? {
                filters.push(passed.add(pipes::file_with(filter)?));
            }
        }
        let descriptors = bwrap::Descriptors {
            filters,
            json_status: passed.add(json_status_inside),
            passwd: passed.add(pipes::file_with(bwrap::PASSWD.as_bytes())?),
            group: passed.add(pipes::file_with(bwrap::GROUP.as_bytes())?),
            secret_files,
        };
        let options = bwrap::options(self.spec, &self.view, &programs.shim, &descriptors);
        let options = passed.add(pipes::file_with(&options)?);
        let config = passed.add(pipes::file_with(&serde_json::to_vec(&config).map_err(io::Error::other)?)?);

        let words: [OsString; 6] = [
            programs.bwrap.clone().into(),
            "--args".into(),
            options.to_string().into(),
            shim::PATH_INSIDE.into(),
            shim::MARK.into(),
            config.to_string().into(),
        ];
        let command = BwrapCommand {
            argv: words.into_iter().map(|word| CString::new(word.into_vec())).collect::<Result<_, _>>()?,
            stdio: [File::open("/dev/null")?.into(), stdout_inside, stderr_inside],
            passed: passed.0,
            doors: self.doors,
            run_as: programs.run_as,
        };
        let bwrap = spawner::spawn(command).await.map_err(|error| explain(&programs.bwrap, &error))?;
        Ok(LaunchedSandbox { bwrap, stdout, stderr, status, json_status, renewals })
    }

    fn sockets(&self) -> SocketRule {
        match (self.spec.syscalls, self.spec.egress, self.broker) {
            (Syscalls::Strict, EgressMode::Broker, true) => SocketRule::Unix,
            (Syscalls::Strict, ..) => SocketRule::None,
            _ => SocketRule::Local,
        }
    }
}

/// The worker's own, by their inodes.
fn own_namespaces(namespaces: &[Namespace]) -> io::Result<Vec<(Namespace, u64)>> {
    namespaces.iter().map(|namespace| Ok((*namespace, shim::namespace(namespace.kind())?))).collect()
}

fn give(pipe: &OwnedFd, owner: Option<Identity>) -> io::Result<()> {
    if let Some(Identity { uid, gid }) = owner {
        rustix::fs::fchown(pipe, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
    }
    Ok(())
}

/// The far ends, open until the child has them.
#[derive(Default)]
struct PassedDescriptors(Vec<OwnedFd>);

impl PassedDescriptors {
    fn add(&mut self, descriptor: OwnedFd) -> RawFd {
        let number = descriptor.as_raw_fd();
        self.0.push(descriptor);
        number
    }
}

fn explain(bwrap: &Path, error: &io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => io::Error::other(format!("{} is missing: install bubblewrap", bwrap.display())),
        _ => io::Error::other(format!("{} cannot be started: {error}", bwrap.display())),
    }
}
