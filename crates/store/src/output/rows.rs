use interlock_core::time::Timestamp;
use interlock_core::work::output::OutputStream;

/// A stored chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputRow {
    pub attempt: u32,
    pub seq: u64,
    pub stream: OutputStream,
    pub text: String,
    /// When it was stored.
    pub at: Timestamp,
}

/// How far an attempt's output has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputHead {
    pub position: u32,
    pub attempt: u32,
    pub next_seq: u64,
    pub bytes: u64,
    pub cut: bool,
    pub began_at: Timestamp,
    pub last_at: Timestamp,
}

/// A place in a step's output: behind this chunk of this attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OutputPlace {
    pub attempt: u32,
    pub seq: u64,
}
