//! The host's network, and what processes of the host listen on.

use std::fs;
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};

use super::{Attempt, attempt, check};
use crate::raw::{call, text};

/// The host's network is shared there.
const SHARED: &[&str] = &["dev-flex"];

pub const ATTEMPTS: &[Attempt] = &[
    attempt("connect to the host by TCP", |g| TcpStream::connect(("127.0.0.1", g.tcp)).map(drop)).allowed_in(SHARED),
    attempt("connect to the host by TCP and IPv6", |g| TcpStream::connect(("::1", g.tcp6)).map(drop))
        .allowed_in(SHARED),
    attempt("send to the host by UDP", |g| {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(("127.0.0.1", g.udp))?;
        socket.send(b"out")?;
        // A closed port answers with an error, which the second send meets.
        socket.send(b"out").map(drop)
    })
    .allowed_in(SHARED),
    attempt("listen for the host by TCP", |_| std::net::TcpListener::bind("127.0.0.1:0").map(drop)).allowed_in(SHARED),
    attempt("see the host's interfaces", |_| {
        let devices = fs::read_to_string("/proc/net/dev")?;
        check(devices.lines().skip(2).any(|line| !line.trim().starts_with("lo:")))
    })
    .allowed_in(SHARED),
    attempt("see the host's routes", |_| check(fs::read_to_string("/proc/net/route")?.lines().count() > 1))
        .allowed_in(SHARED),
    attempt("see the host's connections", |g| {
        check(fs::read_to_string("/proc/net/tcp")?.contains(&format!(":{:04X} ", g.tcp)))
    })
    .allowed_in(SHARED),
    attempt("ask the kernel for its routes", |_| {
        const DATAGRAM: usize = libc::SOCK_RAW as usize;
        let socket = call(libc::SYS_socket, &[libc::AF_NETLINK as usize, DATAGRAM, libc::NETLINK_ROUTE as usize])?;
        check(socket > 0)
    })
    .allowed_in(SHARED),
    attempt("connect to an abstract socket of the host", |g| {
        UnixStream::connect_addr(&SocketAddr::from_abstract_name(&g.abstract_name)?).map(drop)
    }),
    attempt("talk to the hypervisor", |_| socket(libc::AF_VSOCK, libc::SOCK_STREAM)),
    attempt("attach shared memory of the host", |g| {
        let id = call(libc::SYS_shmget, &[g.memory_key as usize, 0, 0])?;
        call(libc::SYS_shmat, &[id, 0, 0]).map(drop)
    }),
    attempt("use semaphores of the host", |g| call(libc::SYS_semget, &[g.semaphore_key as usize, 0, 0]).map(drop)),
    attempt("send to a message queue of the host", |g| call(libc::SYS_msgget, &[g.message_key as usize, 0]).map(drop)),
    attempt("open a named message queue of the host", |g| {
        let name = text(&g.message_queue);
        call(libc::SYS_mq_open, &[name.as_ptr() as usize, libc::O_RDWR as usize, 0, 0]).map(drop)
    }),
    attempt("read the name of the host", |g| {
        check(rustix::system::uname().nodename().to_string_lossy() == g.host_name.as_str())
    }),
    attempt("read every packet", |_| socket(libc::AF_PACKET, libc::SOCK_RAW)).by_root(),
    attempt("write packets of one's own", |_| {
        call(libc::SYS_socket, &[libc::AF_INET as usize, libc::SOCK_RAW as usize, libc::IPPROTO_ICMP as usize])
            .map(drop)
    })
    .by_root(),
    attempt("rename the host", |g| {
        let name = text(&g.host_name);
        call(libc::SYS_sethostname, &[name.as_ptr() as usize, g.host_name.len()]).map(drop)
    })
    .by_root(),
];

fn socket(family: libc::c_int, kind: libc::c_int) -> io::Result<()> {
    call(libc::SYS_socket, &[family as usize, kind as usize, 0]).map(drop)
}
