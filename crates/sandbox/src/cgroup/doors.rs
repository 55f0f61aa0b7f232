//! The open ways into the groups of one command.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::Version;

/// A child process goes through them before it executes anything.
///
/// On version 2 it is started inside: a move of a whole process waits for all processors, which takes 15 ms where none was
/// moved shortly before. A kernel that cannot start it there has it move. On version 1 the list of threads is taken, for
/// which nothing waits.
#[derive(Debug, Default)]
pub(crate) struct Doors {
    /// Of version 2. There is one at most: a process is in one group of that hierarchy.
    unified: Option<UnifiedDoor>,
    threads: Vec<OwnedFd>,
}

#[derive(Debug)]
struct UnifiedDoor {
    folder: OwnedFd,
    members: OwnedFd,
}

impl Doors {
    pub(super) fn open(&mut self, folder: &Path, version: Version) -> io::Result<()> {
        let members = OpenOptions::new().write(true).open(folder.join(members_file(version)))?.into();
        match version {
            Version::V1 => self.threads.push(members),
            Version::V2 => self.unified = Some(UnifiedDoor { folder: File::open(folder)?.into(), members }),
        }
        Ok(())
    }

    /// Where to start the child.
    pub fn folder(&self) -> Option<&OwnedFd> {
        self.unified.as_ref().map(|door| &door.folder)
    }

    /// For the child, which has one thread: joins what it was not started in. Makes plain system calls only.
    pub fn enter(&self, is_started_inside: bool) -> io::Result<()> {
        if let Some(door) = &self.unified
            && !is_started_inside
        {
            rustix::io::write(&door.members, b"0")?;
        }
        for threads in &self.threads {
            rustix::io::write(threads, b"0")?;
        }
        Ok(())
    }
}

/// Lists the members of a group, and takes new ones.
pub(super) const fn members_file(version: Version) -> &'static str {
    match version {
        Version::V1 => "tasks",
        Version::V2 => "cgroup.procs",
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs;
    use std::os::fd::AsRawFd as _;

    use rustix::process::{WaitOptions, waitpid};

    use super::*;
    use crate::cgroup::harness::{TestFolder, unified_mount};
    use crate::sys;

    /// Whether a program that is started by these doors need not join. It must be the group's only member.
    fn starts_inside(doors: &Doors, group: &Path) -> bool {
        let (stdin, input) = io::pipe().unwrap();
        let (answer, answers) = io::pipe().unwrap();
        let prepare = |is_started_inside: bool| {
            rustix::io::write(&answers, &[u8::from(is_started_inside)])?;
            doors.enter(is_started_inside)?;
            sys::place_descriptor(stdin.as_raw_fd(), 0)?;
            sys::keep_on_exec(0)
        };
        let cat = sys::start(&[CString::from(c"/bin/cat")], doors.folder(), &prepare).unwrap();
        let members = fs::read_to_string(group.join("cgroup.procs")).unwrap();
        drop(input);
        let (_, status) = waitpid(Some(cat), WaitOptions::empty()).unwrap().unwrap();
        assert_eq!(status.exit_status(), Some(0));
        assert_eq!(members.trim(), cat.as_raw_pid().to_string());
        let mut told = [u8::MAX];
        rustix::io::read(&answer, &mut told).unwrap();
        told == [1]
    }

    /// A list of members that cannot be written shows that nothing was moved.
    #[test]
    fn a_process_is_started_inside_a_group_of_version_2() {
        let base = TestFolder::make(&unified_mount(), "inside");
        let mut doors = Doors::default();
        doors.open(base.path(), Version::V2).unwrap();
        doors.unified.as_mut().unwrap().members = File::open("/dev/null").unwrap().into();
        assert!(starts_inside(&doors, base.path()));
    }

    /// The kernel refuses to start a process in a folder that is no group, as an older one does for every folder.
    #[test]
    fn a_process_joins_a_group_that_it_cannot_be_started_in() {
        let base = TestFolder::make(&unified_mount(), "join");
        let mut doors = Doors::default();
        doors.open(base.path(), Version::V2).unwrap();
        doors.unified.as_mut().unwrap().folder = File::open("/").unwrap().into();
        assert!(!starts_inside(&doors, base.path()));
    }
}
