//! Real groups of version 2 for the tests of this module.
//!
//! A host that has its controllers in version 1 can have a hierarchy of version 2 beside it: groups in it are made, joined,
//! killed and removed by the same kernel code, and only the limits are missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use super::write_existing;

/// Where the hierarchy is mounted. The tests of real groups need it as they need root.
pub(super) fn unified_mount() -> PathBuf {
    assert!(rustix::process::geteuid().is_root(), "the tests of real cgroups need root");
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mount = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (at, kind) = (fields.next()?, fields.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(at))
    });
    mount.expect("no cgroup2 is mounted: mkdir /sys/fs/cgroup/unified; mount -t cgroup2 none /sys/fs/cgroup/unified")
}

/// A group at the top of the hierarchy, removed with what is left in it.
pub(super) struct TestFolder(PathBuf);

impl TestFolder {
    pub fn make(mount: &Path, name: &str) -> Self {
        let available = fs::read_to_string(mount.join("cgroup.controllers")).unwrap();
        let has = |name: &str| available.split_whitespace().any(|had| had == name);
        let wanted: &[&str] = if has("memory") { &["pids", "memory", "cpu"] } else { &["hugetlb"] };
        for controller in wanted {
            write_existing(&mount.join("cgroup.subtree_control"), &format!("+{controller}"))
                .unwrap_or_else(|error| panic!("{controller}: {error}"));
        }
        let folder = mount.join(format!("interlock-{}-test-{name}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        for child in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let _ = fs::remove_dir(child.path());
        }
        let _ = fs::remove_dir(&self.0);
    }
}

/// A process in a group.
pub(super) struct Sleeper(Child);

pub(super) fn sleeper(folder: &Path) -> Sleeper {
    let child = Command::new("/bin/sleep").arg("600").spawn().unwrap();
    let sleeper = Sleeper(child);
    write_existing(&folder.join("cgroup.procs"), &sleeper.id().to_string()).unwrap();
    sleeper
}

impl Sleeper {
    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
