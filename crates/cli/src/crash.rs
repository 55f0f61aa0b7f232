//! How tests end this process at a failpoint. A release has no failpoints, and nothing of this.

use std::path::Path;

use interlock_core::failpoint::{self, Failpoint};
use rustix::process::{Signal, getpid, kill_process};

/// The folder in which a test leaves a file that is named like a failpoint.
const FOLDER: &str = "INTERLOCK_FAILPOINTS";

pub fn allow() {
    if failpoint::ENABLED {
        failpoint::arm(die_if_told);
    }
}

/// Dies where there is such a file. The process that removes it dies: it is for one process, once.
fn die_if_told(failpoint: Failpoint) {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    if std::fs::remove_file(Path::new(&folder).join(failpoint.as_str())).is_err() {
        return;
    }
    // As if the machine had failed: no destructor runs, nothing is flushed.
    let _ = kill_process(getpid(), Signal::KILL);
    loop {
        std::thread::park();
    }
}
