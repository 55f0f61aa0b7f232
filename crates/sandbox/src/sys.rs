//! The system calls that no safe function wraps. All `unsafe` of the crate stands here.
#![expect(unsafe_code, reason = "hooks between fork and exec, raw descriptors, seccomp flags: no safe wrapper exists")]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use seccompiler::sock_filter;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Runs the hook in the child, between fork and exec.
///
/// In a process with several threads the hook must not allocate or lock: another thread may have held the lock when
/// this one forked. The two callers are the spawner, whose hook makes plain system calls, and the shim, which has one
/// thread.
pub(crate) fn before_exec(command: &mut Command, hook: impl FnMut() -> io::Result<()> + Send + Sync + 'static) {
    // SAFETY: what the hook may do is said above, and both callers keep to it.
    unsafe { command.pre_exec(hook) };
}

/// Owns a descriptor that this process was started with.
pub(crate) fn take_descriptor(raw: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_GETFD reads a flag; a descriptor that is not open is an error.
    if unsafe { libc::fcntl(raw, libc::F_GETFD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open, and the shim's configuration names each one once.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Marks every descriptor from this one on to be closed by exec.
pub(crate) fn close_on_exec_from(first: u32) -> io::Result<()> {
    let flags = libc::CLOSE_RANGE_CLOEXEC as libc::c_int;
    // SAFETY: no pointers; the descriptors stay open in this process.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, flags) }).map(drop)
}

/// Closes every descriptor from this one on, in a process that is about to end.
pub(crate) fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: no pointers; the caller uses none of the descriptors any more and ends without dropping them.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) }).map(drop)
}

/// Lets a descriptor through exec.
pub(crate) fn keep_on_exec(raw: RawFd) -> io::Result<()> {
    // SAFETY: sets a flag; a descriptor that is not open is an error.
    check(unsafe { libc::fcntl(raw, libc::F_SETFD, 0) }.into()).map(drop)
}

/// Puts a descriptor at a number that exec closes, whatever stood there before.
pub(crate) fn place_descriptor(from: RawFd, to: RawFd) -> io::Result<()> {
    // SAFETY: the numbers that the shim places secrets at are below those of the descriptors that it owns.
    check(unsafe { libc::dup3(from, to, libc::O_CLOEXEC) }.into()).map(drop)
}

/// A descriptor to be waited for until it can be read.
pub(crate) fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` gives the same open descriptor for as long as it lives, and it stays in the watch.
    Ok(unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?)
}

/// Adds a filter to this thread. `log` has the kernel log what the filter refuses.
pub(crate) fn add_filter(program: &[sock_filter], log: bool) -> io::Result<()> {
    let fprog = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| io::Error::other("the filter is too long"))?,
        filter: program.as_ptr().cast_mut().cast(),
    };
    let flags = if log { libc::SECCOMP_FILTER_FLAG_LOG } else { 0 };
    // SAFETY: `sock_filter` has the kernel's layout, and the program outlives the call, which only reads it.
    check(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const fprog) }).map(drop)
}

/// A system call whose arguments are numbers. For canaries.
pub(crate) fn call(number: libc::c_long, arguments: [libc::c_ulong; 5]) -> io::Result<i64> {
    let of = arguments;
    // SAFETY: the callers pass numbers only: processes, flags, zeroes.
    check(unsafe { libc::syscall(number, of[0], of[1], of[2], of[3], of[4]) })
}

/// The most memory that any child which has been waited for had at once.
pub(crate) fn children_peak_bytes() -> u64 {
    // SAFETY: all bytes zero is a valid value of the struct, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024
}

fn check(answer: libc::c_long) -> io::Result<i64> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}
