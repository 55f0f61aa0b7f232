//! The shim looks at its own confinement, as the kernel tells it, and refuses to go on where it is not what was ordered.

use std::collections::BTreeMap;
use std::io;

use super::config::{Attestation, JoinedCgroup, LandlockStatus, ShimConfig};
use super::confine::{OrderedLimit, ordered};
use crate::control::Control;
use crate::seccomp;
use crate::spec::{LandlockMode, Namespace, Syscalls};

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
    let cgroups = match config.cgroups.as_slice() {
        [] => BTreeMap::new(),
        ordered => cgroup_paths(&std::fs::read_to_string("/proc/self/cgroup")?, ordered),
    };
    let attestation = Attestation {
        profile: config.profile.clone(),
        no_new_privileges: field("NoNewPrivs")? == "1",
        seccomp_mode: number("Seccomp")?,
        seccomp_filters: number("Seccomp_filters")?,
        capabilities: field("CapBnd")?.to_owned(),
        landlock,
        namespaces,
        cgroups,
        limits: limits(&std::fs::read_to_string("/proc/self/limits")?, &ordered(config.resources)),
        uid: rustix::process::geteuid().as_raw(),
    };
    match shortfall(config, &attestation) {
        None => Ok(attestation),
        Some((control, what)) => {
            Err(io::Error::other(format!("the confinement is not what was ordered, control `{control}`: {what}")))
        }
    }
}

/// The paths of the groups that were ordered, from the kernel's lines: `4:memory:/a/b`.
fn cgroup_paths(lines: &str, ordered: &[JoinedCgroup]) -> BTreeMap<String, String> {
    let path_in = |hierarchy: &str| {
        lines.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            controllers.split(',').any(|name| name == hierarchy).then(|| path.to_owned())
        })
    };
    ordered.iter().filter_map(|group| Some((group.control.name().to_owned(), path_in(&group.hierarchy)?))).collect()
}

/// The limits that no call can raise, from the kernel's lines: `Max open files  512  512  files`. Those that are there.
fn limits(lines: &str, ordered: &[OrderedLimit]) -> BTreeMap<String, u64> {
    let hard = |limit: &OrderedLimit| {
        let values = lines.lines().find_map(|line| line.strip_prefix(limit.kernel_name))?;
        values.split_whitespace().nth(1)?.parse().ok()
    };
    ordered.iter().filter_map(|limit| Some((limit.name.to_owned(), hard(limit)?))).collect()
}

/// The control that is missing, and what was found.
fn shortfall(config: &ShimConfig, found: &Attestation) -> Option<(Control, String)> {
    if !found.no_new_privileges {
        return Some((Control::NoNewPrivileges, "it is off".to_owned()));
    }
    if !found.capabilities.trim_start_matches('0').is_empty() {
        return Some((Control::NoCapabilities, format!("capabilities are left: {}", found.capabilities)));
    }
    let filters = seccomp::expected_filters(config.syscalls);
    let filtered = found.seccomp_mode == FILTERS_IN_FORCE && found.seccomp_filters >= filters;
    if config.syscalls != Syscalls::Unfiltered && !filtered {
        let what = format!("{} filters of system calls instead of {filters}", found.seccomp_filters);
        return Some((Control::Seccomp, what));
    }
    let enough = match config.landlock {
        LandlockMode::HardWithScopes => found.landlock == LandlockStatus::FullyEnforced,
        LandlockMode::Hard => found.landlock != LandlockStatus::NotEnforced,
        LandlockMode::BestEffort | LandlockMode::Off => true,
    };
    if !enough {
        let without_scopes = found.landlock == LandlockStatus::PartiallyEnforced;
        let control = if without_scopes { Control::LandlockScopes } else { Control::Landlock };
        return Some((control, format!("landlock is {:?}", found.landlock)));
    }
    shared_namespace(config, found).or_else(|| other_cgroup(config, found)).or_else(|| missing_limit(config, found))
}

fn shared_namespace(config: &ShimConfig, found: &Attestation) -> Option<(Control, String)> {
    let is_shared = |(namespace, host): &&(Namespace, u64)| {
        found.namespaces.get(namespace.kind()).is_none_or(|inside| inside == host)
    };
    let (namespace, _) = config.other_namespaces_than.iter().find(is_shared)?;
    Some((namespace.control(), format!("the {} namespace is the worker's", namespace.kind())))
}

fn other_cgroup(config: &ShimConfig, found: &Attestation) -> Option<(Control, String)> {
    config.cgroups.iter().find_map(|group| {
        let path = found.cgroups.get(group.control.name()).map_or("", String::as_str);
        let is_joined = match &group.name {
            Some(name) => path.rsplit('/').next() == Some(name.as_str()),
            None => path == "/",
        };
        (!is_joined).then(|| (group.control, format!("its cgroup is `{path}`, which has not the profile's limits")))
    })
}

