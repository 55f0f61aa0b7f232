//! The shim looks at its own confinement, as the kernel tells it, and refuses to go on where it is not what was ordered.

use std::collections::BTreeMap;
use std::io;

use super::config::{Attestation, Landlocked, ShimConfig};
use crate::seccomp;
use crate::spec::{LandlockMode, Syscalls};

const NAMESPACES: &[&str] = &["user", "pid", "net", "mnt", "ipc", "uts", "cgroup"];
const FILTERS_IN_FORCE: u32 = 2;

pub(super) fn attest(config: &ShimConfig, landlock: Landlocked) -> io::Result<Attestation> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let field = |name: &str| -> io::Result<&str> {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(str::trim).ok_or_else(|| io::Error::other(format!("the kernel does not tell {name}")))
    };
    let number = |name: &str| field(name).map(|value| value.parse().unwrap_or(0));
    let mut namespaces = BTreeMap::new();
    for kind in NAMESPACES {
        namespaces.insert((*kind).to_owned(), namespace(kind)?);
    }
    let attestation = Attestation {
        profile: config.profile.clone(),
        no_new_privileges: field("NoNewPrivs")? == "1",
        seccomp_mode: number("Seccomp")?,
        seccomp_filters: number("Seccomp_filters")?,
        capabilities: field("CapBnd")?.to_owned(),
        landlock,
        namespaces,
        uid: rustix::process::geteuid().as_raw(),
    };
    match shortfall(config, &attestation) {
        None => Ok(attestation),
        Some(what) => Err(io::Error::other(format!("the confinement is not what was ordered: {what}"))),
    }
}

/// What is missing, by name.
pub(crate) fn shortfall(config: &ShimConfig, found: &Attestation) -> Option<String> {
    if !found.no_new_privileges {
        return Some("no_new_privileges is off".to_owned());
    }
    if !found.capabilities.trim_start_matches('0').is_empty() {
        return Some(format!("capabilities are left: {}", found.capabilities));
    }
    let filters = seccomp::expected_filters(config.syscalls);
    let filtered = found.seccomp_mode == FILTERS_IN_FORCE && found.seccomp_filters >= filters;
    if config.syscalls != Syscalls::Unfiltered && !filtered {
        return Some(format!("{} filters of system calls instead of {filters}", found.seccomp_filters));
    }
    let enough = match config.landlock {
        LandlockMode::HardWithScopes => found.landlock == Landlocked::FullyEnforced,
        LandlockMode::Hard => found.landlock != Landlocked::NotEnforced,
        LandlockMode::BestEffort | LandlockMode::Off => true,
    };
    if !enough {
        return Some(format!("landlock is {:?}", found.landlock));
    }
    let host = config.other_network_than?;
    (found.namespaces.get("net").copied().unwrap_or(host) == host).then(|| "the network is the host's".to_owned())
}

/// The inode by which the kernel names a namespace of this process.
pub(crate) fn namespace(kind: &str) -> io::Result<u64> {
    let link = std::fs::read_link(format!("/proc/self/ns/{kind}"))?;
    let text = link.to_string_lossy();
    let inode = text.split_once('[').and_then(|(_, rest)| rest.strip_suffix(']'));
    inode.and_then(|inode| inode.parse().ok()).ok_or_else(|| io::Error::other(format!("`{text}` names no namespace")))
}
