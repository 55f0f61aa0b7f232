//! Descriptors that carry bytes to the sandbox: files in memory for orders, pipes for secrets.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
use rustix::pipe::{PipeFlags, pipe_with};

/// A file in memory with these bytes, to be read from its beginning.
pub(super) fn file_with(bytes: &[u8]) -> io::Result<OwnedFd> {
    let file = memfd_create("sandbox", MemfdFlags::CLOEXEC)?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = &rest[written..];
    }
    seek(&file, SeekFrom::Start(0))?;
    Ok(file)
}

/// A pipe with these bytes in it, and no writer. What was read is gone, and the kernel never swaps it out.
pub(super) fn pipe_holding(bytes: &[u8]) -> io::Result<OwnedFd> {
    let (read, write) = pipe()?;
    // A pipe that is too small must be an error, not a wait for a reader that does not exist yet.
    rustix::io::ioctl_fionbio(&write, true)?;
    if !bytes.is_empty() && rustix::io::write(&write, bytes)? != bytes.len() {
        return Err(io::Error::other("a secret does not fit the pipe: too many pipes are open on this machine"));
    }
    Ok(read)
}

pub(super) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}