fn missing_limit(config: &ShimConfig, found: &Attestation) -> Option<(Control, String)> {
    let ordered = ordered(config.resources);
    let is_over = |limit: &&OrderedLimit| found.limits.get(limit.name).is_none_or(|seen| *seen > limit.most);
    let limit = ordered.iter().find(is_over)?;
    let seen = found.limits.get(limit.name).map_or_else(|| "unlimited".to_owned(), u64::to_string);
    Some((Control::ResourceLimits, format!("{} is {seen} instead of {}", limit.name, limit.most)))
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

    const RESOURCES: ResourceLimits = ResourceLimits { open_files: 1, file_bytes: 1, processes: 1 };

    fn order(syscalls: Syscalls, landlock: LandlockMode) -> ShimConfig {
        ShimConfig {
            profile: "prod-critical".to_owned(),
            action: Action::Try(Act::Nothing),
            syscalls,
            sockets: SocketRule::None,
            landlock,
            files: FileRules::default(),
            resources: RESOURCES,
            other_namespaces_than: [Namespace::User, Namespace::Pid, Namespace::Net, Namespace::Ipc, Namespace::Uts]
                .map(|namespace| (namespace, 1))
                .into(),
            cgroups: vec![JoinedCgroup {
                control: Control::CgroupPids,
                hierarchy: "pids".to_owned(),
                name: Some("interlock-7-1".to_owned()),
            }],
            status: 0,
            renewals: 0,
            watchdog_ms: 0,
            wall_ms: 0,
        }
    }

    fn namespaces(inode: u64) -> BTreeMap<String, u64> {
        NAMESPACES.iter().map(|kind| ((*kind).to_owned(), inode)).collect()
    }

    fn with_shared(kind: &str) -> Attestation {
        let mut found = complete();
        found.namespaces.insert(kind.to_owned(), 1);
        found
    }

    fn complete() -> Attestation {
        Attestation {
            profile: "prod-critical".to_owned(),
            no_new_privileges: true,
            seccomp_mode: 2,
            seccomp_filters: 5,
            capabilities: "0000000000000000".to_owned(),
            landlock: LandlockStatus::FullyEnforced,
            namespaces: namespaces(2),
            cgroups: BTreeMap::from([("cgroup_pids".to_owned(), "/jobs/interlock-7-1".to_owned())]),
            limits: ordered(RESOURCES).iter().map(|limit| (limit.name.to_owned(), limit.most)).collect(),
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
            (Attestation { seccomp_mode: 0, ..complete() }, "seccomp"),
            (Attestation { seccomp_filters: 4, ..complete() }, "seccomp"),
            (Attestation { landlock: LandlockStatus::PartiallyEnforced, ..complete() }, "landlock_scopes"),
            (with_shared("user"), "user_namespace"),
            (with_shared("pid"), "pid_namespace"),
            (with_shared("net"), "network_namespace"),
            (with_shared("ipc"), "ipc_namespace"),
            (with_shared("uts"), "uts_namespace"),
            (Attestation { namespaces: BTreeMap::new(), ..complete() }, "user_namespace"),
            (Attestation { cgroups: BTreeMap::new(), ..complete() }, "cgroup_pids"),
            (Attestation { cgroups: [("cgroup_pids".to_owned(), "/".to_owned())].into(), ..complete() }, "cgroup_pids"),
            (Attestation { limits: BTreeMap::new(), ..complete() }, "resource_limits"),
        ] {
            let said = shortfall(&order, &found).map(|(control, _)| control.name()).unwrap_or_default();
            assert!(said.contains(named), "{named}: {said}");
        }
    }

    #[test]
    fn a_resource_with_a_higher_limit_than_ordered_is_named() {
        let order = order(Syscalls::Strict, LandlockMode::HardWithScopes);
        let mut found = complete();
        found.limits.insert("open_files".to_owned(), 1 << 20);
        let (control, what) = shortfall(&order, &found).unwrap();
        assert_eq!((control, what.as_str()), (Control::ResourceLimits, "open_files is 1048576 instead of 1"));
        found.limits.insert("open_files".to_owned(), 0);
        assert_eq!(shortfall(&order, &found), None, "a lower one is fine");
    }

    #[test]
    fn groups_and_limits_are_read_from_what_the_kernel_says() {
        let group =
            |hierarchy: &str| JoinedCgroup { control: Control::CgroupCpu, hierarchy: hierarchy.to_owned(), name: None };
        let lines = "4:cpu,cpuacct:/a/b\n0::/c\n";
        for (hierarchy, path) in [("cpu", Some("/a/b")), ("", Some("/c")), ("pids", None)] {
            let paths = cgroup_paths(lines, &[group(hierarchy)]);
            assert_eq!(paths.get("cgroup_cpu").map(String::as_str), path, "{hierarchy}");
        }
        let kernel = std::fs::read_to_string("/proc/self/limits").unwrap();
        for limit in ordered(RESOURCES) {
            assert!(kernel.lines().any(|line| line.starts_with(limit.kernel_name)), "{}", limit.kernel_name);
        }
        let lines = "Max open files      20      512      files     \nMax file size    unlimited  unlimited  bytes\n";
        assert_eq!(limits(lines, &ordered(RESOURCES)), BTreeMap::from([("open_files".to_owned(), 512)]));
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
