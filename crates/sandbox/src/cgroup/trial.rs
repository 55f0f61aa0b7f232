//! A group that is made to find out whether commands could have theirs in the same place.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;

use super::doors::members_file;
use super::group::remove_soon;
use super::{Controller, Version, limit_file, unused_name};
use crate::sys;

/// Removed when it is dropped.
pub(super) struct TrialGroup {
    folder: PathBuf,
    version: Version,
}

impl TrialGroup {
    pub fn make(parent: &Path, version: Version) -> io::Result<Self> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        unused_name(|| {
            let number = MADE.fetch_add(1, Ordering::Relaxed);
            let folder = parent.join(format!("interlock-{}-try-{number}", std::process::id()));
            fs::create_dir(&folder)?;
            Ok(Self { folder, version })
        })
    }

    /// Whether the controller is on here.
    pub fn has(&self, controller: Controller) -> bool {
        fs::metadata(self.folder.join(limit_file(self.version, controller))).is_ok()
    }

    /// Whether the kernel lets a child of this process in, as it must let a command in. That the list of members can be
    /// opened says little: the kernel also looks at where the process comes from, and at the group's kind.
    pub fn can_be_joined(&self) -> bool {
        let Ok(door) = OpenOptions::new().write(true).open(self.folder.join(members_file(self.version))) else {
            return false;
        };
        // Nothing is executed: the hook's error ends the child and tells how far it came.
        let mut command = Command::new("/proc/self/exe");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        sys::before_exec(&mut command, move || {
            rustix::io::write(&door, b"0")?;
            Err(Errno::CANCELED.into())
        });
        let joined = Some(Errno::CANCELED.raw_os_error());
        matches!(command.status(), Err(error) if error.raw_os_error() == joined)
    }
}

impl Drop for TrialGroup {
    fn drop(&mut self) {
        remove_soon(vec![std::mem::take(&mut self.folder)]);
    }
}
