//! Attempts to use more processes, memory and the like than the profile allows.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use super::{Attempt, attempt};
use crate::raw::{address, call, fork_off, take_memory};

pub const ATTEMPTS: &[Attempt] = &[
    attempt("start more processes than allowed", |g| {
        let mut children = Vec::new();
        let mut last = Ok(());
        for _ in 0..g.pids + 16 {
            match fork_off(|| drop(call(libc::SYS_pause, &[]))) {
                Ok(child) => children.push(child),
                Err(error) => last = Err(error),
            }
            if last.is_err() {
                break;
            }
        }
        for child in children {
            call(libc::SYS_kill, &[child as usize, libc::SIGKILL as usize])?;
            call(libc::SYS_wait4, &[child as usize, 0, 0, 0])?;
        }
        last
    }),
    attempt("take more memory than allowed", |g| take_memory(g.memory_bytes + (64 << 20)))
        .allowed_in(&["staging-standard", "dev-flex"]),
    attempt("write more to /tmp than allowed", |g| {
        let path = format!("{}/large", g.scratch);
        let file = File::create(&path)?;
        let filled = call(libc::SYS_fallocate, &[file.as_raw_fd() as usize, 0, 0, g.tmp_bytes + (1 << 20)]);
        std::fs::remove_file(&path)?;
        filled.map(drop)
    }),
    attempt("open more files than allowed", |g| {
        let limit = [16_384_u64, 16_384];
        // Refused where the limit is a hard one; what counts is what can be opened.
        let _ = call(libc::SYS_prlimit64, &[0, libc::RLIMIT_NOFILE as usize, address(&limit), 0]);
        let files: io::Result<Vec<File>> = (0..g.open_files + 16).map(|_| File::open("/dev/null")).collect();
        files.map(drop)
    }),
];
