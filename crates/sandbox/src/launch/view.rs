//! The file system that a command sees: each path, where it comes from, and what Landlock lets the command do with it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shim::FileRules;
use crate::spec::{Devices, Spec, SystemPaths, WorkDir};

pub(crate) const WORK: &str = "/work";
pub(crate) const SECRETS: &str = "/run/secrets";
pub(crate) const BROKER: &str = "/run/egress.sock";

/// Folders at the root that are links into `/usr` on most systems.
const ROOT_FOLDERS: &[&str] = &["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
const PROGRAM_FOLDERS: &[&str] = &[
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/share/zoneinfo",
    "/usr/share/ca-certificates",
];
const SETTINGS: &[&str] = &[
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ca-certificates",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust",
    "/etc/alternatives",
];
const NAME_SETTINGS: &[&str] = &["/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/services"];
const PLAIN_DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// One step of building the view, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mount {
    ReadOnly { from: PathBuf, to: PathBuf },
    Writable { from: PathBuf, to: PathBuf },
    Device(PathBuf),
    Link { target: PathBuf, at: PathBuf },
    Memory { at: PathBuf, bytes: u64 },
    Terminals { shared_bytes: u64 },
}

/// What a request adds to its profile's view.
#[derive(Debug, Default)]
pub(crate) struct Additions<'a> {
    pub read_only: &'a [PathBuf],
    pub work: Option<&'a Path>,
    pub broker: Option<&'a Path>,
    pub secret_files: bool,
}

#[derive(Debug, Default)]
pub(crate) struct View {
    pub mounts: Vec<Mount>,
    pub files: FileRules,
    /// Where the command starts.
    pub folder: PathBuf,
}

impl View {
    pub fn of(spec: &Spec, added: &Additions<'_>) -> Self {
        let mut view = Self::default();
        view.system(spec.system);
        view.devices(spec.devices);
        view.mounts.push(Mount::Memory { at: "/tmp".into(), bytes: spec.limits.tmp_bytes });
        view.written("/tmp".into(), spec.execute_written);
        view.files.read.push("/proc".into());
        view.work(spec, added.work);
        for path in added.read_only {
            view.read_only(path.clone(), true);
        }
        if let Some(socket) = added.broker {
            view.mounts.push(Mount::ReadOnly { from: socket.into(), to: BROKER.into() });
        }
        if added.secret_files {
            view.files.read.push(SECRETS.into());
        }
        view
    }

    fn system(&mut self, paths: SystemPaths) {
        match paths {
            SystemPaths::Programs => {
                for path in PROGRAM_FOLDERS {
                    self.read_only(path.into(), !path.starts_with("/usr/share"));
                }
            }
            SystemPaths::Usr | SystemPaths::UsrAndNames => self.read_only("/usr".into(), true),
        }
        for folder in ROOT_FOLDERS {
            match fs::read_link(folder) {
                Ok(target) => self.mounts.push(Mount::Link { target, at: folder.into() }),
                Err(_) => self.read_only(folder.into(), true),
            }
        }
        let names: &[&str] = if paths == SystemPaths::UsrAndNames { NAME_SETTINGS } else { &[] };
        for path in SETTINGS.iter().chain(names) {
            self.read_only(path.into(), false);
        }
        self.files.read.push("/etc".into());
    }

    fn devices(&mut self, devices: Devices) {
        if let Devices::Terminals { shared_bytes } = devices {
            self.mounts.push(Mount::Terminals { shared_bytes });
            self.files.write.push("/dev".into());
            return;
        }
        for device in PLAIN_DEVICES {
            self.mounts.push(Mount::Device(device.into()));
            self.files.use_devices.push(device.into());
        }
        for (target, at) in [
            ("/proc/self/fd", "/dev/fd"),
            ("/proc/self/fd/0", "/dev/stdin"),
            ("/proc/self/fd/1", "/dev/stdout"),
            ("/proc/self/fd/2", "/dev/stderr"),
        ] {
            self.mounts.push(Mount::Link { target: target.into(), at: at.into() });
        }
        if let Devices::SharedMemory { bytes } = devices {
            self.mounts.push(Mount::Memory { at: "/dev/shm".into(), bytes });
            self.written("/dev/shm".into(), false);
        }
    }

    fn work(&mut self, spec: &Spec, from: Option<&Path>) {
        self.folder = "/tmp".into();
        match (spec.work, from) {
            (WorkDir::Fresh { bytes }, _) => self.mounts.push(Mount::Memory { at: WORK.into(), bytes }),
            (WorkDir::Bound, Some(from)) => self.mounts.push(Mount::Writable { from: from.into(), to: WORK.into() }),
            (WorkDir::Bound, None) | (WorkDir::None, _) => return,
        }
        self.written(WORK.into(), spec.execute_written);
        self.folder = WORK.into();
    }

    /// At the same place inside as outside; left out where the host does not have it.
    fn read_only(&mut self, path: PathBuf, execute: bool) {
        if path.exists() {
            let rules = if execute { &mut self.files.read_and_execute } else { &mut self.files.read };
            rules.push(path.clone());
            self.mounts.push(Mount::ReadOnly { from: path.clone(), to: path });
        }
    }

    fn written(&mut self, path: PathBuf, execute: bool) {
        let rules = if execute { &mut self.files.write_and_execute } else { &mut self.files.write };
        rules.push(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;

    fn view(profile: Profile, work: Option<&Path>) -> View {
        View::of(profile.spec(), &Additions { work, ..Additions::default() })
    }

    #[test]
    fn prod_critical_writes_to_tmp_and_nowhere_else() {
        let view = view(Profile::ProdCritical, Some(Path::new("/srv/work")));
        assert_eq!(view.files.write, [PathBuf::from("/tmp")]);
        assert!(view.files.write_and_execute.is_empty());
        assert!(!view.mounts.iter().any(|mount| matches!(mount, Mount::Writable { .. } | Mount::Terminals { .. })));
    }

    #[test]
    fn no_profile_shows_homes_state_or_the_kernels_files() {
        for profile in Profile::ALL {
            let view = view(*profile, None);
            for mount in &view.mounts {
                if let Mount::ReadOnly { to, .. } = mount {
                    let shown = ["/usr", "/etc/", "/bin", "/sbin", "/lib"]
                        .iter()
                        .any(|ok| to.starts_with(ok.trim_end_matches('/')));
                    assert!(shown && to != Path::new("/etc"), "{profile}: {}", to.display());
                }
            }
        }
    }

    #[test]
    fn the_work_folder_is_the_callers_or_fresh() {
        let work = Path::new("/srv/work");
        let bound = Mount::Writable { from: work.into(), to: WORK.into() };
        assert!(view(Profile::ProdStandard, Some(work)).mounts.contains(&bound));
        let staging = view(Profile::StagingStandard, Some(work));
        assert!(!staging.mounts.contains(&bound) && staging.folder == Path::new(WORK));
        assert_eq!(view(Profile::DevFlex, None).folder, Path::new("/tmp"));
    }
}
