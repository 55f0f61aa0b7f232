//! Reading secrets from files and standard input, in buffers that are wiped.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use interlock_core::private_file::FileAccess;
use zeroize::Zeroizing;

use crate::error::Cause;
use crate::limits;
use crate::memory::SecretBuf;

/// Runs what waits for a disk where nothing else waits for it.
pub(crate) async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // Only a panic inside, or the end of the runtime, keeps it from an answer.
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => std::future::pending().await,
        },
    }
}

/// A file's bytes, one more than the limit at most, in a buffer that is wiped. The standard library's reader has no buffer
/// of its own that would keep a copy.
pub(crate) fn read_private(path: &Path, bytes_max: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    read_limited(File::open(path)?, bytes_max)
}

/// The same of a file that an operator has made: refused where others can get at it. What a platform mounts for its
/// workloads is read as it is mounted.
pub(crate) fn read_guarded(path: &Path, bytes_max: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    let file = File::open(path)?;
    let found = file.metadata()?;
    let access = FileAccess { owner: found.uid(), mode: found.mode() };
    let reader = rustix::process::geteuid().as_raw();
    if found.is_file()
        && let Some(why) = access.exposure(&path.display().to_string(), reader)
    {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    read_limited(file, bytes_max)
}

fn read_limited(reader: impl Read, bytes_max: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(bytes_max + READ_SLACK));
    reader.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A value that is piped in: without the line end after it.
pub fn read_secret(reader: impl Read) -> Result<SecretBuf, Cause> {
    let bytes = read_limited(reader, limits::SECRET_BYTES_MAX);
    let bytes = bytes.map_err(|error| Cause::NotThere(format!("it cannot be read: {error}")))?;
    value_of_file(&bytes)
}

/// Room beyond the limit, so that the buffer is never moved.
const READ_SLACK: usize = 64;

/// A file's value: without the line end that editors leave, and not empty.
pub(crate) fn value_of_file(bytes: &[u8]) -> Result<SecretBuf, Cause> {
    let end = bytes.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last + 1);
    if end == 0 {
        return Err(Cause::NotThere("it is empty".to_owned()));
    }
    Ok(SecretBuf::from_bytes(&bytes[..end])?)
}
