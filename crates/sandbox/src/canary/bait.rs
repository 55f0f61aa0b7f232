//! What the canaries reach for: things of the host that a sandbox must not show.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use crate::state_folder::StateFolder;
use crate::sys;

const READ_AND_WRITE_FOR_ALL: u64 = 0o666;

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
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let abstract_name = format!("interlock-bait-{}-{}", std::process::id(), file.display());
        let name = std::os::unix::net::SocketAddr::from_abstract_name(&abstract_name)?;
        let unix = UnixListener::bind_addr(&name)?;
        // The port is one that nobody else has, so the key is likely free; if it is not, this fails.
        let memory_key = 0x494c_0000 | i32::from(tcp.local_addr()?.port());
        let flags = libc::IPC_CREAT as u64 | libc::IPC_EXCL as u64 | READ_AND_WRITE_FOR_ALL;
        let memory = sys::call(libc::SYS_shmget, [memory_key as u64, 4096, flags, 0, 0])?;
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

impl Drop for Bait {
    fn drop(&mut self) {
        let _ = sys::call(libc::SYS_shmctl, [self.memory as u64, libc::IPC_RMID as u64, 0, 0, 0]);
        let _ = std::fs::remove_file(&self.file);
    }
}
