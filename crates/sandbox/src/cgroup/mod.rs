//! Limits on processes, memory and processor by cgroups: version 2 where it has the controllers, else version 1.
//!
//! [`Cgroups`] is what this host lets the worker do; a [`Group`] belongs to one command and goes with it.

mod doors;
mod find;
mod group;
#[cfg(test)]
mod harness;
mod trial;
mod unified;

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use doors::Doors;
pub(crate) use group::{Group, GroupUsage};

use crate::control::Control;
use crate::spec::Limits;

const NAMES_TRIED: usize = 1_000;

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Controller {
    Pids,
    Memory,
    Cpu,
}

impl Controller {
    pub const ALL: [Self; 3] = [Self::Pids, Self::Memory, Self::Cpu];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Pids => "pids",
            Self::Memory => "memory",
            Self::Cpu => "cpu",
        }
    }

    pub const fn control(self) -> Control {
        match self {
            Self::Pids => Control::CgroupPids,
            Self::Memory => Control::CgroupMemory,
            Self::Cpu => Control::CgroupCpu,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
}

/// The folder below which groups are made, for a controller.
#[derive(Debug, Clone)]
pub(crate) struct Parent {
    pub controller: Controller,
    pub version: Version,
    pub folder: PathBuf,
}

/// Where groups can be made. Empty where nothing is writable.
#[derive(Debug, Default)]
pub(crate) struct Cgroups {
    parents: Vec<Parent>,
    /// Where an operator has said that they are.
    below: Option<String>,
}

impl Cgroups {
    /// Looks for folders that can be written, by making one in each. `below` is a path under each hierarchy's mount that
    /// an operator has delegated.
    pub fn find(below: Option<&str>) -> Self {
        Self { parents: find::parents(below), below: below.map(str::to_owned) }
    }

    /// Why nothing can be limited by this controller.
    pub fn why_not(&self, controller: Controller) -> String {
        let none = format!("no cgroup with the controller `{}` can be written", controller.name());
        match &self.below {
            Some(below) => format!(
                "{none} at `{below}` below the mounts of cgroups: make that one, and delegate it to the worker, or name another \
                 as `cgroup` in the file of `--commands`"
            ),
            None => format!("{none}: run the worker as root or delegate one to it"),
        }
    }

    pub fn has(&self, controller: Controller) -> bool {
        self.parents.iter().any(|parent| parent.controller == controller)
    }

    pub fn create(&self, limits: &Limits) -> io::Result<Group> {
        // One count for the process: two sandboxes in it may have the same parents.
        static MADE: AtomicU64 = AtomicU64::new(0);
        unused_name(|| {
            let number = MADE.fetch_add(1, Ordering::Relaxed);
            Group::create(&self.parents, &group_name(std::process::id(), number), limits)
        })
    }
}

/// Tries names until one is free: a dead process may have had the number of this one, and left groups that are not swept yet.
fn unused_name<T>(mut make: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..NAMES_TRIED {
        match make() {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made,
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Names carry the process, so that the groups of a dead worker are told from those of a living one.
fn group_name(process: u32, number: u64) -> String {
    format!("interlock-{process}-{number}")
}

/// The file that holds a controller's limit.
const fn limit_file(version: Version, controller: Controller) -> &'static str {
    match (version, controller) {
        (_, Controller::Pids) => "pids.max",
        (Version::V1, Controller::Memory) => "memory.limit_in_bytes",
        (Version::V1, Controller::Cpu) => "cpu.cfs_quota_us",
        (Version::V2, Controller::Memory) => "memory.max",
        (Version::V2, Controller::Cpu) => "cpu.max",
    }
}

/// Writes to a file of the kernel's. One that is not there is an error of that kind: asked to create it, the kernel says
/// that permission is denied.
fn write_existing(file: &Path, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(file)?.write_all(value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::{Cgroups, Controller};

    #[test]
    fn a_group_that_was_named_is_named_where_it_is_missing() {
        let named = Cgroups::find(Some("/interlock-is-nowhere"));
        assert!(!named.has(Controller::Pids));
        let why = named.why_not(Controller::Pids);
        assert!(why.contains("`/interlock-is-nowhere`") && why.contains("`cgroup`"), "{why}");
        assert!(Cgroups::default().why_not(Controller::Cpu).contains("as root"));
    }
}
