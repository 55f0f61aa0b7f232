//! What a canary does inside its sandbox: one act that a control forbids, with an exit code that says what came of it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::PATH_INSIDE;
use crate::sys;

/// The act was refused.
pub const REFUSED: i32 = 10;
/// The act was not refused.
pub const DONE: i32 = 11;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    Connect {
        to: SocketAddr,
    },
    /// Attaches the host's segment of shared memory.
    SharedMemory {
        key: i32,
    },
    /// Reads the host's name.
    HostName {
        is: String,
    },
    ReadFile {
        path: PathBuf,
    },
    /// Makes a user namespace.
    NewUserNamespace,
    /// Compares a process with itself: harmless, and refused by the filter of every profile.
    CompareProcess,
    /// Reads the shim, which only Landlock forbids.
    ReadShim,
    AbstractSocket {
        name: String,
    },
    /// Starts threads until it is refused.
    Threads {
        count: usize,
    },
    /// Takes memory and writes to it.
    Memory {
        bytes: usize,
    },
    /// Computes until it has had so much of a processor.
    Compute {
        millis: u64,
    },
    /// Writes a file that is longer than allowed.
    LongFile {
        bytes: usize,
    },
    /// Waits for the watchdog.
    Wait,
    /// Does nothing: what counts is the attestation.
    Nothing,
}

impl Act {
    pub(super) fn run(&self) -> i32 {
        match self.try_it() {
            Ok(()) => DONE,
            Err(error) => {
                let _ = writeln!(io::stdout(), "{error}");
                REFUSED
            }
        }
    }

    fn try_it(&self) -> io::Result<()> {
        match self {
            Self::Connect { to } => TcpStream::connect_timeout(to, Duration::from_secs(1)).map(drop),
            Self::SharedMemory { key } => sys::call(libc::SYS_shmget, [*key as libc::c_ulong, 0, 0, 0, 0]).map(drop),
            Self::HostName { is } => {
                let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
                if name == *is { Ok(()) } else { Err(io::Error::other(format!("the name is {name}"))) }
            }
            Self::ReadFile { path } => File::open(path)?.read(&mut [0; 1]).map(drop),
            Self::NewUserNamespace => {
                Ok(sys::call(libc::SYS_unshare, [libc::CLONE_NEWUSER as libc::c_ulong, 0, 0, 0, 0]).map(drop)?)
            }
            Self::CompareProcess => {
                const VIRTUAL_MEMORY: libc::c_ulong = 1;
                let own = u64::from(std::process::id());
                sys::call(libc::SYS_kcmp, [own, own, VIRTUAL_MEMORY, 0, 0]).map(drop)
            }
            Self::ReadShim => File::open(PATH_INSIDE)?.read(&mut [0; 1]).map(drop),
            Self::AbstractSocket { name } => {
                let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
                UnixStream::connect_addr(&address).map(drop)
            }
            Self::Threads { count } => {
                let (release, wait) = std::sync::mpsc::channel::<()>();
                let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
                for _ in 0..*count {
                    let wait = std::sync::Arc::clone(&wait);
                    let parked = move || drop(wait.lock().map(|wait| wait.recv()));
                    std::thread::Builder::new().stack_size(64 << 10).spawn(parked)?;
                }
                drop(release);
                Ok(())
            }
            Self::Memory { bytes } => {
                let taken = std::hint::black_box(vec![1_u8; *bytes]);
                if taken.iter().step_by(4096).all(|byte| *byte == 1) { Ok(()) } else { Err(io::Error::other("lost")) }
            }
            Self::Compute { millis } => {
                compute(Duration::from_millis(*millis));
                Ok(())
            }
            Self::LongFile { bytes } => {
                let mut file = OpenOptions::new().create(true).truncate(true).write(true).open("/tmp/long")?;
                file.write_all(&vec![0; *bytes])
            }
            Self::Wait => loop {
                let _ = rustix::thread::nanosleep(&rustix::thread::Timespec { tv_sec: 60, tv_nsec: 0 });
            },
            Self::Nothing => Ok(()),
        }
    }
}

fn compute(enough: Duration) {
    use rustix::time::{ClockId, clock_gettime};
    let had = || {
        let at = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(at.tv_sec as u64, at.tv_nsec as u32)
    };
    let enough = had() + enough;
    while had() < enough {
        std::hint::black_box(enough);
    }
}
