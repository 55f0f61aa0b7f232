//! Limits on processes, memory and processor by cgroups: version 2 where it has the controllers, else version 1.
//!
//! [`Cgroups`] is what this host lets the worker do; a [`Group`] belongs to one command and goes with it.

mod find;
mod group;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use group::{Group, GroupUsage};

use crate::control::Control;
use crate::spec::Limits;

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
    made: AtomicU64,
}

impl Cgroups {
    /// Looks for folders that can be written, by making one in each. `below` is a path under each hierarchy's mount that
    /// an operator has delegated.
    pub fn find(below: Option<&str>) -> Self {
        Self { parents: find::parents(below), made: AtomicU64::new(0) }
    }

    pub fn has(&self, controller: Controller) -> bool {
        self.parents.iter().any(|parent| parent.controller == controller)
    }

    pub fn create(&self, limits: &Limits) -> io::Result<Group> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        Group::create(&self.parents, &group_name(std::process::id(), number), limits)
    }
}

/// Names carry the process, so that the groups of a dead worker are told from those of a living one.
fn group_name(process: u32, number: u64) -> String {
    format!("interlock-{process}-{number}")
}
