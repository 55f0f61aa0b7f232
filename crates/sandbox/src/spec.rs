//! The table of profiles. Arguments of bubblewrap, filters, rules and limits all follow from a [`Spec`].

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::control::Control;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Everything that tells one profile from another.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Besides the mount namespace, which every sandbox has.
    pub namespaces: &'static [Namespace],
    pub system: SystemPaths,
    pub devices: Devices,
    pub work: WorkDir,
    pub egress: EgressMode,
    pub syscalls: Syscalls,
    pub landlock: LandlockMode,
    /// Whether a file that the command has written may be executed.
    pub execute_written: bool,
    pub commands: CommandScope,
    pub limits: Limits,
    /// Without all of these proven, nothing runs under the profile.
    pub required: &'static [Control],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Namespace {
    User,
    Pid,
    Net,
    Ipc,
    Uts,
    Cgroup,
}

/// Which paths of the host are seen, always read-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemPaths {
    /// Programs and libraries, certificates, the loader's cache.
    Programs,
    /// All of `/usr`, and the same files of `/etc`.
    Usr,
    /// All of `/usr`, and what name resolution reads in `/etc`.
    UsrAndNames,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Devices {
    /// null, zero, full, random, urandom.
    Plain,
    /// The same, and shared memory with a cap.
    SharedMemory { bytes: u64 },
    /// What bubblewrap makes, also terminals; and shared memory with a cap.
    Terminals { shared_bytes: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkDir {
    /// Only `/tmp` can be written.
    None,
    /// A folder of the caller's.
    Bound,
    /// An empty file system in memory, gone with the command.
    Fresh { bytes: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EgressMode {
    /// No network but the broker's socket, where the request names targets.
    Broker,
    /// The host's network.
    SharedNetwork,
}

/// System calls that the command may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Syscalls {
    /// A short allow-list. What the longer one has beyond it is refused with EPERM; any other call kills the process.
    Strict,
    /// An allow-list; any other call is refused with EPERM. Files in memory have no path, so where written files are not executed
    /// there are none.
    Listed { log: bool, memory_files: bool },
    /// Everything but a deny-list.
    Denied,
    /// No filter. For canaries of other controls.
    Unfiltered,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LandlockMode {
    /// Files, TCP and scopes, or the command does not start.
    HardWithScopes,
    /// Files and TCP, or the command does not start. Scopes where the kernel has them.
    Hard,
    /// Files and scopes, as far as the kernel has them.
    BestEffort,
    /// Only for canaries of other controls.
    Off,
}

/// Which lists decide on a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandScope {
    AllowList,
    AllowAndDenyList,
    /// Every command is marked for the audit.
    AllowListAudited,
    DenyList,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub pids: u64,
    pub memory_bytes: u64,
    pub cpu_percent: u64,
    /// The longest time that a request may ask for, and what it gets if it does not ask.
    pub wall: Duration,
    pub output_bytes: u64,
    pub tmp_bytes: u64,
    pub open_files: u64,
    pub file_bytes: u64,
}

use Namespace::{Cgroup, Ipc, Net, Pid, User, Uts};

const ALL_NAMESPACES: &[Namespace] = &[User, Pid, Net, Ipc, Uts, Cgroup];

const PROD_CONTROLS: &[Control] = &[
    Control::UserNamespace,
    Control::PidNamespace,
    Control::NetworkNamespace,
    Control::IpcNamespace,
    Control::UtsNamespace,
    Control::CgroupNamespace,
    Control::FileView,
    Control::NoNewPrivileges,
    Control::NoCapabilities,
    Control::NestedNamespacesOff,
    Control::Seccomp,
    Control::Landlock,
    Control::CgroupPids,
    Control::CgroupMemory,
    Control::CgroupCpu,
    Control::ResourceLimits,
    Control::Watchdog,
];

pub static PROD_CRITICAL: Spec = Spec {
    namespaces: ALL_NAMESPACES,
    system: SystemPaths::Programs,
    devices: Devices::Plain,
    work: WorkDir::None,
    egress: EgressMode::Broker,
    syscalls: Syscalls::Strict,
    landlock: LandlockMode::HardWithScopes,
    execute_written: false,
    commands: CommandScope::AllowList,
    limits: Limits {
        pids: 64,
        memory_bytes: 512 * MIB,
        cpu_percent: 50,
        wall: Duration::from_mins(10),
        output_bytes: MIB,
        tmp_bytes: 64 * MIB,
        open_files: 512,
        file_bytes: 64 * MIB,
    },
    required: Control::ALL,
};

pub static PROD_STANDARD: Spec = Spec {
    namespaces: ALL_NAMESPACES,
    system: SystemPaths::Usr,
    devices: Devices::SharedMemory { bytes: 16 * MIB },
    work: WorkDir::Bound,
    egress: EgressMode::Broker,
    syscalls: Syscalls::Listed { log: false, memory_files: false },
    landlock: LandlockMode::Hard,
    execute_written: false,
    commands: CommandScope::AllowAndDenyList,
    limits: Limits {
        pids: 128,
        memory_bytes: GIB,
        cpu_percent: 100,
        wall: Duration::from_mins(30),
        output_bytes: 4 * MIB,
        tmp_bytes: 128 * MIB,
        open_files: 1024,
        file_bytes: GIB,
    },
    required: PROD_CONTROLS,
};

pub static STAGING_STANDARD: Spec = Spec {
    namespaces: ALL_NAMESPACES,
    system: SystemPaths::Usr,
    devices: Devices::SharedMemory { bytes: 64 * MIB },
    work: WorkDir::Fresh { bytes: 512 * MIB },
    egress: EgressMode::Broker,
    syscalls: Syscalls::Listed { log: true, memory_files: true },
    landlock: LandlockMode::Hard,
    execute_written: true,
    commands: CommandScope::AllowListAudited,
    limits: Limits {
        pids: 256,
        memory_bytes: 2 * GIB,
        cpu_percent: 200,
        wall: Duration::from_hours(1),
        output_bytes: 8 * MIB,
        tmp_bytes: 256 * MIB,
        open_files: 2048,
        file_bytes: GIB,
    },
    required: PROD_CONTROLS,
};

pub static DEV_FLEX: Spec = Spec {
    namespaces: &[User, Pid, Ipc, Uts],
    system: SystemPaths::UsrAndNames,
    devices: Devices::Terminals { shared_bytes: 512 * MIB },
    work: WorkDir::Bound,
    egress: EgressMode::SharedNetwork,
    syscalls: Syscalls::Denied,
    landlock: LandlockMode::BestEffort,
    execute_written: true,
    commands: CommandScope::DenyList,
    limits: Limits {
        pids: 512,
        memory_bytes: 4 * GIB,
        cpu_percent: 400,
        wall: Duration::from_hours(2),
        output_bytes: 16 * MIB,
        tmp_bytes: 512 * MIB,
        open_files: 4096,
        file_bytes: 4 * GIB,
    },
    required: &[
        Control::UserNamespace,
        Control::PidNamespace,
        Control::IpcNamespace,
        Control::UtsNamespace,
        Control::FileView,
        Control::NoNewPrivileges,
        Control::NoCapabilities,
        Control::NestedNamespacesOff,
        Control::Seccomp,
        Control::ResourceLimits,
        Control::Watchdog,
    ],
};

/// What a canary's sandbox starts from: the namespaces that hold a sandbox together, and nothing else.
pub(crate) const BARE: Spec = Spec {
    namespaces: &[User, Pid],
    system: SystemPaths::Usr,
    devices: Devices::Plain,
    work: WorkDir::None,
    egress: EgressMode::SharedNetwork,
    syscalls: Syscalls::Unfiltered,
    landlock: LandlockMode::Off,
    execute_written: true,
    commands: CommandScope::DenyList,
    limits: Limits {
        pids: 64,
        memory_bytes: 64 * MIB,
        cpu_percent: 50,
        wall: Duration::from_secs(20),
        output_bytes: 64 * KIB,
        tmp_bytes: MIB,
        open_files: 64,
        file_bytes: MIB,
    },
    required: &[],
};

impl Namespace {
    /// Its name below `/proc/self/ns`.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Pid => "pid",
            Self::Net => "net",
            Self::Ipc => "ipc",
            Self::Uts => "uts",
            Self::Cgroup => "cgroup",
        }
    }

    pub const fn control(self) -> Control {
        match self {
            Self::User => Control::UserNamespace,
            Self::Pid => Control::PidNamespace,
            Self::Net => Control::NetworkNamespace,
            Self::Ipc => Control::IpcNamespace,
            Self::Uts => Control::UtsNamespace,
            Self::Cgroup => Control::CgroupNamespace,
        }
    }
}

impl Spec {
    pub fn has(&self, namespace: Namespace) -> bool {
        self.namespaces.contains(&namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;

    #[test]
    fn production_and_staging_never_rest_on_a_deny_list() {
        for profile in [Profile::ProdCritical, Profile::ProdStandard, Profile::StagingStandard] {
            let spec = profile.spec();
            assert!(matches!(spec.syscalls, Syscalls::Strict | Syscalls::Listed { .. }), "{profile}");
            assert!(
                !matches!(spec.syscalls, Syscalls::Listed { memory_files: true, .. }) || spec.execute_written,
                "{profile}: what is written to memory may be executed"
            );
            assert!(matches!(spec.landlock, LandlockMode::Hard | LandlockMode::HardWithScopes), "{profile}");
            assert_eq!(spec.egress, EgressMode::Broker, "{profile}");
            for control in [Control::Seccomp, Control::Landlock, Control::CgroupMemory, Control::NetworkNamespace] {
                assert!(spec.required.contains(&control), "{profile} {control}");
            }
        }
    }

    #[test]
    fn a_namespace_that_a_profile_uses_is_one_that_it_requires() {
        for profile in Profile::ALL {
            let spec = profile.spec();
            for namespace in ALL_NAMESPACES {
                let (namespace, control) = (*namespace, namespace.control());
                assert_eq!(spec.has(namespace), spec.required.contains(&control), "{profile} {control}");
            }
        }
    }

    #[test]
    fn limits_grow_from_critical_to_flexible() {
        let limits: Vec<Limits> = Profile::ALL.iter().map(|profile| profile.spec().limits).collect();
        for pair in limits.windows(2) {
            assert!(pair[0].pids < pair[1].pids && pair[0].memory_bytes < pair[1].memory_bytes);
            assert!(pair[0].output_bytes < pair[1].output_bytes && pair[0].wall < pair[1].wall);
        }
    }
}
