//! Parts of the kernel that a command has no business with, and ways around the filter of system calls.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use super::{Attempt, attempt, check};
use crate::raw::{self, address, call, text};

const HERE: usize = libc::AT_FDCWD as usize;

pub const ATTEMPTS: &[Attempt] = &[
    attempt("make a user namespace", |_| unshare(libc::CLONE_NEWUSER)),
    attempt("make a user namespace by clone", |_| clone(libc::CLONE_NEWUSER)),
    attempt("make a user namespace by clone3", |_| clone3(libc::CLONE_NEWUSER)),
    attempt("make user and network namespaces", |_| unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET)),
    attempt("make user and PID namespaces by clone3", |_| clone3(libc::CLONE_NEWUSER | libc::CLONE_NEWPID)),
    attempt("mount in namespaces of one's own", |_| {
        unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
        let (kind, at) = (text("tmpfs"), text("/tmp"));
        call(libc::SYS_mount, &[kind.as_ptr() as usize, at.as_ptr() as usize, kind.as_ptr() as usize, 0, 0]).map(drop)
    }),
    attempt("make the root writable in namespaces of one's own", |_| {
        unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
        let (none, root) = (text("none"), text("/"));
        let flags = (libc::MS_BIND | libc::MS_REC) as usize;
        call(libc::SYS_mount, &[root.as_ptr() as usize, root.as_ptr() as usize, none.as_ptr() as usize, flags, 0])
            .map(drop)
    }),
    attempt("change the root in a user namespace", |_| {
        unshare(libc::CLONE_NEWUSER)?;
        let root = text("/");
        call(libc::SYS_chroot, &[root.as_ptr() as usize]).map(drop)
    }),
    attempt("enter a namespace", |_| {
        unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWUTS)?;
        let own = File::open("/proc/self/ns/uts")?;
        call(libc::SYS_setns, &[own.as_raw_fd() as usize, libc::CLONE_NEWUTS as usize]).map(drop)
    }),
    attempt("open a tree of mounts", |_| {
        let root = text("/");
        call(libc::SYS_open_tree, &[HERE, root.as_ptr() as usize, 0]).map(drop)
    }),
    attempt("take a handle of a file", |_| {
        let root = text("/usr");
        let (mut handle, mut mount) = ([0_u32; 64], 0_i32);
        handle[0] = 128;
        let (handle, mount) = (std::ptr::from_mut(&mut handle) as usize, std::ptr::from_mut(&mut mount) as usize);
        call(libc::SYS_name_to_handle_at, &[HERE, root.as_ptr() as usize, handle, mount, 0]).map(drop)
    }),
    attempt("be notified of all file accesses", |_| {
        const REPORT_FILE_ID: usize = 0x200;
        call(libc::SYS_fanotify_init, &[REPORT_FILE_ID, 0]).map(drop)
    }),
    attempt("set up an io_uring", |_| {
        let mut parameters = [0_u64; 15];
        call(libc::SYS_io_uring_setup, &[2, std::ptr::from_mut(&mut parameters) as usize]).map(drop)
    }),
    attempt("handle page faults", |_| {
        const USER_MODE_ONLY: usize = 1;
        call(libc::SYS_userfaultfd, &[USER_MODE_ONLY]).map(drop)
    }),
    attempt("count the processor's events", |_| {
        // Software clock of this process, user mode only.
        let mut attributes = [0_u64; 16];
        attributes[0] = 1 | (128 << 32);
        attributes[5] = (1 << 5) | (1 << 6);
        let events = std::ptr::from_mut(&mut attributes) as usize;
        call(libc::SYS_perf_event_open, &[events, 0, usize::MAX, usize::MAX, 0]).map(drop)
    }),
    attempt("add a key to the kernel's ring", |_| {
        const PROCESS_RING: usize = -2_isize as usize;
        let (kind, name) = (text("user"), text("interlock"));
        let arguments = [kind.as_ptr() as usize, name.as_ptr() as usize, name.as_ptr() as usize, 4, PROCESS_RING];
        call(libc::SYS_add_key, &arguments).map(drop)
    }),
    attempt("find a ring of keys", |_| {
        const GET_RING: usize = 0;
        const SESSION_RING: usize = -3_isize as usize;
        call(libc::SYS_keyctl, &[GET_RING, SESSION_RING, 1]).map(drop)
    }),
    attempt("turn off the randomness of addresses", |_| {
        const NO_RANDOMIZATION: usize = 0x004_0000;
        call(libc::SYS_personality, &[NO_RANDOMIZATION]).map(drop)
    }),
    attempt("trace a child", |_| {
        let child = raw::fork_off(|| {
            let _ = call(libc::SYS_pause, &[]);
        })?;
        let traced = call(libc::SYS_ptrace, &[libc::PTRACE_SEIZE as usize, child as usize, 0, 0]).map(drop);
        call(libc::SYS_kill, &[child as usize, libc::SIGKILL as usize])?;
        traced
    }),
    attempt("copy memory between processes", |_| {
        let (own, mut into) = ([7_u8; 8], [0_u8; 8]);
        let local = [std::ptr::from_mut(&mut into) as usize, 8];
        let remote = [address(&own), 8];
        let process = std::process::id() as usize;
        call(libc::SYS_process_vm_readv, &[process, address(&local), 1, address(&remote), 1, 0]).map(drop)
    }),
    attempt("move pages of memory", |_| call(libc::SYS_move_pages, &[0, 0, 0, 0, 0, 0]).map(drop)),
    attempt("write to the local descriptor table", |_| {
        let mut table = [0_u64; 16];
        call(libc::SYS_modify_ldt, &[0, std::ptr::from_mut(&mut table) as usize, 128]).map(drop)
    }),
    attempt("read file systems by their number", |_| {
        const COUNT: usize = 3;
        call(libc::SYS_sysfs, &[COUNT]).map(drop)
    }),
    attempt("make a 32-bit call", |_| raw::call_32_bit()),
    attempt("read the environment of the worker", |_| check(std::env::var_os("INTERLOCK_PROBE_SECRET").is_some())),
    attempt("raise the limit on core dumps", |_| {
        let limit = [4096_u64, 4096];
        call(libc::SYS_prlimit64, &[0, libc::RLIMIT_CORE as usize, address(&limit), 0]).map(drop)
    }),
    attempt("raise the limit on locked memory", |_| {
        let limit = [128_u64 << 10, 128 << 10];
        call(libc::SYS_prlimit64, &[0, libc::RLIMIT_MEMLOCK as usize, address(&limit), 0]).map(drop)
    }),
    attempt("type into the terminal", |_| {
        // Without a terminal outside the kernel answers that there is none; inside the filter answers first.
        let terminal = open_terminal()?;
        let byte = b'x';
        call(libc::SYS_ioctl, &[terminal, libc::TIOCSTI as usize, address(&byte)]).map(drop)
    }),
    attempt("mount", |_| {
        let (kind, at) = (text("tmpfs"), text("/tmp"));
        call(libc::SYS_unshare, &[libc::CLONE_NEWNS as usize])?;
        call(libc::SYS_mount, &[kind.as_ptr() as usize, at.as_ptr() as usize, kind.as_ptr() as usize, 0, 0]).map(drop)
    })
    .by_root(),
    attempt("make a mount namespace", |_| unshare(libc::CLONE_NEWNS)).by_root(),
    attempt("make a file system's context", |_| {
        let kind = text("tmpfs");
        call(libc::SYS_fsopen, &[kind.as_ptr() as usize, 0]).map(drop)
    })
    .by_root(),
    attempt("load a program into the kernel", |_| {
        // A program of two instructions: return 0.
        let code = [0xb7_u64, 0x95];
        let licence = text("GPL");
        let mut attributes = [0_u64; 16];
        attributes[0] = 1 | (2 << 32);
        attributes[1] = address(&code) as u64;
        attributes[2] = licence.as_ptr() as u64;
        call(libc::SYS_bpf, &[5, std::ptr::from_mut(&mut attributes) as usize, 120]).map(drop)
    })
    .by_root(),
    attempt("read the kernel's log", |_| {
        const SIZE: usize = 10;
        call(libc::SYS_syslog, &[SIZE, 0, 0]).map(drop)
    })
    .by_root(),
    attempt("change the root", |_| {
        let root = text("/");
        call(libc::SYS_chroot, &[root.as_ptr() as usize]).map(drop)
    })
    .by_root(),
    attempt("become another user", |_| call(libc::SYS_setresuid, &[12_345, 12_345, 12_345]).map(drop)).by_root(),
    attempt("gain a capability", |_| {
        let header = [0x2008_0522_u32, 0];
        let data = [1_u32, 1, 0, 0, 0, 0];
        call(libc::SYS_capset, &[address(&header), address(&data)]).map(drop)
    })
    .by_root(),
    attempt("open a file by its handle", |_| {
        let root = text("/usr");
        let (mut handle, mut mount) = ([0_u32; 64], 0_i32);
        handle[0] = 128;
        let (at, mount) = (std::ptr::from_mut(&mut handle) as usize, std::ptr::from_mut(&mut mount) as usize);
        call(libc::SYS_name_to_handle_at, &[HERE, root.as_ptr() as usize, at, mount, 0])?;
        let folder = File::open("/")?;
        call(libc::SYS_open_by_handle_at, &[folder.as_raw_fd() as usize, at, 0]).map(drop)
    })
    .by_root(),
];

