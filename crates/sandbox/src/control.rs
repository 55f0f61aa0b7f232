//! What a sandbox is made of, control by control, and whether this host was seen to have it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// One means of confinement. A profile lists those that it cannot do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    UserNamespace,
    PidNamespace,
    NetworkNamespace,
    IpcNamespace,
    UtsNamespace,
    CgroupNamespace,
    /// The command sees the paths that it is given, read-only, and no others.
    FileView,
    NoNewPrivileges,
    NoCapabilities,
    /// No user namespace can be made inside the sandbox.
    NestedNamespacesOff,
    Seccomp,
    /// Files and TCP.
    Landlock,
    /// Signals and abstract sockets.
    LandlockScopes,
    CgroupPids,
    CgroupMemory,
    CgroupCpu,
    ResourceLimits,
    /// The tree dies when the worker's renewals stop.
    Watchdog,
}

impl Control {
    pub const ALL: &[Self] = &[
        Self::UserNamespace,
        Self::PidNamespace,
        Self::NetworkNamespace,
        Self::IpcNamespace,
        Self::UtsNamespace,
        Self::CgroupNamespace,
        Self::FileView,
        Self::NoNewPrivileges,
        Self::NoCapabilities,
        Self::NestedNamespacesOff,
        Self::Seccomp,
        Self::Landlock,
        Self::LandlockScopes,
        Self::CgroupPids,
        Self::CgroupMemory,
        Self::CgroupCpu,
        Self::ResourceLimits,
        Self::Watchdog,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::UserNamespace => "user_namespace",
            Self::PidNamespace => "pid_namespace",
            Self::NetworkNamespace => "network_namespace",
            Self::IpcNamespace => "ipc_namespace",
            Self::UtsNamespace => "uts_namespace",
            Self::CgroupNamespace => "cgroup_namespace",
            Self::FileView => "file_view",
            Self::NoNewPrivileges => "no_new_privileges",
            Self::NoCapabilities => "no_capabilities",
            Self::NestedNamespacesOff => "nested_namespaces_off",
            Self::Seccomp => "seccomp",
            Self::Landlock => "landlock",
            Self::LandlockScopes => "landlock_scopes",
            Self::CgroupPids => "cgroup_pids",
            Self::CgroupMemory => "cgroup_memory",
            Self::CgroupCpu => "cgroup_cpu",
            Self::ResourceLimits => "resource_limits",
            Self::Watchdog => "watchdog",
        }
    }
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether a canary met the control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofState {
    Proven,
    Absent,
}

/// What a canary found, in words for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    pub standing: ProofState,
    pub evidence: String,
}

impl Proof {
    pub fn proven(evidence: impl Into<String>) -> Self {
        Self { standing: ProofState::Proven, evidence: evidence.into() }
    }

    pub fn absent(evidence: impl Into<String>) -> Self {
        Self { standing: ProofState::Absent, evidence: evidence.into() }
    }
}

/// What this host has. A control that is not in the list counts as absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Proofs(BTreeMap<Control, Proof>);

impl Proofs {
    pub fn get(&self, control: Control) -> Option<&Proof> {
        self.0.get(&control)
    }

    pub fn iter(&self) -> impl Iterator<Item = (Control, &Proof)> {
        self.0.iter().map(|(control, proof)| (*control, proof))
    }

    pub fn is_proven(&self, control: Control) -> bool {
        self.get(control).is_some_and(|proof| proof.standing == ProofState::Proven)
    }

    /// The first of the controls that is not proven, with what was found instead.
    pub fn first_missing(&self, required: &[Control]) -> Option<(Control, String)> {
        let missing = required.iter().find(|control| !self.is_proven(**control))?;
        let evidence = self.get(*missing).map_or("no canary was run", |proof| &proof.evidence);
        Some((*missing, evidence.to_owned()))
    }
}

impl FromIterator<(Control, Proof)> for Proofs {
    fn from_iter<T: IntoIterator<Item = (Control, Proof)>>(proofs: T) -> Self {
        Self(proofs.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_control_is_listed_and_named_as_it_is_written() {
        for control in Control::ALL {
            assert_eq!(serde_json::to_value(control).unwrap(), control.name());
        }
        assert_eq!(Control::ALL.len(), Control::Watchdog as usize + 1);
    }

    #[test]
    fn what_was_not_tried_counts_as_absent() {
        let proofs: Proofs = [
            (Control::Seccomp, Proof::proven("kcmp was refused")),
            (Control::Landlock, Proof::absent("the kernel has none")),
        ]
        .into_iter()
        .collect();
        assert_eq!(proofs.first_missing(&[Control::Seccomp]), None);
        let (missing, evidence) = proofs.first_missing(&[Control::Seccomp, Control::Landlock]).unwrap();
        assert_eq!((missing, evidence.as_str()), (Control::Landlock, "the kernel has none"));
        assert_eq!(proofs.first_missing(&[Control::CgroupPids]).unwrap().0, Control::CgroupPids);
    }
}
