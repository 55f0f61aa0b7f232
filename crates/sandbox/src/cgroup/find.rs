//! Which hierarchies are mounted, where this process stands in them, and where it may make groups.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Controller, Parent, Version, group_name};

pub(super) fn parents(below: Option<&str>) -> Vec<Parent> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut parents = Vec::new();
    for controller in Controller::ALL {
        let found = candidates(&mounts, &own, controller, below).into_iter().find(try_parent);
        if let Some(parent) = found {
            sweep(&parent.folder);
            parents.push(parent);
        }
    }
    parents
}

/// Folders to try: where the operator says; else this process's own group, then those above it.
fn candidates(mounts: &str, own: &str, controller: Controller, below: Option<&str>) -> Vec<Parent> {
    let mut found = Vec::new();
    for line in mounts.lines() {
        let mut fields = line.split(' ');
        let (Some(_), Some(at), Some(kind), Some(options)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let version = match kind {
            "cgroup2" => Version::V2,
            "cgroup" if options.split(',').any(|option| option == controller.name()) => Version::V1,
            _ => continue,
        };
        let mut folder = PathBuf::from(below.map_or_else(|| own_path(own, version, controller), str::to_owned));
        loop {
            let relative = folder.strip_prefix("/").unwrap_or(&folder);
            found.push(Parent { controller, version, folder: Path::new(at).join(relative) });
            if below.is_some() || !folder.pop() {
                break;
            }
        }
    }
    // Version 2 first: it kills a whole group at once.
    found.sort_by_key(|parent| parent.version == Version::V1);
    found
}

fn own_path(own: &str, version: Version, controller: Controller) -> String {
    let path = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let ours = match version {
            Version::V2 => controllers.is_empty(),
            Version::V1 => controllers.split(',').any(|name| name == controller.name()),
        };
        ours.then_some(path)
    });
    path.unwrap_or("/").to_owned()
}

/// Makes a group and looks whether the controller is in it.
fn try_parent(parent: &Parent) -> bool {
    if parent.version == Version::V2 {
        // Refused where processes stand in the folder itself; then the one above is tried.
        let _ = fs::write(parent.folder.join("cgroup.subtree_control"), format!("+{}", parent.controller.name()));
    }
    let folder = parent.folder.join(format!("interlock-{}-try-{}", std::process::id(), parent.controller.name()));
    if fs::create_dir(&folder).is_err() {
        return false;
    }
    let has = fs::metadata(folder.join(limit_file(parent.version, parent.controller))).is_ok()
        && fs::OpenOptions::new().write(true).open(folder.join("cgroup.procs")).is_ok();
    let _ = fs::remove_dir(&folder);
    has
}

pub(super) fn limit_file(version: Version, controller: Controller) -> &'static str {
    match (version, controller) {
        (_, Controller::Pids) => "pids.max",
        (Version::V1, Controller::Memory) => "memory.limit_in_bytes",
        (Version::V1, Controller::Cpu) => "cpu.cfs_quota_us",
        (Version::V2, Controller::Memory) => "memory.max",
        (Version::V2, Controller::Cpu) => "cpu.max",
    }
}

/// Removes groups whose worker is gone. One that is not empty cannot be removed.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| {
            let (process, number) = name.strip_prefix("interlock-")?.split_once('-')?;
            let process: u32 = process.parse().ok()?;
            (name == group_name(process, number.parse().ok()?)).then_some(process)
        });
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIXED: &str = "cgroup /sys/fs/cgroup/pids cgroup rw,relatime,pids 0 0\n\
                         cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n\
                         tmpfs /tmp tmpfs rw 0 0\n";

    fn folders(below: Option<&str>) -> Vec<String> {
        let own = "8:pids:/jobs/a\n4:memory:/m\n0::/system.slice/w.service\n";
        let found = candidates(MIXED, own, Controller::Pids, below);
        found.iter().map(|parent| parent.folder.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_own_group_is_tried_before_those_above_it_and_version_2_first() {
        assert_eq!(
            folders(None),
            [
                "/sys/fs/cgroup/unified/system.slice/w.service",
                "/sys/fs/cgroup/unified/system.slice",
                "/sys/fs/cgroup/unified/",
                "/sys/fs/cgroup/pids/jobs/a",
                "/sys/fs/cgroup/pids/jobs",
                "/sys/fs/cgroup/pids/",
            ]
        );
    }

    #[test]
    fn a_delegated_folder_is_the_only_candidate() {
        assert_eq!(folders(Some("/interlock")), ["/sys/fs/cgroup/unified/interlock", "/sys/fs/cgroup/pids/interlock"]);
    }
}
