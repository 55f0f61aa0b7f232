//! What happened, line by line. All lines go into one hash: the same seed must give the same one.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// How many lines are kept for the report of a seed that fails.
const KEPT_MAX: usize = 400;

pub struct Trace {
    began: Instant,
    print: bool,
    written: Mutex<TraceLog>,
}

#[derive(Default)]
struct TraceLog {
    hash: DefaultHasher,
    line: String,
    kept: VecDeque<String>,
}

impl Trace {
    pub fn new(print: bool) -> Self {
        Self { began: Instant::now(), print, written: Mutex::default() }
    }

    /// Milliseconds of simulated time since the seed began.
    pub fn elapsed(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    pub fn say(&self, who: impl fmt::Display, what: fmt::Arguments<'_>) {
        use fmt::Write as _;
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let mut line = std::mem::take(&mut written.line);
        line.clear();
        let _ = write!(line, "{:>9} {who}: {what}", self.elapsed());
        written.hash.write(line.as_bytes());
        if self.print {
            println!("{line}");
        }
        if written.kept.len() == KEPT_MAX {
            written.line = written.kept.pop_front().unwrap_or_default();
        }
        written.kept.push_back(line);
    }

    pub fn hash(&self) -> u64 {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).hash.finish()
    }

    /// The last lines.
    pub fn tail(&self, lines: usize) -> String {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let skipped = written.kept.len().saturating_sub(lines);
        written.kept.iter().skip(skipped).fold(String::new(), |text, line| text + line + "\n")
    }
}

/// `say!(sim, who, "…", …)`: a line of the trace.
macro_rules! say {
    ($sim:expr, $who:expr, $($what:tt)+) => {
        $sim.trace.say($who, format_args!($($what)+))
    };
}
pub(crate) use say;
