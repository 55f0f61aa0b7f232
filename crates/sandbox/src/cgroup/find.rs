//! Which hierarchies are mounted, where this process stands in them, and where it may make groups.

use std::fs;
use std::path::{Path, PathBuf};

use super::trial::TrialGroup;
use super::{Controller, Parent, Version, unified};

/// Version 2 first: it kills a whole group at once. What it does not have is looked for in version 1.
pub(super) fn parents(below: Option<&str>) -> Vec<Parent> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut parents: Vec<Parent> = Vec::new();
    if let Some((folder, controllers)) = unified::parent(&unified_folders(&mounts, &own, below)) {
        let parent = |controller| Parent { controller, version: Version::V2, folder: folder.clone() };
        parents.extend(controllers.into_iter().map(parent));
    }
    for controller in Controller::ALL {
        if !parents.iter().any(|parent| parent.controller == controller) {
            let candidates = version_1_candidates(&mounts, &own, controller, below);
            parents.extend(candidates.into_iter().find(can_hold_groups));
        }
    }
    for parent in &parents {
        sweep(&parent.folder);
    }
    parents
}

/// Where hierarchies of a kind are mounted, with the options of each mount.
fn mounted<'a>(mounts: &'a str, kind: &'a str) -> impl Iterator<Item = (&'a Path, &'a str)> {
    mounts.lines().filter_map(move |line| {
        let mut fields = line.split(' ').skip(1);
        let (at, found, options) = (fields.next()?, fields.next()?, fields.next()?);
        (found == kind).then(|| (Path::new(at), options))
    })
}

fn unified_folders(mounts: &str, own: &str, below: Option<&str>) -> Vec<PathBuf> {
    let own = own_path(own, str::is_empty);
    mounted(mounts, "cgroup2").flat_map(|(at, _)| unified::folders(at, own, below)).collect()
}

/// Folders to try: where the operator says; else this process's own group, then those above it.
fn version_1_candidates(mounts: &str, own: &str, controller: Controller, below: Option<&str>) -> Vec<Parent> {
    let is_it = |names: &str| names.split(',').any(|name| name == controller.name());
    let mut found = Vec::new();
    for (at, options) in mounted(mounts, "cgroup") {
        if !is_it(options) {
            continue;
        }
        let mut folder = PathBuf::from(below.unwrap_or_else(|| own_path(own, is_it)));
        loop {
            let relative = folder.strip_prefix("/").unwrap_or(&folder);
            found.push(Parent { controller, version: Version::V1, folder: at.join(relative) });
            if below.is_some() || !folder.pop() {
                break;
            }
        }
    }
    found
}

/// This process's group in the hierarchy whose list of controllers is the one that is looked for.
fn own_path(own: &str, is_it: impl Fn(&str) -> bool) -> &str {
    let path = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        is_it(controllers).then_some(path)
    });
    path.unwrap_or("/")
}

/// Makes a group, looks whether the controller is in it, and sends a process there.
fn can_hold_groups(parent: &Parent) -> bool {
    TrialGroup::make(&parent.folder, parent.version)
        .is_ok_and(|trial| trial.has(parent.controller) && trial.can_be_joined())
}

/// Removes groups whose worker is gone. One that is not empty cannot be removed.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| {
            let (process, rest) = name.strip_prefix("interlock-")?.split_once('-')?;
            // Of a command, or of a trial: what else is called alike was made by somebody else.
            rest.strip_prefix("try-").unwrap_or(rest).parse::<u64>().ok()?;
            process.parse::<u32>().ok()
        });
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::harness::{TestFolder, unified_mount};

    const MIXED: &str = "cgroup /sys/fs/cgroup/pids cgroup rw,relatime,pids 0 0\n\
                         cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n\
                         tmpfs /tmp tmpfs rw 0 0\n";
    const OWN: &str = "8:pids:/jobs/a\n4:memory:/m\n0::/system.slice/w.service\n";

    fn version_1_folders(below: Option<&str>) -> Vec<String> {
        let found = version_1_candidates(MIXED, OWN, Controller::Pids, below);
        found.iter().map(|parent| parent.folder.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_own_group_is_tried_before_those_above_it() {
        let above = ["/sys/fs/cgroup/pids/jobs/a", "/sys/fs/cgroup/pids/jobs", "/sys/fs/cgroup/pids/"];
        assert_eq!(version_1_folders(None), above);
        let unified = Path::new("/sys/fs/cgroup/unified");
        let unified = ["system.slice/w.service", "system.slice", ""].map(|path| unified.join(path));
        assert_eq!(unified_folders(MIXED, OWN, None), unified);
        assert!(version_1_candidates(MIXED, OWN, Controller::Memory, None).is_empty(), "it is not mounted");
    }

    #[test]
    fn a_delegated_folder_is_the_only_candidate() {
        assert_eq!(version_1_folders(Some("/interlock")), ["/sys/fs/cgroup/pids/interlock"]);
        let unified = [PathBuf::from("/sys/fs/cgroup/unified/interlock")];
        assert_eq!(unified_folders(MIXED, OWN, Some("/interlock")), unified);
    }

    /// A process is in one group of version 2: limits in two folders would be limits in the last one joined.
    #[test]
    fn all_controllers_of_version_2_come_from_one_folder() {
        let found = parents(None);
        assert_eq!(found.len(), Controller::ALL.len(), "{found:?}");
        let mut unified = found.iter().filter(|parent| parent.version == Version::V2).map(|parent| &parent.folder);
        let first = unified.next();
        assert!(unified.all(|folder| Some(folder) == first), "{found:?}");
    }

    #[test]
    fn groups_of_a_dead_worker_are_swept_and_those_of_a_living_one_are_not() {
        let base = TestFolder::make(&unified_mount(), "sweep");
        let dead = ["3", "try-1"].map(|rest| base.path().join(format!("interlock-{}-{rest}", u32::MAX)));
        let living = base.path().join(format!("interlock-{}-0", std::process::id()));
        let foreign = base.path().join(format!("interlock-{}-prod", u32::MAX));
        for folder in dead.iter().chain([&living, &foreign]) {
            fs::create_dir(folder).unwrap();
        }
        sweep(base.path());
        assert!(dead.iter().all(|folder| !folder.exists()) && living.exists() && foreign.exists());
    }
}
