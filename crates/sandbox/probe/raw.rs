//! System calls as an attacker makes them: by number, past every library.
#![expect(unsafe_code, reason = "attempts make calls that no library wraps, with arguments that no library allows")]

use std::ffi::CString;
use std::io;

/// Calls the kernel. Arguments are numbers, or addresses of values that outlive the call.
pub fn call(number: libc::c_long, arguments: &[usize]) -> io::Result<usize> {
    let mut six = [0; 6];
    six[..arguments.len()].copy_from_slice(arguments);
    // SAFETY: the callers pass addresses of their own locals, of the size that the call reads or writes.
    let answer = unsafe { libc::syscall(number, six[0], six[1], six[2], six[3], six[4], six[5]) };
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}

/// A path or name for a call, kept alive by the caller.
pub fn text(text: &str) -> CString {
    CString::new(text).expect("no zero byte")
}

pub fn address<T>(value: &T) -> usize {
    std::ptr::from_ref(value) as usize
}

/// Runs the closure in a child, and says how that ended. A child that takes too long is killed by its alarm.
pub fn in_child(seconds: u32, run: impl FnOnce() -> i32) -> io::Result<ChildEnd> {
    // SAFETY: the probe has one thread here.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: plain calls; the child does not return.
            unsafe {
                libc::alarm(seconds);
                let code = run();
                libc::_exit(code)
            }
        }
        pid => wait(pid),
    }
}

pub enum ChildEnd {
    Code(i32),
    Signal(i32),
}

fn wait(pid: libc::pid_t) -> io::Result<ChildEnd> {
    let mut status = 0;
    // SAFETY: the status is ours.
    while unsafe { libc::waitpid(pid, &raw mut status, 0) } < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    if libc::WIFSIGNALED(status) {
        Ok(ChildEnd::Signal(libc::WTERMSIG(status)))
    } else {
        Ok(ChildEnd::Code(libc::WEXITSTATUS(status)))
    }
}

/// Forks and leaves the child to itself: it never comes back from the closure's end.
pub fn fork_off(run: impl FnOnce()) -> io::Result<i32> {
    // SAFETY: the probe has one thread here.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            run();
            // SAFETY: ends the process.
            unsafe { libc::_exit(0) }
        }
        pid => Ok(pid),
    }
}

/// The 32-bit way into the kernel: getpid by its number of 1992.
#[cfg(target_arch = "x86_64")]
pub fn call_32_bit() -> io::Result<()> {
    let answer: i64;
    // SAFETY: the call has no arguments and changes nothing but its answer's register.
    unsafe {
        std::arch::asm!("int 0x80", inlateout("rax") 20_i64 => answer, out("r8") _, out("r9") _, out("r10") _, out("r11") _);
    }
    if answer > 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-(answer as i32))) }
}

/// Takes so many bytes of memory and writes to each page.
pub fn take_memory(bytes: usize) -> io::Result<()> {
    // SAFETY: a new private mapping; each write is within it.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let taken = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        if taken == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        for page in (0..bytes).step_by(4096) {
            taken.cast::<u8>().add(page).write_volatile(1);
        }
        libc::munmap(taken, bytes);
    }
    Ok(())
}
