//! A process whose time of day is wrong, while its monotonic clock is as good as ever: `clock.c`, loaded into it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The time of day that processes are given. They share it, and it may be set while they run.
#[derive(Clone)]
pub struct WrongClock {
    library: PathBuf,
    offset: PathBuf,
}

impl WrongClock {
    /// Keeps its files in the folder, where there may be several of different names.
    pub fn new(folder: &Path, name: &str, offset_ms: i64) -> Self {
        let library = folder.join("clock.so");
        if !library.exists() {
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kill/clock.c");
            let mut compiler = Command::new("cc");
            compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]).arg(&library).arg(source);
            assert!(compiler.status().expect("there is no C compiler: install cc").success(), "clock.c");
        }
        let clock = Self { library, offset: folder.join(format!("{name}.offset")) };
        clock.set(offset_ms);
        clock
    }

    /// Sets it, for the processes that run as well.
    pub fn set(&self, offset_ms: i64) {
        // Renamed into place: no process reads half a number.
        let next = self.offset.with_extension("next");
        std::fs::write(&next, offset_ms.to_string()).unwrap();
        std::fs::rename(next, &self.offset).unwrap();
    }

    pub fn give_to(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env("INTERLOCK_TEST_CLOCK", &self.offset);
    }
}
