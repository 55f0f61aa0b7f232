//! Version 2: the one folder below which commands get their groups.
//!
//! The kernel's rules decide what can be that folder. A process is in one group of this hierarchy, so all controllers must
//! come from the same folder. And a group other than the root has processes or children with limits, never both: a worker
//! that is alone in its group moves into a leaf of it, as systemd asks of whoever it delegates a group to.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::trial::TrialGroup;
use super::{Controller, Version, write_existing};

/// The leaf that a worker moves into.
const LEAF: &str = "interlock-worker";

/// The first folder in which most of the controllers work, and which these are.
pub(super) fn parent(folders: &[PathBuf]) -> Option<(PathBuf, Vec<Controller>)> {
    let mut best: Option<(PathBuf, Vec<Controller>)> = None;
    for folder in folders {
        let working = working(folder);
        if working.len() > best.as_ref().map_or(0, |(_, found)| found.len()) {
            let all = working.len() == Controller::ALL.len();
            best = Some((folder.clone(), working));
            if all {
                break;
            }
        }
    }
    best
}

/// Folders to try: where the operator says; else this process's own group, then those above it.
pub(super) fn folders(mount: &Path, own: &str, below: Option<&str>) -> Vec<PathBuf> {
    let at = |path: &Path| mount.join(path.strip_prefix("/").unwrap_or(path));
    if let Some(below) = below {
        return vec![at(Path::new(below))];
    }
    // Above the root of this process's cgroup namespace, which is as far as the mount shows.
    let own = Path::new(if own.split('/').any(|name| name == "..") { "/" } else { own });
    // The worker moved into its leaf before: its group is the one above.
    let own = if own.ends_with(LEAF) { own.parent().unwrap_or(own) } else { own };
    own.ancestors().map(at).collect()
}

fn working(folder: &Path) -> Vec<Controller> {
    let available = fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
    let mut wanted = Controller::ALL.to_vec();
    wanted.retain(|controller| available.split_whitespace().any(|name| name == controller.name()));
    if wanted.is_empty() {
        return wanted;
    }
    let worker = std::process::id();
    let Some(room) = Room::make(folder, worker) else { return Vec::new() };
    for controller in &wanted {
        // Where it is on already this changes nothing; whether it is on shows in the trial.
        let _ = enable(folder, controller.name());
    }
    let Ok(trial) = TrialGroup::make(folder, Version::V2) else {
        room.give_up(folder, worker);
        return Vec::new();
    };
    wanted.retain(|controller| trial.has(*controller));
    if wanted.is_empty() || !trial.can_be_joined() {
        drop(trial);
        room.give_up(folder, worker);
        return Vec::new();
    }
    wanted
}

/// Has the children of a folder get a controller.
fn enable(folder: &Path, controller: &str) -> io::Result<()> {
    write_existing(&folder.join("cgroup.subtree_control"), &format!("+{controller}"))
}

/// How a folder came to have no process of its own.
#[derive(Debug, PartialEq, Eq)]
enum Room {
    /// It has none, or is the root, for which the rule does not hold.
    WasThere,
    /// The worker went into the leaf.
    Left,
}

