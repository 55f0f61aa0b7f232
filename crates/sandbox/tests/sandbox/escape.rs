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

/// Groups that an ordinary user may write, as a delegation by root makes them: one in each hierarchy of version 1, or the
/// one of version 2, which the worker must be started in.
pub struct Delegated {
    pub name: String,
    folders: Vec<PathBuf>,
    started_in: Option<PathBuf>,
}

impl Delegated {
    pub fn to(user: u32) -> Self {
        let name = format!("interlock-test-{}", std::process::id());
        let root = Path::new("/sys/fs/cgroup");
        let is_unified = root.join("cgroup.controllers").exists();
        let folders: Vec<PathBuf> = if is_unified {
            for controller in CGROUPS {
                std::fs::write(root.join("cgroup.subtree_control"), format!("+{controller}")).unwrap();
            }
            vec![root.join(&name)]
        } else {
            CGROUPS.iter().map(|controller| root.join(controller).join(&name)).collect()
        };
        for folder in &folders {
            std::fs::create_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
            let mut given = vec![folder.clone(), folder.join("cgroup.procs")];
            given.extend(is_unified.then(|| folder.join("cgroup.subtree_control")));
            for path in given {
                std::os::unix::fs::chown(path, Some(user), Some(user)).unwrap();
            }
        }
        let started_in = is_unified.then(|| {
            let leaf = root.join(&name).join("worker");
            std::fs::create_dir(&leaf).unwrap();
            leaf.join("cgroup.procs")
        });
        Self { name, folders, started_in }
    }

    /// The suite as a shell starts it, as root in the group that it is to be in.
    fn start(&self, program: &Path) -> Command {
        let Some(members) = &self.started_in else { return Command::new(program) };
        let mut command = Command::new("/bin/sh");
        let script = r#"echo 0 > "$0" && exec setpriv --reuid "$1" --regid "$1" --clear-groups "$2" "$3" "$4""#;
        command.args(["-c", script]).arg(members).arg(ORDINARY_USER.to_string()).arg(program);
        command
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        for folder in &self.folders {
            for left in std::fs::read_dir(folder).into_iter().flatten().flatten() {
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
    let mut command = delegated.start(&base.0.join("probe"));
    command.arg("suite").arg(&base.0);
    if delegated.started_in.is_none() {
        command.uid(ORDINARY_USER).gid(ORDINARY_USER);
    }
    assert_suite_holds(command.env("INTERLOCK_TEST_CGROUP", format!("/{}", delegated.name)), ATTEMPTS_MIN);
}
