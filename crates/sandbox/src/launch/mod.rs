//! Starts a sandbox: the view of files, the arguments of bubblewrap, the order to the shim, the descriptors between them.

mod bwrap;
mod pipes;
mod spawner;
pub(crate) mod view;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Gid, Pid, Uid};

use crate::limits;
use crate::seccomp;
use crate::secret::{GivenSecret, SecretPlace};
use crate::shim::{self, Action, JoinedCgroup, ResourceLimits, ShimConfig, SocketRule};
use crate::spec::{EgressMode, Namespace, Spec, Syscalls};
use crate::sys;
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
    pub secrets: &'a [GivenSecret],
    /// Whether the broker's socket is in the view.
    pub broker: bool,
    pub watchdog: Duration,
    pub wall: Duration,
    /// Of the cgroups that the command joins.
    pub doors: Vec<OwnedFd>,
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
        // Programs open `/dev/stdout` and `/dev/fd/3` anew, for which they must own the pipe.
        for pipe in [&stdout_inside, &stderr_inside] {
            give(pipe, programs.run_as)?;
        }

        let mut secrets = Vec::new();
        let mut secret_files = Vec::new();
        for secret in self.secrets {
            let pipe = pipes::pipe_holding(secret.value.bytes())?;
            give(&pipe, programs.run_as)?;
            let pipe = passed.add(pipe);
            match &secret.place {
                SecretPlace::Descriptor(to) => secrets.push((pipe, *to)),
                SecretPlace::File(name) => secret_files.push((pipe, format!("{}/{name}", view::SECRETS))),
            }
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
            secrets,
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

        let mut command = Command::new(&programs.bwrap);
        command.arg("--args").arg(options.to_string());
        command.args([shim::PATH_INSIDE, shim::MARK]).arg(config.to_string());
        command.env_clear().current_dir("/");
        command.stdin(Stdio::null()).stdout(stdout_inside).stderr(stderr_inside);
        hook(&mut command, passed.numbers(), self.doors, programs.run_as);
        let child = spawner::spawn(command).await.map_err(|error| explain(&programs.bwrap, &error))?;
        Ok(LaunchedSandbox { bwrap: Pid::from_child(&child), stdout, stderr, status, json_status, renewals })
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

    fn numbers(&self) -> Vec<RawFd> {
        self.0.iter().map(AsRawFd::as_raw_fd).collect()
    }
}

/// Between fork and exec: into the cgroups, out of root's identity, and no descriptor but those that are passed.
fn hook(command: &mut Command, passed: Vec<RawFd>, doors: Vec<OwnedFd>, run_as: Option<Identity>) {
    sys::before_exec(command, move || {
        for door in &doors {
            rustix::io::write(door, b"0")?;
        }
        if let Some(Identity { uid, gid }) = run_as {
            rustix::thread::set_thread_groups(&[])?;
            let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
            rustix::thread::set_thread_res_gid(gid, gid, gid)?;
            rustix::thread::set_thread_res_uid(uid, uid, uid)?;
        }
        sys::close_on_exec_from(3)?;
        for number in &passed {
            sys::keep_on_exec(*number)?;
        }
        Ok(())
    });
}

fn explain(bwrap: &Path, error: &io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => io::Error::other(format!("{} is missing: install bubblewrap", bwrap.display())),
        _ => io::Error::other(format!("{} cannot be started: {error}", bwrap.display())),
    }
}
