//! Files of the host: those that are not shown, those that are shown read-only, and what else leads to them.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};

use super::{Attempt, attempt, check};
use crate::ground::Ground;
use crate::raw::{call, text};

/// Written files may be executed there.
const EXECUTES_WRITTEN: &[&str] = &["staging-standard", "dev-flex"];
const HAS_TERMINALS: &[&str] = &["dev-flex"];

pub const ATTEMPTS: &[Attempt] = &[
    attempt("read a hidden file", |g| read(&hidden(g, "file"))),
    attempt("write a hidden file", |g| append(&hidden(g, "file"))),
    attempt("list a hidden folder", |g| fs::read_dir(&g.hidden).map(drop)),
    attempt("enter a hidden folder", |g| std::env::set_current_dir(&g.hidden)),
    attempt("create a file in a hidden folder", |g| create(&hidden(g, "new"))),
    attempt("connect to a hidden socket", |g| UnixStream::connect(hidden(g, "socket")).map(drop)),
    attempt("open a hidden pipe", |g| {
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(hidden(g, "fifo")).map(drop)
    }),
    attempt("watch a hidden folder", |g| {
        let watch = call(libc::SYS_inotify_init1, &[0])?;
        let path = text(&g.hidden);
        call(libc::SYS_inotify_add_watch, &[watch, path.as_ptr() as usize, libc::IN_ALL_EVENTS as usize]).map(drop)
    }),
    attempt("read a hidden file by way of a link", |g| {
        let link = temporary(g, "link");
        symlink(hidden(g, "file"), &link)?;
        read(&link)
    }),
    attempt("read a hidden file by way of the parent of the root", |g| {
        read(&format!("/../../..{}", hidden(g, "file")))
    }),
    attempt("read a hidden file by a descriptor that was left open", |g| {
        let name = text("file");
        call(libc::SYS_openat, &[g.leaked as usize, name.as_ptr() as usize, 0]).map(drop)
    }),
    attempt("list a hidden folder by a descriptor that was left open", |g| {
        fs::read_dir(format!("/proc/self/fd/{}", g.leaked)).map(drop)
    }),
    attempt("read shared memory of the host", |g| read(&g.shared_file)),
    attempt("read the name of the host from its file", |_| read("/etc/hostname")).needs("/etc/hostname"),
    attempt("read the file systems of the host", |_| read("/etc/fstab")).needs("/etc/fstab"),
    attempt("read who has an account on the host", |_| check(fs::read_to_string("/etc/passwd")?.contains("daemon"))),
    attempt("see the devices of the host", |_| fs::read_dir("/sys/class").map(drop)),
    attempt("see the settings of the kernel's security", |_| fs::read_dir("/sys/kernel").map(drop)),
    attempt("see the state of the host's services", |_| fs::read_dir("/var/lib").map(drop)),
    attempt("see the host's logs", |_| fs::read_dir("/var/log").map(drop)),
    attempt("see the host's cgroups", |_| fs::read_dir("/sys/fs/cgroup").map(drop)),
    attempt("write a shown file", |g| append(&shown(g, "file"))),
    attempt("shorten a shown file", |g| {
        OpenOptions::new().write(true).truncate(true).open(shown(g, "other")).map(drop)
    }),
    attempt("create a file in a shown folder", |g| create(&shown(g, "new"))),
    attempt("create a nameless file in a shown folder", |g| {
        OpenOptions::new().write(true).custom_flags(libc::O_TMPFILE).open(&g.shown).map(drop)
    }),
    attempt("make a folder in a shown folder", |g| fs::create_dir(shown(g, "new-folder"))),
    attempt("remove a shown file", |g| {
        let name = shown(g, "removable");
        match create(&name) {
            Ok(()) => fs::remove_file(&name),
            Err(_) => fs::remove_file(shown(g, "other")),
        }
    }),
    attempt("rename a shown file", |g| {
        fs::rename(shown(g, "other"), shown(g, "renamed"))?;
        fs::rename(shown(g, "renamed"), shown(g, "other"))
    }),
    attempt("link to a shown file", |g| fs::hard_link(shown(g, "file"), shown(g, "hard"))),
    attempt("make a link in a shown folder", |g| symlink("file", shown(g, "soft"))),
    attempt("change the rights of a shown file", |g| {
        fs::set_permissions(shown(g, "file"), Permissions::from_mode(0o777))
    }),
    attempt("set an attribute of a shown file", |g| {
        let (path, name) = (text(&shown(g, "file")), text("user.mark"));
        let arguments = [path.as_ptr() as usize, name.as_ptr() as usize, name.as_ptr() as usize, 4, 0];
        call(libc::SYS_setxattr, &arguments).map(drop)
    }),
    attempt("set the times of a shown file", |g| {
        let path = text(&shown(g, "file"));
        call(libc::SYS_utimensat, &[libc::AT_FDCWD as usize, path.as_ptr() as usize, 0, 0]).map(drop)
    }),
    attempt("make a pipe in a shown folder", |g| {
        let path = text(&shown(g, "pipe"));
        let mode = (libc::S_IFIFO | 0o666) as usize;
        call(libc::SYS_mknodat, &[libc::AT_FDCWD as usize, path.as_ptr() as usize, mode, 0]).map(drop)
    }),
    attempt("listen in a shown folder", |g| UnixListener::bind(shown(g, "listener")).map(drop)),
    attempt("become root by a marked program", |g| run(&g.set_uid)),
    attempt("execute a written program", |g| {
        let copy = temporary(g, "program");
        fs::copy("/usr/bin/true", &copy)?;
        fs::set_permissions(&copy, Permissions::from_mode(0o755))?;
        run(&copy)
    })
    .allowed_in(EXECUTES_WRITTEN),
    attempt("execute a program from memory", |_| {
        let name = text("program");
        let file = call(libc::SYS_memfd_create, &[name.as_ptr() as usize, 0])?;
        let path = format!("/proc/self/fd/{file}");
        let mut program = Vec::new();
        File::open("/usr/bin/true")?.read_to_end(&mut program)?;
        OpenOptions::new().write(true).open(&path)?.write_all(&program)?;
        run(&path)
    })
    .allowed_in(EXECUTES_WRITTEN),
    attempt("open a terminal", |_| OpenOptions::new().read(true).write(true).open("/dev/ptmx").map(drop))
        .allowed_in(HAS_TERMINALS),
    attempt("read the host's passwords", |_| read("/etc/shadow")).by_root(),
    attempt("write to the system", |_| {
        create("/usr/interlock-probe")?;
        fs::remove_file("/usr/interlock-probe")
    })
    .by_root(),
    attempt("write to the root", |_| {
        create("/interlock-probe")?;
        fs::remove_file("/interlock-probe")
    })
    .by_root(),
    attempt("see root's home", |_| fs::read_dir("/root").map(drop)).by_root(),
    attempt("open the machine's memory", |_| File::open("/dev/mem").map(drop)).by_root().needs("/dev/mem"),
    attempt("open the hypervisor", |_| File::open("/dev/kvm").map(drop)).by_root().needs("/dev/kvm"),
    attempt("open the kernel's log", |_| {
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg").map(drop)
    })
    .by_root()
    .needs("/dev/kmsg"),
    attempt("make a device", |g| {
        let path = text(&temporary(g, "device"));
        let mode = (libc::S_IFCHR | 0o666) as usize;
        call(libc::SYS_mknodat, &[libc::AT_FDCWD as usize, path.as_ptr() as usize, mode, 0x0103]).map(drop)
    })
    .by_root(),
    attempt("open the setting for core dumps", |_| write_open("/proc/sys/kernel/core_pattern")).by_root(),
    attempt("join a cgroup of the host", |_| {
        let parent = if fs::exists("/sys/fs/cgroup/pids")? { "/sys/fs/cgroup/pids" } else { "/sys/fs/cgroup" };
        let folder = format!("{parent}/interlock-probe-{}", std::process::id());
        fs::create_dir(&folder)?;
        fs::remove_dir(&folder)
    })
    .by_root(),
    attempt("give a file away", |g| {
        let file = temporary(g, "given");
        create(&file)?;
        std::os::unix::fs::chown(&file, Some(1), Some(1))
    })
    .by_root(),
];

fn hidden(ground: &Ground, name: &str) -> String {
    format!("{}/{name}", ground.hidden)
}

fn shown(ground: &Ground, name: &str) -> String {
    format!("{}/{name}", ground.shown)
}

/// A path that can be written inside and outside.
fn temporary(ground: &Ground, name: &str) -> String {
    format!("{}/{name}", ground.scratch)
}

fn read(path: &str) -> io::Result<()> {
    let mut bytes = Vec::new();
    File::open(path)?.take(64).read_to_end(&mut bytes)?;
    Ok(())
}

fn append(path: &str) -> io::Result<()> {
    OpenOptions::new().append(true).open(path)?.write_all(b"x")
}

fn create(path: &str) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(path).map(drop)
}

fn write_open(path: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path).map(drop)
}

fn run(program: &str) -> io::Result<()> {
    check(std::process::Command::new(program).status()?.success())
}
