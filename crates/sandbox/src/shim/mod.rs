//! The process inside the sandbox that confines the command, starts it, and watches over it.
//!
//! The worker's own binary is mounted into the sandbox and started as the first process of its PID namespace; it sees
//! [`MARK`] as its first argument and calls [`main`]. It forks: the child takes the last restrictions upon itself, attests
//! them and becomes the command; the parent waits. When the parent ends, for whatever reason, the kernel kills everything
//! in the namespace.

pub mod acts;
mod attest;
mod config;
mod confine;
mod files;
mod watch;

pub(crate) use attest::namespace;
pub use config::{
    Action, Attestation, CommandEnd, Expiry, FileId, FileRules, JoinedCgroup, LandlockStatus, Report, ResourceLimits,
    ShimConfig, SocketRule,
};
pub(crate) use watch::{RENEW, TERMINATE};

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::sys;

/// The first argument by which the binary knows that it is the shim.
pub const MARK: &str = "--sandbox-shim";
/// Where the binary stands inside the sandbox.
pub(crate) const PATH_INSIDE: &str = "/.shim";
/// The exit code of a shim that could not do its work.
const EXIT_FAILED: i32 = 125;
/// Above the numbers of a command's own.
const OWN_DESCRIPTORS: RawFd = 64;
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// Runs the shim if the program was started as one, and does not come back then. To be called first thing in `main`.
pub fn main_if_shim() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == MARK) {
        let config = arguments.next().and_then(|number| number.to_str().and_then(|number| number.parse().ok()));
        main(config)
    }
}

/// Runs the shim with the descriptor of its configuration.
pub fn main(config: Option<RawFd>) -> ! {
    let code = match config.map(run) {
        Some(Ok(code)) => code,
        Some(Err(error)) => {
            // The worker reads this where no attestation came.
            let _ = writeln!(io::stderr(), "sandbox shim: {error}");
            EXIT_FAILED
        }
        None => {
            let _ = writeln!(io::stderr(), "sandbox shim: {MARK} is for the sandbox itself; it takes a descriptor");
            EXIT_FAILED
        }
    };
    std::process::exit(code)
}

fn run(config: RawFd) -> io::Result<i32> {
    let config = read_config(config)?;
    // No process inside may look into this one: its memory and descriptors are the worker's business.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let status = own(config.status)?;
    let renewals = own(config.renewals)?;
    // A sandbox that ends before the worker has a hold of it could not be told from one that never was.
    if !watch::first_renewal(&config, &renewals)? {
        return Ok(EXIT_FAILED);
    }

    let child = match start(&config, &status) {
        Ok(child) => child,
        Err(error) => {
            report(&status, &Report::NotStarted(error.to_string()))?;
            return Ok(EXIT_FAILED);
        }
    };
    report(&status, &Report::Started)?;
    let last = watch::until_end(&config, &child, &renewals)?;
    let code = match &last {
        Report::Ended(CommandEnd { code: Some(code), .. }) => *code,
        _ => EXIT_FAILED,
    };
    report(&status, &last)?;
    Ok(code)
}

fn read_config(raw: RawFd) -> io::Result<ShimConfig> {
    let mut text = String::new();
    File::from(sys::take_descriptor(raw)?).take(CONFIG_BYTES_MAX).read_to_string(&mut text)?;
    serde_json::from_str(&text).map_err(io::Error::other)
}

/// Moves a descriptor out of the way of the command's.
fn own(raw: RawFd) -> io::Result<OwnedFd> {
    let given = sys::take_descriptor(raw)?;
    Ok(rustix::io::fcntl_dupfd_cloexec(&given, OWN_DESCRIPTORS)?)
}

/// Forks. The child confines itself, attests, and executes the command or tries what it was told to try.
fn start(config: &ShimConfig, status: &OwnedFd) -> io::Result<Child> {
    let mut command = match &config.action {
        Action::Execute { argv, env, folder, file } => {
            let (program, arguments) = argv.split_first().ok_or_else(|| io::Error::other("there is no command"))?;
            same_file(program, *file)?;
            let mut command = Command::new(program);
            command.args(arguments).env_clear().envs(env).current_dir(folder);
            command
        }
        // Never executed: the child ends in its hook.
        Action::Try(_) => Command::new(PATH_INSIDE),
    };
    command.stdin(Stdio::inherit());
    let (config, status) = (config.clone(), rustix::io::fcntl_dupfd_cloexec(status, OWN_DESCRIPTORS)?);
    sys::before_exec(&mut command, move || {
        let attested = confine::confine(&config).and_then(|landlocked| attest::attest(&config, landlocked));
        match attested {
            Ok(attestation) => report(&status, &Report::Attested(attestation))?,
            Err(error) => {
                report(&status, &Report::NotConfined(error.to_string()))?;
                return Err(error);
            }
        }
        if let Action::Try(act) = &config.action {
            // The parent takes this for exec: until then it waits for the child and watches nothing.
            sys::close_from(3)?;
            std::process::exit(act.run());
        }
        Ok(())
    });
    command.spawn()
}

/// The file is still the one that was judged.
fn same_file(program: &str, judged: FileId) -> io::Result<()> {
    let found = std::fs::metadata(program)
        .map_err(|error| io::Error::other(format!("{program} is not in the sandbox: {error}")))?;
    if (FileId { device: found.dev(), inode: found.ino() }) == judged {
        Ok(())
    } else {
        Err(io::Error::other(format!("{program} is another file than the one that was judged")))
    }
}

/// One write, so that lines of parent and child do not mix.
fn report(status: &OwnedFd, report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_vec(report).map_err(io::Error::other)?;
    line.push(b'\n');
    rustix::io::write(status, &line)?;
    Ok(())
}
