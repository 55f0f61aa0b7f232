//! What the sandbox of commands stands on. A missing control means that commands are refused, never that they run
//! with less; so these are warnings here.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::Finding;

pub fn look() -> Vec<Finding> {
    vec![namespaces(), seccomp(), landlock(), cgroups(), bubblewrap()]
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn namespaces() -> Finding {
    const CHECK: &str = "user namespaces";
    if read("/proc/sys/user/max_user_namespaces").as_deref() == Some("0") {
        return Finding::warning(CHECK, "turned off", "sysctl -w user.max_user_namespaces=15000");
    }
    if read("/proc/sys/kernel/unprivileged_userns_clone").as_deref() == Some("0") {
        return Finding::warning(CHECK, "only for root", "sysctl -w kernel.unprivileged_userns_clone=1");
    }
    if read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").as_deref() == Some("1") {
        let fix = "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for bwrap";
        return Finding::warning(CHECK, "held back by AppArmor", fix);
    }
    // The settings may allow it and a container around this process may not: trying is the only answer.
    let tried = Command::new("unshare")
        .args(["--user", "--map-root-user", "true"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match tried {
        Ok(status) if status.success() => Finding::ok(CHECK, "can be made"),
        Ok(_) => Finding::warning(CHECK, "refused", "run outside of the container, or allow it user namespaces"),
        Err(_) if Path::new("/proc/self/ns/user").exists() => {
            Finding::warning(CHECK, "the kernel has them; whether they may be used was not tried", "install util-linux")
        }
        Err(_) => Finding::warning(CHECK, "not in this kernel", "use a kernel with CONFIG_USER_NS"),
    }
}

fn seccomp() -> Finding {
    const CHECK: &str = "seccomp";
    match read("/proc/sys/kernel/seccomp/actions_avail") {
        Some(actions) if actions.contains("kill_process") => Finding::ok(CHECK, "filters can be loaded"),
        Some(_) => Finding::warning(CHECK, "too old to end a process", "use Linux 4.14 or newer"),
        None if read("/proc/self/status").is_some_and(|status| status.contains("Seccomp:")) => {
            Finding::ok(CHECK, "in this kernel")
        }
        None => Finding::warning(CHECK, "not in this kernel", "use a kernel with CONFIG_SECCOMP_FILTER"),
    }
}

fn landlock() -> Finding {
    const CHECK: &str = "landlock";
    match read("/sys/kernel/security/lsm") {
        Some(modules) if modules.split(',').any(|module| module == "landlock") => Finding::ok(CHECK, "on"),
        Some(modules) => {
            let fix = format!("boot with lsm=landlock,{modules} (Linux 5.13 or newer)");
            Finding::warning(CHECK, "off", fix)
        }
        None => Finding::warning(
            CHECK,
            "cannot be seen from here: securityfs is not mounted",
            "mount -t securityfs none /sys/kernel/security",
        ),
    }
}

fn cgroups() -> Finding {
    const CHECK: &str = "cgroups";
    const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];
    match read("/sys/fs/cgroup/cgroup.controllers") {
        Some(controllers) => {
            let missing: Vec<_> =
                CONTROLLERS.into_iter().filter(|wanted| !controllers.split(' ').any(|name| name == *wanted)).collect();
            if missing.is_empty() {
                Finding::ok(CHECK, "version 2, with cpu, memory and pids")
            } else {
                let fix = "let systemd delegate them: Delegate=yes in the unit";
                Finding::warning(CHECK, format!("version 2, without {}", missing.join(", ")), fix)
            }
        }
        None if Path::new("/sys/fs/cgroup/memory").exists() => {
            Finding::warning(CHECK, "version 1", "boot with systemd.unified_cgroup_hierarchy=1 for version 2")
        }
        None => Finding::warning(CHECK, "not mounted", "mount -t cgroup2 none /sys/fs/cgroup"),
    }
}

fn bubblewrap() -> Finding {
    const CHECK: &str = "bubblewrap";
    match Command::new("bwrap").arg("--version").stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => {
            Finding::ok(CHECK, String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        _ => Finding::warning(CHECK, "not installed", "apt install bubblewrap, or dnf install bubblewrap"),
    }
}
