//! Attempts to get out of a sandbox, as data. Each must succeed outside and fail inside; one that fails outside proves
//! nothing.

mod files;
mod kernel;
mod limits;
mod network;
mod processes;

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use crate::ground::Ground;
use crate::raw::{self, ChildEnd};

pub struct Attempt {
    pub name: &'static str,
    /// Profiles that do not promise to stop it.
    pub allowed_in: &'static [&'static str],
    pub who: Privilege,
    /// What the attempt is on, where not every host has it.
    pub needs: Option<&'static str>,
    pub act: fn(&Ground) -> io::Result<()>,
}

/// Who can do it outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    AnyUser,
    Root,
}

pub const fn attempt(name: &'static str, act: fn(&Ground) -> io::Result<()>) -> Attempt {
    Attempt { name, allowed_in: &[], who: Privilege::AnyUser, needs: None, act }
}

impl Attempt {
    pub const fn allowed_in(mut self, profiles: &'static [&'static str]) -> Self {
        self.allowed_in = profiles;
        self
    }

    pub const fn needs(mut self, path: &'static str) -> Self {
        self.needs = Some(path);
        self
    }

    /// Whether it can be tried outside.
    pub fn is_possible(&self, is_root: bool) -> bool {
        (is_root || self.who == Privilege::AnyUser) && self.needs.is_none_or(|path| std::path::Path::new(path).exists())
    }

    pub const fn by_root(mut self) -> Self {
        self.who = Privilege::Root;
        self
    }
}

/// What came of one attempt.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Result {
    pub name: String,
    pub done: bool,
    pub how: String,
}

pub fn all() -> impl Iterator<Item = &'static Attempt> {
    [files::ATTEMPTS, processes::ATTEMPTS, network::ATTEMPTS, kernel::ATTEMPTS, limits::ATTEMPTS].into_iter().flatten()
}

/// Tries everything, each in a process of its own, and prints a line for each.
pub fn run_all(ground: &str) {
    let ground: Ground = serde_json::from_str(ground).expect("the ground is JSON");
    for attempt in all() {
        let result = try_one(attempt, &ground);
        let line = serde_json::to_string(&result).expect("a result is JSON");
        writeln!(io::stdout(), "{line}").expect("stdout is read");
    }
}

pub fn try_one(attempt: &Attempt, ground: &Ground) -> Result {
    // For a machine that is busy with other things: an attempt that is held takes a moment.
    const SECONDS: u32 = 60;
    let ended = raw::in_child(SECONDS, || match (attempt.act)(ground) {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().filter(|code| (1..=200).contains(code)).unwrap_or(255),
    });
    let (done, how) = match ended {
        Ok(ChildEnd::Code(0)) => (true, "done".to_owned()),
        Ok(ChildEnd::Code(255)) => (false, "refused".to_owned()),
        Ok(ChildEnd::Code(code)) => (false, io::Error::from_raw_os_error(code).to_string()),
        // Its own alarm: it was slow, not refused.
        Ok(ChildEnd::Signal(libc::SIGALRM)) => (false, "not tried: too slow".to_owned()),
        Ok(ChildEnd::Signal(signal)) => (false, format!("killed by signal {signal}")),
        Err(error) => (false, format!("not tried: {error}")),
    };
    Result { name: attempt.name.to_owned(), done, how }
}

/// An attempt that got an answer, but not the one that it needed.
pub fn in_vain() -> io::Error {
    io::Error::other("in vain")
}

pub fn check(success: bool) -> io::Result<()> {
    if success { Ok(()) } else { Err(in_vain()) }
}
