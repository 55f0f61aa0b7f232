//! The groups of one command: made with its limits, read and removed at its end.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

use super::doors::{Doors, members_file};
use super::{Controller, Parent, Version, limit_file, write_existing};
use crate::control::Control;
use crate::shim::JoinedCgroup;
use crate::spec::Limits;

const CPU_PERIOD_MICROS: u64 = 100_000;

#[derive(Debug)]
pub(crate) struct Group {
    folders: Vec<(PathBuf, Vec<Controller>, Version)>,
}

/// What the kernel counted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupUsage {
    pub peak_bytes: Option<u64>,
    pub killed_for_memory: u64,
    pub refused_processes: u64,
    pub throttled: bool,
}

impl Group {
    pub fn create(parents: &[Parent], name: &str, limits: &Limits) -> io::Result<Self> {
        let mut group = Self { folders: Vec::new() };
        for parent in parents {
            let folder = parent.folder.join(name);
            if let Some((_, controllers, _)) = group.folders.iter_mut().find(|(made, ..)| *made == folder) {
                controllers.push(parent.controller);
            } else {
                fs::create_dir(&folder)?;
                group.folders.push((folder.clone(), vec![parent.controller], parent.version));
            }
            set(&folder, parent, limits)?;
        }
        Ok(group)
    }

    /// The ways in for the command's first process.
    pub fn doors(&self) -> io::Result<Doors> {
        let mut doors = Doors::default();
        for (folder, _, version) in &self.folders {
            doors.open(folder, *version)?;
        }
        Ok(doors)
    }

    /// What the shim must find of the group around itself.
    pub fn joined(&self, own_namespace: bool) -> Vec<JoinedCgroup> {
        let mut joined = Vec::new();
        for (folder, controllers, version) in &self.folders {
            let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
            joined.extend(controllers.iter().map(|controller| JoinedCgroup {
                control: controller.control(),
                hierarchy: if *version == Version::V1 { controller.name().to_owned() } else { String::new() },
                name: if own_namespace { None } else { name.clone() },
            }));
        }
        joined
    }

    /// The first control that rests on a group which the process is not in.
    pub fn not_joined_by(&self, process: Pid) -> Option<Control> {
        let process = process.as_raw_nonzero().to_string();
        let is_outside = |(folder, _, version): &&(PathBuf, Vec<Controller>, Version)| {
            let members = fs::read_to_string(folder.join(members_file(*version))).unwrap_or_default();
            !members.lines().any(|line| line == process)
        };
        let (_, controllers, _) = self.folders.iter().find(is_outside)?;
        controllers.first().map(|controller| controller.control())
    }

