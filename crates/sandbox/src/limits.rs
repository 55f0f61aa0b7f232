//! Bounds that hold whatever the profile.

use std::time::Duration;

pub const ARGUMENTS_MAX: usize = 1024;
pub const ARGUMENT_BYTES_MAX: usize = 64 << 10;
pub const ENVIRONMENT_MAX: usize = 128;
pub const ENVIRONMENT_BYTES_MAX: usize = 64 << 10;
pub const READ_ONLY_PATHS_MAX: usize = 64;
pub const SECRETS_MAX: usize = 32;
/// What fits a pipe whole: a secret is written before bubblewrap makes its file.
pub const SECRET_BYTES_MAX: usize = 64 << 10;
/// Shorter values would be found everywhere.
pub const SECRET_BYTES_MIN: usize = 4;
pub const EGRESS_TARGETS_MAX: usize = 64;
pub const EGRESS_CONNECTIONS_MAX: usize = 32;
pub const EGRESS_HEAD_BYTES_MAX: usize = 8 << 10;
pub const EGRESS_HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// A chunk is sent when it has this many bytes, or this old.
pub const CHUNK_BYTES: usize = 16 << 10;
pub const CHUNK_AGE: Duration = Duration::from_millis(50);
/// Chunks that wait for their reader. The command is held up after that.
pub const CHUNKS_WAITING_MAX: usize = 64;

/// From the start of bubblewrap to the attestation.
pub const START_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a command lives without renewals, at most.
pub const WATCHDOG: Duration = Duration::from_secs(15);
/// The shim's own clock runs this much longer than the worker's.
pub const SHIM_WALL_GRACE: Duration = Duration::from_secs(5);
pub const TERMINATE_GRACE_MAX: Duration = Duration::from_mins(1);
/// How long a killed tree may take to be gone before that is an error worth a log line.
pub const KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a process that is about to end may take to be gone.
pub const DYING_TIMEOUT: Duration = Duration::from_secs(2);
/// What bubblewrap or the shim say when nothing was started.
pub const DIAGNOSIS_BYTES_MAX: usize = 4 << 10;
pub const STATUS_LINE_BYTES_MAX: usize = 16 << 10;
