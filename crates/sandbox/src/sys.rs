//! The system calls that no safe function wraps. All `unsafe` of the crate stands here.
#![expect(
    unsafe_code,
    reason = "children in cgroups, hooks before exec, raw descriptors, seccomp flags, locked pages: no safe wrapper exists"
)]

use std::ffi::{CString, c_char};
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::{self, NonNull};

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use seccompiler::sock_filter;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use zeroize::Zeroize as _;

/// Of `linux/sched.h`. The constant of `libc` is an `int`, for which the value is too large.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Bytes in pages of their own: locked (never swapped), left out of core dumps, empty in a child process, and wiped when
/// they are dropped.
pub(crate) struct LockedBytes {
    at: NonNull<u8>,
    mapped: usize,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone and is not written to after `holding`.
unsafe impl Send for LockedBytes {}
// SAFETY: as above; shared references only read.
unsafe impl Sync for LockedBytes {}

impl LockedBytes {
    pub fn holding(bytes: &[u8]) -> io::Result<Self> {
        let (mapped, protection) = (bytes.len().max(1), libc::PROT_READ | libc::PROT_WRITE);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address that the kernel picks.
        let pages = unsafe { libc::mmap(ptr::null_mut(), mapped, protection, flags, -1, 0) };
        if pages == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(pages.cast::<u8>()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        // From here on the pages are given back by its drop, also where they cannot be locked.
        let held = Self { at, mapped, len: bytes.len() };
        // SAFETY: the pages are this value's own, no reference to them exists, and `bytes` are not among them.
        unsafe {
            check(libc::mlock(pages, mapped).into())?;
            check(libc::madvise(pages, mapped, libc::MADV_DONTDUMP).into())?;
            check(libc::madvise(pages, mapped, libc::MADV_WIPEONFORK).into())?;
            ptr::copy_nonoverlapping(bytes.as_ptr(), at.as_ptr(), bytes.len());
        }
        Ok(held)
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `len` bytes were copied there in `holding` and are not written to while `self` lives.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }
}

impl Drop for LockedBytes {
    fn drop(&mut self) {
        // SAFETY: the last use of the bytes; `&mut self` rules out other references.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }.zeroize();
        // SAFETY: what mmap gave. Unmapping unlocks, too.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.mapped) };
    }
}

/// Runs the hook in the child, between fork and exec.
///
/// In a process with several threads the hook must not allocate or lock: another thread may have held the lock when
/// this one forked. The callers are the trial of a cgroup, whose hook makes plain system calls, and the shim, which has
/// one thread.
pub(crate) fn before_exec(command: &mut Command, hook: impl FnMut() -> io::Result<()> + Send + Sync + 'static) {
    // SAFETY: what the hook may do is said above, and all callers keep to it.
    unsafe { command.pre_exec(hook) };
}

/// Starts a program, whose file is the first of `argv`, with an empty environment; in a group of cgroups version 2 where one
/// is given by its folder and the kernel can do it. Returns when the program has been executed.
///
/// `prepare` runs in the child before exec, and is told whether the child is in the group. It is borrowed, so that the child
/// drops nothing, and must not allocate, lock or panic: another thread may have held the lock when this one forked, and
/// unlike fork, `clone3` does not take the allocator's before.
pub(crate) fn start(
    argv: &[CString],
    group: Option<&OwnedFd>,
    prepare: &impl Fn(bool) -> io::Result<()>,
) -> io::Result<Pid> {
    let mut words: Vec<*const c_char> = argv.iter().map(|word| word.as_ptr()).collect();
    words.push(ptr::null());
    let environment = [ptr::null::<c_char>()];
    // Closed by exec. What the child writes to it is the error that kept it from exec.
    let (failure, failed) = pipe_with(PipeFlags::CLOEXEC)?;
    // SAFETY: the child goes into the branch below, which makes plain system calls and does not come back.
    let (child, is_inside) = unsafe { fork_into(group) }?;
    let Some(child) = Pid::from_raw(child) else {
        let error = match reset_signals().and_then(|()| prepare(is_inside)) {
            // SAFETY: strings and lists are ended as execve asks, and live in the child's copy of this frame. Without a
            // first word the file is a null pointer, which is an error.
            Ok(()) => unsafe {
                libc::execve(*words.as_ptr(), words.as_ptr(), environment.as_ptr());
                io::Error::last_os_error()
            },
            Err(error) => error,
        };
        let _ = rustix::io::write(&failed, &error.raw_os_error().unwrap_or(libc::EINVAL).to_ne_bytes());
        // SAFETY: ends the process without running what the parent is to run at its own end.
        unsafe { libc::_exit(1) }
    };
    drop(failed);
    let mut code = [0; size_of::<i32>()];
    let read = rustix::io::retry_on_intr(|| rustix::io::read(&failure, &mut code));
    if read == Ok(0) {
        return Ok(child);
    }
    let _ = kill_process(child, Signal::KILL);
    let _ = waitpid(Some(child), WaitOptions::empty());
    read?;
    Err(io::Error::from_raw_os_error(i32::from_ne_bytes(code)))
}

/// The child, which is 0 in the child itself, and whether it is in the group. A kernel before Linux 5.7 and a container whose
/// filter does not know `clone3` start it outside, as does any other refusal: its join will say what is wrong.
///
/// # Safety
///
/// Until it executes a program or ends, the child must make plain system calls only.
unsafe fn fork_into(group: Option<&OwnedFd>) -> io::Result<(libc::pid_t, bool)> {
    if let Some(group) = group {
        // SAFETY: all bytes zero is a valid value of the struct.
        let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
        arguments.flags = CLONE_INTO_CGROUP;
        arguments.exit_signal = libc::SIGCHLD as u64;
        arguments.cgroup = group.as_raw_fd() as u64;
        // SAFETY: as fork: with these flags the child gets a copy of all memory and goes on upon its copy of this stack.
        let child = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>()) };
        if child >= 0 {
            return Ok((child as libc::pid_t, true));
        }
    }
    // SAFETY: what the child may do is the caller's promise.
    let child = check(unsafe { libc::fork() }.into())?;
    Ok((child as libc::pid_t, false))
}

