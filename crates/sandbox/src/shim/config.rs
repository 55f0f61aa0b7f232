//! What the worker tells the shim, and what the shim tells the worker: JSON on two descriptors.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::control::Control;
use crate::shim::acts::Act;
use crate::spec::{LandlockMode, Namespace, Syscalls};

/// The order to the shim. It holds no secret: bubblewrap makes their files from pipes of their own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShimConfig {
    pub profile: String,
    pub action: Action,
    pub syscalls: Syscalls,
    pub sockets: SocketRule,
    pub landlock: LandlockMode,
    pub files: FileRules,
    pub resources: ResourceLimits,
    /// Namespaces of the worker's that the command must not be in, by their inodes.
    pub other_namespaces_than: Vec<(Namespace, u64)>,
    /// The cgroups that the command must be in.
    pub cgroups: Vec<JoinedCgroup>,
    /// One line for each of the shim's reports.
    pub status: RawFd,
    /// A byte for each renewal; closed when the worker is gone.
    pub renewals: RawFd,
    /// How long the command lives without a renewal.
    pub watchdog_ms: u64,
    /// How long the command lives at all. The worker is to end it before that.
    pub wall_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SocketRule {
    None,
    Unix,
    Local,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Action {
    Execute {
        argv: Vec<String>,
        env: BTreeMap<String, String>,
        folder: PathBuf,
        file: FileId,
    },
    /// Tries what the controls forbid, and says what came of it.
    Try(Act),
}

/// Which file a path led to when the command was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileId {
    pub device: u64,
    pub inode: u64,
}

/// What Landlock lets the command do with paths, as they are inside.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct FileRules {
    pub read: Vec<PathBuf>,
    pub read_and_execute: Vec<PathBuf>,
    /// Devices that may be read and written but not replaced.
    pub use_devices: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    pub write_and_execute: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ResourceLimits {
    pub open_files: u64,
    pub file_bytes: u64,
    pub processes: u64,
}

/// A cgroup that limits the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinedCgroup {
    /// The control that rests on it.
    pub control: Control,
    /// The controller that names the hierarchy; empty for version 2, which has one.
    pub hierarchy: String,
    /// The last part of its path. Nothing where the command has a cgroup namespace: the group is its root.
    pub name: Option<String>,
}

/// A line from the shim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// The confinement as the shim found it around itself, right before the command.
    Attested(Attestation),
    /// The command was executed.
    Started,
    /// The command was not executed.
    NotStarted(String),
    /// The command could not be confined, or what confines it could not be attested.
    NotConfined(String),
    Ended(CommandEnd),
    /// The shim ended the tree by itself.
    Expired(Expiry),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expiry {
    NoRenewal,
    WallTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEnd {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub peak_bytes: u64,
}

/// What the shim saw of its own confinement. It goes into the command's receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attestation {
    pub profile: String,
    pub no_new_privileges: bool,
    /// 2: filters are in force.
    pub seccomp_mode: u32,
    pub seccomp_filters: u32,
    /// The bounding set, as the kernel prints it.
    pub capabilities: String,
    pub landlock: LandlockStatus,
    /// Inodes of the namespaces, by kind.
    pub namespaces: BTreeMap<String, u64>,
    /// Paths of the cgroups that limit it, by control. From a cgroup namespace of its own the group is `/`.
    pub cgroups: BTreeMap<String, String>,
    /// Limits on the process's resources, by name.
    pub limits: BTreeMap<String, u64>,
    pub uid: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LandlockStatus {
    FullyEnforced,
    PartiallyEnforced,
    NotEnforced,
}
