//! The arguments of bubblewrap. They travel by descriptor, so that no list of processes shows them.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use super::view::{Mount, View};
use crate::shim;
use crate::spec::{Namespace, Spec};

/// Who the command is, inside.
const INSIDE_ID: &str = "1000";
pub(crate) const PASSWD: &str = "sandbox:x:1000:1000:sandbox:/tmp:/usr/sbin/nologin\n";
pub(crate) const GROUP: &str = "sandbox:x:1000:\n";

/// The descriptors that bubblewrap reads or writes.
#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    pub filters: Vec<RawFd>,
    pub json_status: RawFd,
    pub passwd: RawFd,
    pub group: RawFd,
    /// Contents of secret files, by their path inside.
    pub secret_files: Vec<(RawFd, String)>,
}

/// Options, each ended by a zero byte.
pub(crate) fn options(spec: &Spec, view: &View, shim: &Path, descriptors: &Descriptors) -> Vec<u8> {
    let mut options = Options::default();
    options.add(["--die-with-parent", "--new-session", "--clearenv", "--as-pid-1"]);
    options.add(["--cap-drop", "ALL", "--uid", INSIDE_ID, "--gid", INSIDE_ID]);
    for namespace in spec.namespaces {
        options.add([match namespace {
            Namespace::User => "--unshare-user",
            Namespace::Pid => "--unshare-pid",
            Namespace::Net => "--unshare-net",
            Namespace::Ipc => "--unshare-ipc",
            Namespace::Uts => "--unshare-uts",
            Namespace::Cgroup => "--unshare-cgroup",
        }]);
    }
    if spec.has(Namespace::Uts) {
        options.add(["--hostname", "sandbox"]);
    }
    options.add(["--disable-userns", "--assert-userns-disabled"]);
    options.with_number("--json-status-fd", descriptors.json_status);
    options.add(["--dir", "/etc", "--dir", "/run", "--dir", "/dev", "--proc", "/proc"]);
    for mount in &view.mounts {
        options.mount(mount);
    }
    for (number, at) in [(descriptors.passwd, "/etc/passwd"), (descriptors.group, "/etc/group")] {
        options.add(["--perms", "0444"]);
        options.with_number("--file", number);
        options.add([at]);
    }
    if !descriptors.secret_files.is_empty() {
        options.add(["--perms", "0500", "--dir", super::view::SECRETS]);
    }
    for (number, at) in &descriptors.secret_files {
        options.add(["--perms", "0400"]);
        options.with_number("--file", *number);
        options.add([at.as_str()]);
    }
    options.add(["--ro-bind"]);
    options.add_path(shim);
    options.add([shim::PATH_INSIDE, "--remount-ro", "/"]);
    if view.mounts.iter().any(|mount| matches!(mount, Mount::Terminals { .. })) {
        // Its devices can be written to all the same, and terminals have a file system of their own.
        options.add(["--remount-ro", "/dev"]);
    }
    options.add(["--chdir", "/"]);
    for filter in &descriptors.filters {
        options.with_number("--add-seccomp-fd", *filter);
    }
    options.0
}

#[derive(Default)]
struct Options(Vec<u8>);

impl Options {
    fn add<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) {
        for word in words {
            self.0.extend(word.as_bytes());
            self.0.push(0);
        }
    }

    fn add_path(&mut self, path: &Path) {
        self.0.extend(OsString::from(path).into_vec());
        self.0.push(0);
    }

    fn with_number(&mut self, option: &str, number: RawFd) {
        self.add([option, &number.to_string()]);
    }

    fn mount(&mut self, mount: &Mount) {
        match mount {
            Mount::ReadOnly { from, to } => self.pair("--ro-bind", from, to),
            Mount::Writable { from, to } => self.pair("--bind", from, to),
            Mount::Device(path) => self.pair("--dev-bind", path, path),
            Mount::Link { target, at } => self.pair("--symlink", target, at),
            Mount::Memory { at, bytes } => {
                self.add(["--perms", "0700", "--size", &bytes.to_string(), "--tmpfs"]);
                self.add_path(at);
            }
            Mount::Terminals { shared_bytes } => {
                self.add([
                    "--dev",
                    "/dev",
                    "--perms",
                    "01777",
                    "--size",
                    &shared_bytes.to_string(),
                    "--tmpfs",
                    "/dev/shm",
                ]);
            }
        }
    }

    fn pair(&mut self, option: &str, one: &Path, two: &Path) {
        self.add([option]);
        self.add_path(one);
        self.add_path(two);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;
    use crate::launch::view::Additions;

    fn words(profile: Profile) -> Vec<String> {
        let spec = profile.spec();
        let view = View::of(spec, &Additions::default());
        let bytes = options(spec, &view, Path::new("/usr/bin/interlock"), &Descriptors::default());
        let text = String::from_utf8(bytes).unwrap();
        text.trim_end_matches('\0').split('\0').map(str::to_owned).collect()
    }

    #[test]
    fn what_every_profile_must_have() {
        for profile in Profile::ALL {
            let words = words(*profile);
            for option in [
                "--unshare-user",
                "--unshare-pid",
                "--disable-userns",
                "--assert-userns-disabled",
                "--die-with-parent",
                "--new-session",
                "--clearenv",
                "--cap-drop",
                "--remount-ro",
            ] {
                assert!(words.iter().any(|word| word == option), "{profile} {option}");
            }
            // Nothing may be mounted once the root is read-only.
            let last_mount = words.iter().rposition(|word| word.contains("bind") || word == "--tmpfs").unwrap();
            assert!(words.iter().position(|word| word == "--remount-ro").unwrap() > last_mount);
        }
    }

    #[test]
    fn only_dev_flex_shares_the_network() {
        for profile in Profile::ALL {
            let unshared = words(*profile).iter().any(|word| word == "--unshare-net");
            assert_eq!(unshared, *profile != Profile::DevFlex);
        }
    }
}