    /// The second way to end a command; the first is to kill the first process of its PID namespace.
    pub fn kill(&self) {
        for (folder, _, version) in &self.folders {
            // Linux 5.14 and newer.
            if *version == Version::V2 && write_existing(&folder.join("cgroup.kill"), "1").is_ok() {
                continue;
            }
            let members = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            for pid in members.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }

    pub fn usage(&self) -> GroupUsage {
        let mut usage = GroupUsage::default();
        for (folder, controllers, version) in &self.folders {
            for controller in controllers {
                read(folder, *controller, *version, &mut usage);
            }
        }
        usage
    }
}

/// Whether all are gone.
fn remove(folders: &mut Vec<PathBuf>) -> bool {
    folders.retain(|folder| match fs::remove_dir(folder) {
        Ok(()) => false,
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    });
    folders.is_empty()
}

/// Removes groups whose processes are gone. The kernel lets go of a group a moment after its last process was collected.
pub(super) fn remove_soon(mut folders: Vec<PathBuf>) {
    const TRIES: u32 = 20;
    if remove(&mut folders) {
        return;
    }
    let pause = rustix::thread::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    // Where no thread can be started, the next worker sweeps.
    let _ = std::thread::Builder::new().name("cgroup-remove".to_owned()).spawn(move || {
        for _ in 0..TRIES {
            // Woken early, it tries early.
            let _ = rustix::thread::nanosleep(&pause);
            if remove(&mut folders) {
                break;
            }
        }
    });
}

impl Drop for Group {
    fn drop(&mut self) {
        remove_soon(self.folders.drain(..).map(|(folder, ..)| folder).collect());
    }
}

fn set(folder: &Path, parent: &Parent, limits: &Limits) -> io::Result<()> {
    let write = |file: &str, value: String| write_existing(&folder.join(file), &value);
    let quota = limits.cpu_percent * CPU_PERIOD_MICROS / 100;
    let main = limit_file(parent.version, parent.controller);
    match (parent.version, parent.controller) {
        (_, Controller::Pids) => write(main, limits.pids.to_string()),
        (Version::V1, Controller::Memory) => {
            write(main, limits.memory_bytes.to_string())?;
            // Memory with swap.
            unless_swap_is_not_counted(write("memory.memsw.limit_in_bytes", limits.memory_bytes.to_string()))
        }
        // `memory.oom.group` stays off: the kernel would kill the shim with the command, and nobody would tell its end.
        (Version::V2, Controller::Memory) => {
            write(main, limits.memory_bytes.to_string())?;
            unless_swap_is_not_counted(write("memory.swap.max", "0".to_owned()))
        }
        (Version::V1, Controller::Cpu) => {
            write("cpu.cfs_period_us", CPU_PERIOD_MICROS.to_string())?;
            write(main, quota.to_string())
        }
        (Version::V2, Controller::Cpu) => write(main, format!("{quota} {CPU_PERIOD_MICROS}")),
    }
}

/// A kernel that does not count swap has no file for its limit. Where the host has swap, the limit on memory is none.
fn unless_swap_is_not_counted(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::read_to_string("/proc/swaps") {
            Ok(swaps) => swapless(&swaps),
            // A kernel without swap has no list either.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        },
        written => written,
    }
}

/// From the kernel's list: a line of titles, and one for each swap space.
fn swapless(swaps: &str) -> io::Result<()> {
    if swaps.lines().nth(1).is_none() {
        return Ok(());
    }
    Err(io::Error::other("the kernel does not count swap by group: boot it with swapaccount=1, or turn swap off"))
}

fn read(folder: &Path, controller: Controller, version: Version, usage: &mut GroupUsage) {
    let number = |file: &str| -> Option<u64> { fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok() };
    match (version, controller) {
        (_, Controller::Pids) => usage.refused_processes = counter(folder, "pids.events", "max"),
        (version, Controller::Cpu) => {
            let time = if version == Version::V1 { "throttled_time" } else { "throttled_usec" };
            usage.throttled = counter(folder, "cpu.stat", "nr_throttled") > 0 || counter(folder, "cpu.stat", time) > 0;
        }
        (Version::V1, Controller::Memory) => {
            usage.peak_bytes = number("memory.max_usage_in_bytes");
            usage.killed_for_memory = counter(folder, "memory.oom_control", "oom_kill");
        }
        (Version::V2, Controller::Memory) => {
            // Linux 5.19 and newer; before, the shim's own count of its children is taken.
            usage.peak_bytes = number("memory.peak");
            usage.killed_for_memory = counter(folder, "memory.events", "oom_kill");
        }
    }
}

/// The number after a word in a file of lines `word number`.
fn counter(folder: &Path, file: &str, word: &str) -> u64 {
    let Ok(mut opened) = File::open(folder.join(file)) else { return 0 };
    let mut text = String::new();
    if io::Read::read_to_string(&mut opened, &mut text).is_err() {
        return 0;
    }
    let value = text.lines().find_map(|line| line.split_once(' ').filter(|(key, _)| *key == word));
    value.and_then(|(_, value)| value.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::process::{Command, Stdio};

    use super::*;
    use crate::Profile;
    use crate::cgroup::harness::{TestFolder, unified_mount};
    use crate::cgroup::unified;
    use crate::sys;

    fn version_2(folder: &Path, controllers: &[Controller]) -> Vec<Parent> {
        let parent = |controller: &Controller| Parent {
            controller: *controller,
            version: Version::V2,
            folder: folder.to_owned(),
        };
        controllers.iter().map(parent).collect()
    }

    /// A folder of plain files stands for the kernel's: what is written can be read.
    #[test]
    fn version_2_gets_its_limits_in_one_folder() {
        let root = std::env::temp_dir().join(format!("interlock-cgroup-{}", std::process::id()));
        let one = root.join("one");
        fs::create_dir_all(&one).unwrap();
        for file in ["pids.max", "memory.max", "memory.swap.max", "cpu.max", "cgroup.kill"] {
            fs::write(one.join(file), "").unwrap();
        }
        let limits = Profile::ProdCritical.spec().limits;
        for parent in version_2(&root, &Controller::ALL) {
            set(&one, &parent, &limits).unwrap();
        }
        let group = Group { folders: vec![(one.clone(), Controller::ALL.to_vec(), Version::V2)] };
        let read = |file: &str| fs::read_to_string(one.join(file)).unwrap();
        assert_eq!(read("pids.max"), "64");
        assert_eq!(read("memory.max"), (512 << 20).to_string());
        assert_eq!(read("memory.swap.max"), "0");
        assert_eq!(read("cpu.max"), "50000 100000");
        assert_eq!(group.usage().peak_bytes, None, "a kernel before 5.19 does not tell it");
        fs::write(one.join("memory.peak"), "4096\n").unwrap();
        fs::write(one.join("memory.events"), "low 0\noom_kill 2\n").unwrap();
        fs::write(one.join("cpu.stat"), "nr_periods 9\nnr_throttled 3\n").unwrap();
        let usage = group.usage();
        assert_eq!((usage.peak_bytes, usage.killed_for_memory, usage.throttled), (Some(4096), 2, true));
        group.kill();
        assert_eq!(read("cgroup.kill"), "1");
        let own = rustix::process::getpid();
        assert_eq!(group.not_joined_by(own), Some(Control::CgroupPids), "it has no members yet");
        fs::write(one.join("cgroup.procs"), format!("1\n{}\n", own.as_raw_nonzero())).unwrap();
        assert_eq!(group.not_joined_by(own), None);
        let seen: Vec<(Control, Option<String>)> =
            group.joined(false).into_iter().map(|joined| (joined.control, joined.name)).collect();
        let named = |control| (control, Some("one".to_owned()));
        assert_eq!(seen, [Control::CgroupPids, Control::CgroupMemory, Control::CgroupCpu].map(named));
        // A controller that was turned off has taken its file with it.
        fs::remove_file(one.join("cpu.max")).unwrap();
        let cpu = &version_2(&root, &[Controller::Cpu])[0];
        assert_eq!(set(&one, cpu, &limits).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_host_with_swap_that_the_kernel_does_not_count_has_no_limit_on_memory() {
        let titles = "Filename\tType\tSize\tUsed\tPriority\n";
        swapless(titles).unwrap();
        assert!(swapless(&format!("{titles}/swap.img file 1048572 0 -2\n")).is_err());
        // Asked to create a file, the kernel speaks of permission: a missing file must be told from that.
        let base = TestFolder::make(&unified_mount(), "swap");
        let missing = write_existing(&base.path().join("no.such.file"), "0").unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    /// A group of the kernel's, with limits where this host has the controllers in version 2.
    #[test]
    fn a_real_group_of_version_2_is_joined_killed_and_removed() {
        let base = TestFolder::make(&unified_mount(), "group");
        let found = unified::parent(&[base.path().to_owned()]);
        let controllers = found.map(|(_, controllers)| controllers).unwrap_or_default();
        let parents = version_2(base.path(), &controllers);
        let mut group = Group::create(&parents, "one", &Profile::ProdCritical.spec().limits).unwrap();
        let folder = base.path().join("one");
        if parents.is_empty() {
            fs::create_dir(&folder).unwrap();
            group.folders.push((folder.clone(), Vec::new(), Version::V2));
        } else {
            let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap().trim().to_owned();
            assert_eq!((read("pids.max"), read("cpu.max")), ("64".to_owned(), "50000 100000".to_owned()));
            assert_eq!(read("memory.max"), (512 << 20).to_string());
        }

        // One that left its parent and its session, one that is stopped, and the shell that waits.
        let script = "(setsid sleep 600 &); sleep 600 & kill -STOP $!; echo ready; wait";
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped());
        let doors = group.doors().unwrap();
        sys::before_exec(&mut command, move || doors.enter(false));
        let mut shell = command.spawn().unwrap();
        let mut output = BufReader::new(shell.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let members = fs::read_to_string(folder.join("cgroup.procs")).unwrap();
        assert!(members.lines().any(|process| process == shell.id().to_string()), "{members}");
        assert!(members.lines().count() >= 3, "{members}");
        assert_eq!(group.not_joined_by(Pid::from_child(&shell)), None);
        let error = fs::remove_dir(&folder).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ResourceBusy, "a group with processes stays");

        group.kill();
        // The end of the output: none of the three has it open any more.
        output.read_to_string(&mut line).unwrap();
        let ended = std::os::unix::process::ExitStatusExt::signal(&shell.wait().unwrap());
        assert_eq!(ended, Some(9));
        drop(group);
        let pause = rustix::thread::Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        let is_gone = (0..100).any(|_| {
            let gone = !folder.exists();
            if !gone {
                let _ = rustix::thread::nanosleep(&pause);
            }
            gone
        });
        assert!(is_gone, "{}", folder.display());
    }
}
