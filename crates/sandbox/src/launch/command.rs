//! bubblewrap as it is to be started: its arguments, its descriptors, its cgroups, its identity.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::process::{Gid, Pid, Uid};

use super::Identity;
use crate::cgroup::Doors;
use crate::sys;

/// Not `std::process::Command`, which starts no process in a cgroup.
pub(super) struct BwrapCommand {
    /// The program's file comes first.
    pub argv: Vec<CString>,
    /// Standard input, output and error.
    pub stdio: [OwnedFd; 3],
    /// Open inside under the same numbers.
    pub passed: Vec<OwnedFd>,
    pub doors: Doors,
    pub run_as: Option<Identity>,
}

impl BwrapCommand {
    /// The process, once the program has been executed in it.
    pub fn start(self) -> io::Result<Pid> {
        sys::start(&self.argv, self.doors.folder(), &|is_started_inside| self.prepare(is_started_inside))
    }

    /// In the child, before exec: into the cgroups, out of root's identity, and no descriptor but those that are passed.
    /// Makes plain system calls only.
    fn prepare(&self, is_started_inside: bool) -> io::Result<()> {
        for (descriptor, number) in self.stdio.iter().zip(0..) {
            sys::place_descriptor(descriptor.as_raw_fd(), number)?;
            sys::keep_on_exec(number)?;
        }
        rustix::process::chdir(c"/")?;
        self.doors.enter(is_started_inside)?;
        if let Some(Identity { uid, gid }) = self.run_as {
            rustix::thread::set_thread_groups(&[])?;
            let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
            rustix::thread::set_thread_res_gid(gid, gid, gid)?;
            rustix::thread::set_thread_res_uid(uid, uid, uid)?;
        }
        sys::close_on_exec_from(3)?;
        for descriptor in &self.passed {
            sys::keep_on_exec(descriptor.as_raw_fd())?;
        }
        Ok(())
    }
}