impl Room {
    /// None where other processes stand in the folder, or where its kind lets no process into its children. A controller
    /// that counts threads, such as `pids`, could be enabled even so, and would make groups that nothing can join.
    fn make(folder: &Path, worker: u32) -> Option<Self> {
        let kind = match fs::read_to_string(folder.join("cgroup.type")) {
            Ok(kind) => kind,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(Self::WasThere),
            Err(_) => return None,
        };
        if kind.trim() != "domain" {
            return None;
        }
        let members = fs::read_to_string(folder.join("cgroup.procs")).ok()?;
        let mut members = members.lines();
        match (members.next(), members.next()) {
            (None, _) => Some(Self::WasThere),
            (Some(only), None) if only == worker.to_string() => {
                let leaf = folder.join(LEAF);
                match fs::create_dir(&leaf) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return None,
                    _ => {}
                }
                write_existing(&leaf.join("cgroup.procs"), only).ok().map(|()| Self::Left)
            }
            _ => None,
        }
    }

    /// Nothing came of it: the worker goes back to where it was started.
    fn give_up(self, folder: &Path, worker: u32) {
        if self == Self::Left && write_existing(&folder.join("cgroup.procs"), &worker.to_string()).is_ok() {
            let _ = fs::remove_dir(folder.join(LEAF));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::harness::{TestFolder, sleeper, unified_mount};

    #[test]
    fn the_own_group_comes_first_then_those_above_it() {
        let folders = |own, below| folders(Path::new("/cg"), own, below);
        let above = ["/cg/system.slice/w.service", "/cg/system.slice", "/cg/"].map(PathBuf::from);
        assert_eq!(folders("/system.slice/w.service", None), above);
        assert_eq!(folders("/system.slice/w.service/interlock-worker", None), above, "it moved there itself");
        assert_eq!(folders("/a/b", Some("/interlock")), [PathBuf::from("/cg/interlock")]);
        assert_eq!(folders("/", None), [PathBuf::from("/cg/")]);
        assert_eq!(folders("/../outside", None), [PathBuf::from("/cg/")], "it is not seen from here");
    }

    /// The kernel's own answer: with the worker in the folder no controller can be enabled there, and once it has moved
    /// into the leaf one can. `hugetlb` stands for `memory`, which a host with both versions has in version 1.
    #[test]
    fn a_worker_that_is_alone_in_its_group_makes_room() {
        let folder = TestFolder::make(&unified_mount(), "room");
        let available = fs::read_to_string(folder.path().join("cgroup.controllers")).unwrap();
        let is_there = |name: &&str| available.split_whitespace().any(|had| had == *name);
        let controller = ["memory", "hugetlb"].into_iter().find(is_there);
        let controller = controller.unwrap_or_else(|| panic!("no controller of whole processes in: {available}"));
        let worker = sleeper(folder.path());
        assert_eq!(enable(folder.path(), controller).unwrap_err().kind(), io::ErrorKind::ResourceBusy);
        assert_eq!(Room::make(folder.path(), worker.id()), Some(Room::Left));
        let leaf = folder.path().join(LEAF);
        assert_eq!(fs::read_to_string(leaf.join("cgroup.procs")).unwrap().trim(), worker.id().to_string());
        enable(folder.path(), controller).unwrap();
        let trial = TrialGroup::make(folder.path(), Version::V2).unwrap();
        assert!(trial.can_be_joined());
        // As the next start of the sandbox finds it.
        assert_eq!(Room::make(folder.path(), worker.id()), Some(Room::WasThere));
    }

    #[test]
    fn nobody_is_moved_out_of_a_group_that_others_are_in() {
        let folder = TestFolder::make(&unified_mount(), "shared");
        let (one, _other) = (sleeper(folder.path()), sleeper(folder.path()));
        assert_eq!(Room::make(folder.path(), one.id()), None);
        assert_eq!(fs::read_to_string(folder.path().join("cgroup.procs")).unwrap().lines().count(), 2);
        assert!(!folder.path().join(LEAF).exists());
    }

    #[test]
    fn a_worker_goes_back_where_nothing_came_of_it() {
        let folder = TestFolder::make(&unified_mount(), "back");
        let worker = sleeper(folder.path());
        let room = Room::make(folder.path(), worker.id()).unwrap();
        room.give_up(folder.path(), worker.id());
        assert_eq!(fs::read_to_string(folder.path().join("cgroup.procs")).unwrap().trim(), worker.id().to_string());
        assert!(!folder.path().join(LEAF).exists());
    }

    /// A group of threads has `pids.max` and a list of members that can be opened, and lets no process in.
    #[test]
    fn a_group_that_no_process_can_join_is_not_taken() {
        let folder = TestFolder::make(&unified_mount(), "threads");
        let child = folder.path().join("threads");
        fs::create_dir(&child).unwrap();
        write_existing(&child.join("cgroup.type"), "threaded").unwrap();
        assert_eq!(Room::make(&child, std::process::id()), None, "it is threaded");
        assert_eq!(Room::make(folder.path(), std::process::id()), None, "its children are");
        let trial = TrialGroup::make(folder.path(), Version::V2).unwrap();
        assert!(!trial.can_be_joined(), "it is a domain below a group of threads");
        drop(trial);
        fs::remove_dir(child).unwrap();
    }
}