/// Gives a child process the signals that programs expect: none blocked, and `SIGPIPE` not ignored as it is in this one.
fn reset_signals() -> io::Result<()> {
    // SAFETY: all bytes zero is a valid value of the set, and the calls change this process alone.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        check(libc::sigemptyset(&raw mut none).into())?;
        check(libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut()).into())?;
        if libc::signal(libc::SIGPIPE, libc::SIG_DFL) == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
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
    // SAFETY: the child that becomes a sandbox places its standard streams, which nothing owns.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags of the mapping at an address, as the kernel tells them.
    fn flags_at(address: usize) -> String {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut within = false;
        for line in maps.lines() {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let hex = |text: &str| usize::from_str_radix(text, 16).ok();
            if let Some((from, to)) = range.and_then(|(from, to)| Some((hex(from)?, hex(to)?))) {
                within = (from..to).contains(&address);
            } else if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| within) {
                return format!("{flags} ");
            }
        }
        String::new()
    }

    #[test]
    fn a_program_that_was_not_executed_is_an_error() {
        let missing = start(&[CString::from(c"/nowhere/program")], None, &|_| Ok(())).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        let refuse = |_| Err(io::Error::from_raw_os_error(libc::ENOSPC));
        let refused = start(&[CString::from(c"/bin/true")], None, &refuse).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENOSPC));
        assert!(start(&[], None, &|_| Ok(())).is_err(), "there is no program");
    }

    /// This process ignores `SIGPIPE`. A shell that is started with the signal ignored survives it.
    #[test]
    fn a_program_is_started_with_the_usual_signals() {
        let shell = [c"/bin/sh", c"-c", c"kill -PIPE $$"].map(CString::from);
        let shell = start(&shell, None, &|_| Ok(())).unwrap();
        let (_, status) = waitpid(Some(shell), WaitOptions::empty()).unwrap().unwrap();
        assert_eq!(status.terminating_signal(), Some(libc::SIGPIPE));
    }

    #[test]
    fn locked_bytes_are_not_swapped_not_dumped_and_empty_in_children() {
        let held = LockedBytes::holding(b"tok-0123456789").unwrap();
        assert_eq!(held.bytes(), b"tok-0123456789");
        let flags = flags_at(held.bytes().as_ptr() as usize);
        for wanted in ["lo", "dd", "wf"] {
            assert!(flags.contains(&format!(" {wanted} ")), "{wanted}: {flags}");
        }
        assert_eq!(LockedBytes::holding(b"").unwrap().bytes(), b"");
    }
}
