//! [`SecretBuf`]: the value of a secret, in memory of its own.
//!
//! ```text
//! | guard page | … value, at the end of its pages | guard page |
//! ```
//!
//! The pages are private and anonymous, locked (never swapped), left out of core dumps, and empty in a child process. The
//! value is overwritten before they are given back. A read or write past the value's end meets the guard page.
//!
//! This is the one module of the crate with `unsafe`: the system calls take addresses, and a mapping is read through a
//! pointer.

#![expect(
    unsafe_code,
    reason = "mmap, mprotect, mlock and madvise take addresses; the mapping is read through a pointer"
)]

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mlock, mmap_anonymous, mprotect, munmap};
use rustix::param::page_size;
use zeroize::Zeroize as _;

use crate::limits;

/// Why a secret could not be kept: nothing of it is held then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretMemoryError {
    #[error(
        "the memory for it cannot be locked ({0}); raise the limit on locked memory (`ulimit -l`, LimitMEMLOCK= in a unit)"
    )]
    NotLocked(Errno),
    #[error("there is no memory for it ({0})")]
    NoMemory(Errno),
    #[error("it is longer than {max} bytes", max = limits::SECRET_BYTES_MAX)]
    TooLong,
    #[error("it is not text (UTF-8)")]
    NotText,
}

/// The value of a secret. It cannot be copied, shown or stored; its user borrows it with [`SecretBuf::reveal`].
pub struct SecretBuf {
    /// The first guard page.
    mapping: NonNull<u8>,
    mapped: usize,
    value: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone and is not written to after `new`.
unsafe impl Send for SecretBuf {}
// SAFETY: as above; shared references only read.
unsafe impl Sync for SecretBuf {}

/// Gives a mapping back, also where setting it up fails half way.
struct Mapping {
    at: NonNull<u8>,
    len: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `at` and `len` are what mmap gave, and no reference into it is left.
        let _ = unsafe { munmap(self.at.as_ptr().cast::<c_void>(), self.len) };
    }
}

impl SecretBuf {
    pub fn new(text: &str) -> Result<Self, SecretMemoryError> {
        let len = text.len();
        if len > limits::SECRET_BYTES_MAX {
            return Err(SecretMemoryError::TooLong);
        }
        let page = page_size();
        let pages = len.max(1).div_ceil(page) * page;
        let mapped = pages + 2 * page;
        // SAFETY: a new mapping at an address that the kernel picks.
        let at = unsafe { mmap_anonymous(ptr::null_mut(), mapped, ProtFlags::empty(), MapFlags::PRIVATE) }
            .map_err(SecretMemoryError::NoMemory)?;
        let at = NonNull::new(at.cast::<u8>()).ok_or(SecretMemoryError::NoMemory(Errno::NOMEM))?;
        let mapping = Mapping { at, len: mapped };
        // SAFETY: one page into a mapping of at least three.
        let middle = unsafe { at.add(page) };
        let range = middle.as_ptr().cast::<c_void>();
        // SAFETY: the pages between the guards, to which no reference exists yet.
        unsafe {
            mprotect(range, pages, MprotectFlags::READ | MprotectFlags::WRITE).map_err(SecretMemoryError::NoMemory)?;
            mlock(range, pages).map_err(SecretMemoryError::NotLocked)?;
            madvise(range, pages, Advice::LinuxDontDump).map_err(SecretMemoryError::NotLocked)?;
            madvise(range, pages, Advice::LinuxWipeOnFork).map_err(SecretMemoryError::NotLocked)?;
        }
        // SAFETY: `len` bytes at the end of the middle pages, which are writable and not `text`'s.
        let value = unsafe {
            let value = middle.add(pages - len);
            ptr::copy_nonoverlapping(text.as_ptr(), value.as_ptr(), len);
            value
        };
        std::mem::forget(mapping);
        Ok(Self { mapping: at, mapped, value, len })
    }

    /// From bytes that ought to be text.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SecretMemoryError> {
        Self::new(std::str::from_utf8(bytes).map_err(|_| SecretMemoryError::NotText)?)
    }

    pub fn reveal(&self) -> &str {
        // SAFETY: `len` bytes were copied there in `new` and are not written to while `self` lives.
        let bytes = unsafe { std::slice::from_raw_parts(self.value.as_ptr(), self.len) };
        // They were text when they were copied.
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl Drop for SecretBuf {
    fn drop(&mut self) {
        // SAFETY: the last use of the value; `&mut self` rules out other references.
        unsafe { std::slice::from_raw_parts_mut(self.value.as_ptr(), self.len) }.zeroize();
        // Unmapping unlocks, too.
        drop(Mapping { at: self.mapping, len: self.mapped });
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The flags of the mapping that holds the value, as the kernel tells them.
    fn flags_at(address: usize) -> Vec<String> {
        let maps = fs::read_to_string("/proc/self/smaps").unwrap();
        let mut within = false;
        for line in maps.lines() {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let bounds = range.and_then(|(from, to)| {
                Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?))
            });
            if let Some((from, to)) = bounds {
                within = (from..to).contains(&address);
            } else if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| within) {
                return flags.split_whitespace().map(str::to_owned).collect();
            }
        }
        Vec::new()
    }

    #[test]
    fn a_secret_is_locked_not_dumped_and_wiped_in_children() {
        let secret = SecretBuf::new("tok-0123456789").unwrap();
        assert_eq!(secret.reveal(), "tok-0123456789");
        let flags = flags_at(secret.reveal().as_ptr() as usize);
        for wanted in ["rd", "wr", "lo", "dd", "wf"] {
            assert!(flags.iter().any(|flag| flag == wanted), "{wanted}: {flags:?}");
        }
    }

    #[test]
    fn guard_pages_stand_on_both_sides() {
        let secret = SecretBuf::new(&"x".repeat(page_size() + 1)).unwrap();
        let end = secret.reveal().as_ptr() as usize + secret.reveal().len();
        assert_eq!(end % page_size(), 0, "the value ends where its pages end");
        for guard in [end, secret.mapping.as_ptr() as usize] {
            let flags = flags_at(guard);
            assert!(!flags.is_empty() && !flags.iter().any(|flag| flag == "rd" || flag == "wr"), "{flags:?}");
        }
    }

    #[test]
    fn the_mapping_is_gone_with_the_value() {
        let secret = SecretBuf::new("tok-0123456789").unwrap();
        let address = secret.reveal().as_ptr() as usize;
        drop(secret);
        assert!(!flags_at(address).iter().any(|flag| flag == "dd"));
    }

    #[test]
    fn what_is_too_long_or_no_text_is_refused() {
        let long = SecretBuf::new(&"x".repeat(limits::SECRET_BYTES_MAX + 1));
        assert_eq!(long.err(), Some(SecretMemoryError::TooLong));
        assert_eq!(SecretBuf::from_bytes(&[0xff]).err(), Some(SecretMemoryError::NotText));
        assert_eq!(SecretBuf::new("").unwrap().reveal(), "");
    }
}
