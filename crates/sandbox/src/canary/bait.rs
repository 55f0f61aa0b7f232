//! What the canaries reach for: things of the host that a sandbox must not show.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::state_folder::StateFolder;
use crate::sys;

const READ_AND_WRITE_FOR_ALL: u64 = 0o666;
/// The keys of the memory that canaries reach for, each with a port behind it.
const KEYS: i32 = 0x494c_0000;
const PORTS_MAX: usize = 16;

pub(super) struct Bait {
    pub file: PathBuf,
    pub listener: SocketAddr,
    pub abstract_name: String,
    pub memory_key: i32,
    pub host_name: String,
    memory: i64,
    _sockets: (TcpListener, UnixListener),
}

impl Bait {
    pub fn lay(state: &StateFolder) -> io::Result<Self> {
        let file = state.unused(".bait");
        std::fs::write(&file, "bait")?;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644))?;
        sweep_memory();
        let (tcp, memory_key, memory) = share_memory()?;
        let abstract_name = format!("interlock-bait-{}-{}", std::process::id(), file.display());
        let name = std::os::unix::net::SocketAddr::from_abstract_name(&abstract_name)?;
        let unix = UnixListener::bind_addr(&name)?;
        let host_name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Ok(Self {
            file,
            listener: tcp.local_addr()?,
            abstract_name,
            memory_key,
            host_name,
            memory,
            _sockets: (tcp, unix),
        })
    }
}

/// Shared memory under a key with the port of a listener in it. The port is held by this process alone, so the key is
/// likely free; one that is not may be of a worker in another network, so another port is taken.
fn share_memory() -> io::Result<(TcpListener, i32, i64)> {
    let flags = libc::IPC_CREAT as u64 | libc::IPC_EXCL as u64 | READ_AND_WRITE_FOR_ALL;
    // Kept open meanwhile, so that the next port is another one.
    let mut taken = Vec::new();
    for _ in 0..PORTS_MAX {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let key = KEYS | i32::from(tcp.local_addr()?.port());
        match sys::call(libc::SYS_shmget, [key as u64, 4096, flags, 0, 0]) {
            Ok(memory) => return Ok((tcp, key, memory)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken.push(tcp),
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Shared memory outlives the process that made it: what a dead worker of this user has left behind is removed.
fn sweep_memory() {
    let Ok(list) = std::fs::read_to_string("/proc/sysvipc/shm") else { return };
    let own = rustix::process::geteuid().as_raw();
    for line in list.lines().skip(1) {
        let mut fields = line.split_ascii_whitespace();
        let mut number = |skipped: usize| fields.nth(skipped).and_then(|field| field.parse::<i64>().ok());
        let (Some(key), Some(memory), Some(creator)) = (number(0), number(0), number(2)) else { continue };
        let (Some(attached), Some(owner)) = (number(1), number(0)) else { continue };
        let is_ours = key & !0xffff == i64::from(KEYS) && owner == i64::from(own);
        let is_dead = creator > 0 && attached == 0 && !Path::new(&format!("/proc/{creator}")).exists();
        if is_ours && is_dead {
            let _ = sys::call(libc::SYS_shmctl, [memory as u64, libc::IPC_RMID as u64, 0, 0, 0]);
        }
    }
}

impl Drop for Bait {
    fn drop(&mut self) {
        let _ = sys::call(libc::SYS_shmctl, [self.memory as u64, libc::IPC_RMID as u64, 0, 0, 0]);
        let _ = std::fs::remove_file(&self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids() -> Vec<i64> {
        let list = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
        list.lines().skip(1).filter_map(|line| line.split_ascii_whitespace().nth(1)?.parse().ok()).collect()
    }

    /// What a process leaves that is killed with its memory; the test's own is in use.
    #[test]
    fn memory_of_a_dead_worker_is_removed_and_that_of_a_living_one_is_not() {
        let (tcp, key, mine) = share_memory().unwrap();
        let left_key =
            KEYS | i32::from(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port());
        let make = format!("import ctypes; libc = ctypes.CDLL(None); print(libc.shmget({left_key}, 4096, 0o1666))");
        let made = std::process::Command::new("python3").args(["-c", &make]).output().unwrap();
        let left: i64 = String::from_utf8(made.stdout).unwrap().trim().parse().unwrap();
        assert!(left >= 0, "{left}");
        sweep_memory();
        let after = ids();
        assert!(!after.contains(&left) && after.contains(&mine), "{after:?}");
        let again = [key as u64, 4096, (libc::IPC_CREAT | libc::IPC_EXCL) as u64, 0, 0];
        assert_eq!(sys::call(libc::SYS_shmget, again).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        drop(tcp);
        let _ = sys::call(libc::SYS_shmctl, [mine as u64, libc::IPC_RMID as u64, 0, 0, 0]);
    }
}
