//! Other processes: one of the host, and the one that holds the attacker.

use std::fs;
use std::io;

use super::{Attempt, attempt, check};
use crate::raw::{address, call};

const NULL: usize = 0;

pub const ATTEMPTS: &[Attempt] = &[
    attempt("find a process of the host", |g| {
        check(fs::read_to_string(format!("/proc/{}/comm", g.victim))?.trim() == "sleep")
    }),
    attempt("see how a process of the host was started", |g| {
        check(fs::read(format!("/proc/{}/cmdline", g.victim))?.starts_with(b"/usr/bin/sleep"))
    }),
    attempt("read the environment of a process of the host", |g| {
        check(fs::read(format!("/proc/{}/environ", g.victim))?.windows(6).any(|window| window == b"SECRET"))
    }),
    attempt("read the memory map of a process of the host", |g| {
        check(fs::read_to_string(format!("/proc/{}/maps", g.victim))?.contains("sleep"))
    }),
    attempt("open the memory of a process of the host", |g| {
        open_memory(g.victim).and_then(|()| check(is_sleep(g.victim)))
    }),
    attempt("reach files through a process of the host", |g| {
        fs::read(format!("/proc/{}/cwd/file", g.victim)).map(drop)
    }),
    attempt("reach the root through a process of the host", |g| {
        fs::read(format!("/proc/{}/root{}/file", g.victim, g.hidden)).map(drop)
    }),
    attempt("open a descriptor of a process of the host", |g| {
        fs::read(format!("/proc/{}/fd/0", g.victim)).and_then(|found| check(found == b"of the host"))
    }),
    attempt("signal a process of the host", |g| {
        let signaled = call(libc::SYS_kill, &[g.victim as usize, libc::SIGCONT as usize]).map(drop);
        signaled.and_then(|()| check(is_sleep(g.victim)))
    }),
    attempt("hold a process of the host", |g| {
        let held = call(libc::SYS_pidfd_open, &[g.victim as usize, 0]).map(drop);
        held.and_then(|()| check(is_sleep(g.victim)))
    }),
    attempt("take a descriptor from a process of the host", |g| {
        let process = call(libc::SYS_pidfd_open, &[g.victim as usize, 0])?;
        call(libc::SYS_pidfd_getfd, &[process, 0, 0]).map(drop)
    }),
    attempt("trace a process of the host", |g| {
        call(libc::SYS_ptrace, &[libc::PTRACE_SEIZE as usize, g.victim as usize, NULL, NULL]).map(drop)?;
        Ok(())
    }),
    attempt("trace the holder", |g| {
        call(libc::SYS_ptrace, &[libc::PTRACE_SEIZE as usize, g.holder as usize, NULL, NULL]).map(drop)
    }),
    attempt("read memory of a process of the host", |g| read_memory(g.victim)),
    attempt("read memory of the holder", |g| read_memory(g.holder)),
    attempt("compare processes", |g| {
        const FILES: usize = 2;
        call(libc::SYS_kcmp, &[std::process::id() as usize, g.victim as usize, FILES, 0, 0]).map(drop)
    }),
    attempt("lower the priority of a process of the host", |g| {
        call(libc::SYS_setpriority, &[libc::PRIO_PROCESS as usize, g.victim as usize, 19]).map(drop)
    }),
    attempt("pin a process of the host to a processor", |g| {
        let mask = [1_u64; 16];
        call(libc::SYS_sched_setaffinity, &[g.victim as usize, 128, address(&mask)]).map(drop)
    }),
    attempt("read the session of a process of the host", |g| {
        // Zero is an answer too: the leader may be outside what this machine sees.
        call(libc::SYS_getsid, &[g.victim as usize]).map(drop)
    }),
    attempt("read the scheduling of a process of the host", |g| {
        call(libc::SYS_sched_getscheduler, &[g.victim as usize]).map(drop)
    }),
    attempt("open the memory of the holder", |g| open_memory(g.holder)),
    attempt("read the environment of the holder", |g| fs::read(format!("/proc/{}/environ", g.holder)).map(drop)),
    attempt("list the descriptors of the holder", |g| fs::read_dir(format!("/proc/{}/fd", g.holder)).map(drop)),
    attempt("read the program of the holder", |g| fs::read(format!("/proc/{}/exe", g.holder)).map(drop)),
    attempt("reach the root through the holder", |g| fs::read_dir(format!("/proc/{}/root", g.holder)).map(drop)),
    attempt("take a descriptor from the holder", |g| {
        let process = call(libc::SYS_pidfd_open, &[g.holder as usize, 0])?;
        call(libc::SYS_pidfd_getfd, &[process, 0, 0]).map(drop)
    }),
    attempt("stop the holder", |g| {
        call(libc::SYS_kill, &[g.holder as usize, libc::SIGSTOP as usize])?;
        let is_stopped = || {
            // The kernel stops it when it next looks.
            std::thread::yield_now();
            fs::read_to_string(format!("/proc/{}/stat", g.holder)).is_ok_and(|status| status.contains(") T "))
        };
        let stopped = (0..20_000).any(|_| is_stopped());
        call(libc::SYS_kill, &[g.holder as usize, libc::SIGCONT as usize])?;
        check(stopped)
    }),
];

fn is_sleep(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "sleep")
}

fn open_memory(pid: i32) -> io::Result<()> {
    fs::File::open(format!("/proc/{pid}/mem")).map(drop)
}

/// The first bytes of the program, where the map says that it is; without a map, of an address of our own.
fn read_memory(pid: i32) -> io::Result<()> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let start = maps.split('-').next().and_then(|start| usize::from_str_radix(start, 16).ok());
    let (mut found, own) = ([0_u8; 16], address(&pid));
    let local = [std::ptr::from_mut(&mut found) as usize, found.len()];
    let remote = [start.unwrap_or(own), found.len()];
    call(libc::SYS_process_vm_readv, &[pid as usize, address(&local), 1, address(&remote), 1, 0]).map(drop)
}
