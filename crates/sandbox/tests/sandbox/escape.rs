//! The escape suite: every attempt succeeds outside and fails inside, under every profile, as root and as an ordinary user.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::harness::PROBE;

const ATTEMPTS_MIN: usize = 60;
/// No account has this id, so that nothing else on the host runs as it.
const ORDINARY_USER: u32 = 65_531;
const CGROUPS: &[&str] = &["pids", "memory", "cpu"];

#[derive(Debug, Deserialize)]
struct Verdict {
    profile: String,
    held: Vec<String>,
    proved_nothing: Vec<BTreeMap<String, serde_json::Value>>,
    escaped: Vec<BTreeMap<String, serde_json::Value>>,
    missing: Vec<String>,
}

/// A folder of one suite, with the probe and a copy of it with the setuid bit, which runs as root.
struct Base(PathBuf);

impl Base {
    fn make(name: &str, owner: u32) -> Self {
        let path = std::env::temp_dir().join(format!("interlock-escape-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        let set_mode = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        for (copy, mode) in [("probe", 0o755), ("set-uid", 0o4755)] {
            let copy = path.join(copy);
            std::fs::copy(PROBE, &copy).unwrap();
            set_mode(&copy, mode);
        }
        std::os::unix::fs::chown(&path, Some(owner), Some(owner)).unwrap();
        set_mode(&path, 0o755);
        Self(path)
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Groups that an ordinary user may write, as a delegation by root makes them.
struct Delegated(String);

impl Delegated {
    fn to(user: u32) -> Self {
        let name = format!("interlock-test-{}", std::process::id());
        for controller in CGROUPS {
            let folder = Path::new("/sys/fs/cgroup").join(controller).join(&name);
            std::fs::create_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
            std::os::unix::fs::chown(&folder, Some(user), Some(user)).unwrap();
            std::os::unix::fs::chown(folder.join("cgroup.procs"), Some(user), Some(user)).unwrap();
        }
        Self(name)
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        for controller in CGROUPS {
            let folder = Path::new("/sys/fs/cgroup").join(controller).join(&self.0);
            for left in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let _ = std::fs::remove_dir(left.path());
            }
            let _ = std::fs::remove_dir(folder);
        }
    }
}

fn assert_suite_holds(command: &mut Command, least: usize) {
    let output = command.env("INTERLOCK_PROBE_SECRET", "of the host").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    let verdicts: Vec<Verdict> = serde_json::from_str(said.trim()).unwrap_or_else(|_| panic!("{said}\n{errors}"));
    let profiles: Vec<&str> = verdicts.iter().map(|verdict| verdict.profile.as_str()).collect();
    assert_eq!(profiles, ["prod-critical", "prod-standard", "staging-standard", "dev-flex"]);
    let mut faults = Vec::new();
    for verdict in &verdicts {
        let Verdict { profile, held, proved_nothing, escaped, missing } = verdict;
        println!("{profile}: {} attempts held", held.len());
        if !escaped.is_empty() || !proved_nothing.is_empty() || !missing.is_empty() || held.len() < least {
            faults.push(format!(
                "{profile}: {} held; escaped: {escaped:?}; proved nothing: {proved_nothing:?}; missing: {missing:?}",
                held.len()
            ));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn require_root() {
    assert!(
        rustix::process::geteuid().is_root(),
        "the escape suite needs root to try as root, and to delegate cgroups"
    );
}

#[test]
fn no_attempt_of_roots_worker_gets_out() {
    require_root();
    let base = Base::make("root", 0);
    assert_suite_holds(Command::new(base.0.join("probe")).arg("suite").arg(&base.0), ATTEMPTS_MIN);
}

#[test]
fn no_attempt_of_an_ordinary_users_worker_gets_out() {
    require_root();
    let base = Base::make("user", ORDINARY_USER);
    let delegated = Delegated::to(ORDINARY_USER);
    let mut command = Command::new(base.0.join("probe"));
    command.arg("suite").arg(&base.0).uid(ORDINARY_USER).gid(ORDINARY_USER);
    assert_suite_holds(command.env("INTERLOCK_TEST_CGROUP", format!("/{}", delegated.0)), ATTEMPTS_MIN);
}
