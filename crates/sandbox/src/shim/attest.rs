//! The shim looks at its own confinement, as the kernel tells it, and refuses to go on where it is not what was ordered.

use std::collections::BTreeMap;
use std::io;

use super::config::{Attestation, LandlockStatus, ShimConfig};
use crate::seccomp;
use crate::spec::{LandlockMode, Syscalls};

const NAMESPACES: &[&str] = &["user", "pid", "net", "mnt", "ipc", "uts", "cgroup"];
const FILTERS_IN_FORCE: u32 = 2;

pub(super) fn attest(config: &ShimConfig, landlock: LandlockStatus) -> io::Result<Attestation> {
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
fn shortfall(config: &ShimConfig, found: &Attestation) -> Option<String> {
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
        LandlockMode::HardWithScopes => found.landlock == LandlockStatus::FullyEnforced,
        LandlockMode::Hard => found.landlock != LandlockStatus::NotEnforced,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shim::{Action, FileRules, ResourceLimits, SocketRule, acts::Act};

    fn order(syscalls: Syscalls, landlock: LandlockMode) -> ShimConfig {
        ShimConfig {
            profile: "prod-critical".to_owned(),
            action: Action::Try(Act::Nothing),
            syscalls,
            sockets: SocketRule::None,
            landlock,
            files: FileRules::default(),
            resources: ResourceLimits { open_files: 1, file_bytes: 1, processes: 1 },
            other_network_than: Some(1),
            status: 0,
            renewals: 0,
            secrets: Vec::new(),
            watchdog_ms: 0,
            wall_ms: 0,
        }
    }

    fn complete() -> Attestation {
        Attestation {
            profile: "prod-critical".to_owned(),
            no_new_privileges: true,
            seccomp_mode: 2,
            seccomp_filters: 5,
            capabilities: "0000000000000000".to_owned(),
            landlock: LandlockStatus::FullyEnforced,
            namespaces: BTreeMap::from([("net".to_owned(), 2)]),
            uid: 1000,
        }
    }

    #[test]
    fn each_thing_that_is_missing_is_named() {
        let order = order(Syscalls::Strict, LandlockMode::HardWithScopes);
        assert_eq!(shortfall(&order, &complete()), None);
        for (found, named) in [
            (Attestation { no_new_privileges: false, ..complete() }, "no_new_privileges"),
            (Attestation { capabilities: "0000000000000400".to_owned(), ..complete() }, "capabilities"),
            (Attestation { seccomp_mode: 0, ..complete() }, "filters"),
            (Attestation { seccomp_filters: 4, ..complete() }, "filters"),
            (Attestation { landlock: LandlockStatus::PartiallyEnforced, ..complete() }, "landlock"),
            (Attestation { namespaces: BTreeMap::from([("net".to_owned(), 1)]), ..complete() }, "network"),
            (Attestation { namespaces: BTreeMap::new(), ..complete() }, "network"),
        ] {
            let said = shortfall(&order, &found).unwrap_or_default();
            assert!(said.contains(named), "{named}: {said}");
        }
    }

    #[test]
    fn landlock_without_scopes_is_enough_where_the_profile_says_so() {
        let partly = Attestation { landlock: LandlockStatus::PartiallyEnforced, ..complete() };
        let none = Attestation { landlock: LandlockStatus::NotEnforced, ..complete() };
        assert_eq!(shortfall(&order(Syscalls::Denied, LandlockMode::Hard), &partly), None);
        assert!(shortfall(&order(Syscalls::Denied, LandlockMode::Hard), &none).is_some());
        assert_eq!(shortfall(&order(Syscalls::Denied, LandlockMode::BestEffort), &none), None);
    }
}
