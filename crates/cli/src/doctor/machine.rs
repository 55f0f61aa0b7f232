//! What a server needs of the machine: a clock, disk space, open files, a free port.

use std::net::SocketAddr;
use std::path::Path;

use interlock_core::time::Timestamp;
use rustix::process::{Resource, getrlimit};
use tokio::net::TcpListener;

use super::Finding;
use crate::output::span;

/// This build did not exist before (2026-01-01).
const NOT_BEFORE: Timestamp = Timestamp(1_767_225_600_000);
const DISK_WARN_BYTES: u64 = 2 << 30;
const DISK_MIN_BYTES: u64 = 256 << 20;
/// A server with many workers and watchers needs a file for each.
const FILES_WARN: u64 = 4_096;

pub fn clock() -> Option<Finding> {
    let now = span::now();
    if now < NOT_BEFORE {
        let found = format!("it says {}", span::instant(now));
        return Some(Finding::problem("clock", found, "set the date: timedatectl set-ntp true"));
    }
    // systemd leaves this file once the clock has been set by the network.
    let synchronised = Path::new("/run/systemd/timesync/synchronized").exists();
    synchronised.then(|| Finding::ok("clock", "is set by the network"))
}

pub fn disk(data: &Path) -> Finding {
    // The folder may not be there yet: what counts is where it would be made.
    let existing = data.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    let existing = if existing.as_os_str().is_empty() { Path::new(".") } else { existing };
    let space = match rustix::fs::statvfs(existing) {
        Ok(space) => space,
        Err(error) => {
            let found = format!("{} cannot be looked at: {error}", existing.display());
            return Finding::warning("disk", found, "check the folder and its permissions");
        }
    };
    let free = space.f_bavail * space.f_frsize;
    let found = format!("{} MiB free for {}", free >> 20, data.display());
    let fix = "make room, or put the store elsewhere with --data";
    match free {
        0..DISK_MIN_BYTES => Finding::problem("disk", found, fix),
        DISK_MIN_BYTES..DISK_WARN_BYTES => Finding::warning("disk", found, fix),
        _ => Finding::ok("disk", found),
    }
}

pub fn files() -> Finding {
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < FILES_WARN => {
            let fix = "raise it for the server: ulimit -n 65536, or LimitNOFILE=65536 in its unit";
            Finding::warning("open files", format!("at most {limit}"), fix)
        }
        Some(limit) => Finding::ok("open files", format!("at most {limit}")),
        None => Finding::ok("open files", "without a limit"),
    }
}

pub async fn port(listen: SocketAddr) -> Finding {
    match TcpListener::bind(listen).await {
        Ok(_) => Finding::ok("port", format!("{listen} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            if ours(listen).await {
                return Finding::ok("port", format!("an Interlock server listens on {listen}"));
            }
            let fix = "stop what listens there (ss -ltnp), or choose another one with --listen";
            Finding::problem("port", format!("another program listens on {listen}"), fix)
        }
        Err(error) => Finding::problem("port", format!("{listen}: {error}"), "choose another address with --listen"),
    }
}

/// Whether an Interlock server listens there.
async fn ours(listen: SocketAddr) -> bool {
    // A server that speaks HTTPS tells so in plain words.
    let builder = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    let Ok(client) = builder.timeout(std::time::Duration::from_secs(2)).build() else {
        return false;
    };
    let answer = client.get(format!("http://{listen}/openapi.json")).send().await;
    match answer {
        Ok(response) if response.status() == reqwest::StatusCode::TEMPORARY_REDIRECT => true,
        Ok(response) => response.text().await.is_ok_and(|text| text.contains("\"Interlock\"")),
        Err(_) => false,
    }
}
