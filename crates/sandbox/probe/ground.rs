//! What the attempts reach for: laid out on the host before, and made known to them inside and outside.

use std::fs;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::raw::{call, text};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ground {
    pub uid: u32,
    /// A folder that is mounted read-only inside.
    pub shown: String,
    /// A folder that is not there inside.
    pub hidden: String,
    /// A folder that can be written: inside `/tmp`; outside one of this suite alone, which goes with it.
    pub scratch: String,
    /// The probe with the set-user-id bit and root as its owner.
    pub set_uid: String,
    /// The probe with capabilities in its file.
    pub probe: String,
    /// A process of the host.
    pub victim: i32,
    /// What holds the attacker: inside, the shim; outside, the victim stands for it.
    pub holder: i32,
    pub tcp: u16,
    pub tcp6: u16,
    pub udp: u16,
    pub abstract_name: String,
    pub memory_key: i32,
    pub semaphore_key: i32,
    pub message_key: i32,
    pub message_queue: String,
    pub shared_file: String,
    pub host_name: String,
    /// A descriptor of the worker's that was left open by mistake.
    pub leaked: i32,
    pub pids: usize,
    pub memory_bytes: usize,
    pub tmp_bytes: usize,
    pub open_files: usize,
}

/// Keeps everything alive.
pub struct LaidGround {
    pub ground: Ground,
    victim: Child,
    ids: (usize, usize, usize),
    _sockets: (TcpListener, Option<TcpListener>, UdpSocket, UnixListener, UnixListener),
    _leaked: fs::File,
}

const ALL: u32 = 0o777;

impl LaidGround {
    pub fn lay(base: &str, victim_uid: u32) -> io::Result<Self> {
        let (shown, hidden) = (format!("{base}/shown"), format!("{base}/hidden"));
        for folder in [&shown, &hidden] {
            fs::create_dir(folder)?;
            open_to_all(folder)?;
            for name in ["file", "other", "victim-file"] {
                fs::write(format!("{folder}/{name}"), "of the host")?;
                open_to_all(&format!("{folder}/{name}"))?;
            }
            fs::create_dir(format!("{folder}/folder"))?;
            open_to_all(&format!("{folder}/folder"))?;
            std::os::unix::fs::symlink("file", format!("{folder}/link"))?;
        }
        let scratch = format!("{base}/scratch");
        fs::create_dir(&scratch)?;
        let path = text(&format!("{hidden}/fifo"));
        call(
            libc::SYS_mknodat,
            &[libc::AT_FDCWD as usize, path.as_ptr() as usize, (libc::S_IFIFO | 0o666) as usize, 0],
        )?;
        let unix = UnixListener::bind(format!("{hidden}/socket"))?;
        open_to_all(&format!("{hidden}/socket"))?;
        let tcp = TcpListener::bind("127.0.0.1:0")?;
        let tcp6 = TcpListener::bind("[::1]:0").ok();
        let udp = UdpSocket::bind("127.0.0.1:0")?;
        let unique = tcp.local_addr()?.port();
        let abstract_name = format!("interlock-probe-{}-{unique}", std::process::id());
        let abstract_socket =
            UnixListener::bind_addr(&std::os::unix::net::SocketAddr::from_abstract_name(&abstract_name)?)?;
        let key = 0x494d_0000 | i32::from(unique);
        let create = (libc::IPC_CREAT | libc::IPC_EXCL | 0o666) as usize;
        let memory = call(libc::SYS_shmget, &[key as usize, 4096, create])?;
        let semaphore = call(libc::SYS_semget, &[key as usize, 1, create])?;
        let message = call(libc::SYS_msgget, &[key as usize, create])?;
        let message_queue = format!("interlock-probe-{unique}");
        let name = text(&message_queue);
        call(libc::SYS_mq_open, &[name.as_ptr() as usize, (libc::O_CREAT | libc::O_RDWR) as usize, 0o666, 0])?;
        let shared_file = format!("/dev/shm/interlock-probe-{unique}");
        fs::write(&shared_file, "of the host")?;
        open_to_all(&shared_file)?;
        let leaked = fs::File::open(&hidden)?;
        let number = std::os::fd::AsRawFd::as_raw_fd(&leaked);
        // As a careless library would have opened it.
        call(libc::SYS_fcntl, &[number as usize, libc::F_SETFD as usize, 0])?;
        let victim = start_victim(victim_uid, &hidden)?;
        let pid = victim.id() as i32;
        let host_name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Ok(Self {
            ground: Ground {
                uid: rustix::process::geteuid().as_raw(),
                set_uid: format!("{base}/set-uid"),
                probe: format!("{base}/probe"),
                victim: pid,
                holder: pid,
                tcp: unique,
                tcp6: tcp6.as_ref().map_or(0, |tcp6| tcp6.local_addr().map_or(0, |address| address.port())),
                udp: udp.local_addr()?.port(),
                abstract_name,
                memory_key: key,
                semaphore_key: key,
                message_key: key,
                message_queue,
                shared_file,
                host_name,
                leaked: number,
                shown,
                hidden,
                scratch,
                pids: 0,
                memory_bytes: 0,
                tmp_bytes: 0,
                open_files: 0,
            },
            victim,
            ids: (memory, semaphore, message),
            _sockets: (tcp, tcp6, udp, unix, abstract_socket),
            _leaked: leaked,
        })
    }
}

/// A process like any other of the host: with a secret in its environment, and a file open.
fn start_victim(uid: u32, hidden: &str) -> io::Result<Child> {
    let mut command = Command::new("/usr/bin/sleep");
    command.arg("300").env("SECRET", "of the host").current_dir(hidden);
    command.stdin(fs::File::open(format!("{hidden}/victim-file"))?).stdout(Stdio::null()).stderr(Stdio::null());
    if rustix::process::geteuid().is_root() {
        std::os::unix::process::CommandExt::uid(&mut command, uid);
        std::os::unix::process::CommandExt::gid(&mut command, uid);
    }
    command.spawn()
}

pub fn open_to_all(path: &str) -> io::Result<()> {
    fs::set_permissions(Path::new(path), fs::Permissions::from_mode(ALL))
}

impl Drop for LaidGround {
    fn drop(&mut self) {
        let (memory, semaphore, message) = self.ids;
        let remove = libc::IPC_RMID as usize;
        let _ = call(libc::SYS_shmctl, &[memory, remove, 0]);
        let _ = call(libc::SYS_semctl, &[semaphore, 0, remove, 0]);
        let _ = call(libc::SYS_msgctl, &[message, remove, 0]);
        let name = text(&self.ground.message_queue);
        let _ = call(libc::SYS_mq_unlink, &[name.as_ptr() as usize]);
        let _ = fs::remove_file(&self.ground.shared_file);
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}