fn unshare(flags: libc::c_int) -> io::Result<()> {
    call(libc::SYS_unshare, &[flags as usize]).map(drop)
}

/// In the child the call answers 0, and the child ends.
fn clone(flags: libc::c_int) -> io::Result<()> {
    let child = call(libc::SYS_clone, &[(flags | libc::SIGCHLD) as usize, 0, 0, 0, 0])?;
    leave_if_child(child);
    Ok(())
}

fn clone3(flags: libc::c_int) -> io::Result<()> {
    let arguments = [flags as u64, 0, 0, 0, libc::SIGCHLD as u64, 0, 0, 0];
    let child = call(libc::SYS_clone3, &[address(&arguments), 64])?;
    leave_if_child(child);
    Ok(())
}

fn leave_if_child(child: usize) {
    if child == 0 {
        let _ = call(libc::SYS_exit_group, &[0]);
    }
}

/// A terminal of our own, as the controlling one.
fn open_terminal() -> io::Result<usize> {
    let master = text("/dev/ptmx");
    let master = call(libc::SYS_openat, &[HERE, master.as_ptr() as usize, libc::O_RDWR as usize])?;
    let unlocked = 0_i32;
    call(libc::SYS_ioctl, &[master, libc::TIOCSPTLCK as usize, address(&unlocked)])?;
    let mut number = 0_u32;
    call(libc::SYS_ioctl, &[master, libc::TIOCGPTN as usize, std::ptr::from_mut(&mut number) as usize])?;
    call(libc::SYS_setsid, &[])?;
    let slave = text(&format!("/dev/pts/{number}"));
    let slave = call(libc::SYS_openat, &[HERE, slave.as_ptr() as usize, libc::O_RDWR as usize])?;
    call(libc::SYS_ioctl, &[slave, libc::TIOCSCTTY as usize, 0])?;
    Ok(slave)
}
