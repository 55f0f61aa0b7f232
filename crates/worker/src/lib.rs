//! The agent that runs steps.
//!
//! [`Tasks`] holds user code under the names that workflows use; a [`Worker`] takes them, a
//! [`Transport`](interlock_protocol::transport::Transport) and [`WorkerOptions`], and runs until it is told to stop.
//! Each attempt of a step gets a [`TaskContext`]: who it is, what woke it, whether it is still wanted, and
//! [`TaskContext::effect`], through which it acts on other systems at most once.
//!
#![doc = concat!("```ignore\n", include_str!("../examples/tasks.rs"), "```")]
//!
//! Time comes from tokio and randomness from [`WorkerOptions::seed`], so a simulation can replay a worker.

mod attempt;
mod broker;
mod channel;
mod context;
mod effect;
mod error;
mod executors;
pub mod http;
mod lease;
mod outage;
mod output;
mod port;
mod preflight;
mod renew;
mod retry;
mod run_secrets;
mod session;
mod task;
mod trace;
mod workdirs;
mod worker;

pub use context::TaskContext;
pub use error::{EffectFailure, Happened, TaskError};
pub use executors::command::{CommandOptions, Commands};
pub use executors::connector::{Connectors, ProbePauses};
pub use executors::program::ExecTask;
pub use http::{HttpTransport, TransportOptions, WorkerCredential};
pub use interlock_broker::{BrokerAddress, InvalidAuthority, InvalidBroker};
pub use interlock_core::cost::Cost;
pub use task::{Flow, IntoFlow, Task, Tasks, WaitFor};
pub use worker::{Worker, WorkerError, WorkerOptions};

/// The name of a session's own bounds and pauses, in one place.
mod limits {
    use std::time::Duration;

    /// An effect is sent only while at least this much of the lease is left.
    pub const SEND_MARGIN: Duration = Duration::from_secs(5);
    /// One call to the engine; a poll may take as much longer as it waits for work.
    pub const CALL_TIMEOUT: Duration = Duration::from_secs(10);
    /// The largest answer that is read: a full poll of large inputs.
    pub const ANSWER_BYTES_MAX: usize = 64 << 20;
    /// How long the result of an attempt is offered to a server that does not answer. Expiry of the lease does
    /// not invalidate it: the attempt may still be the current one when the server is back.
    pub const REPORT_PATIENCE: Duration = Duration::from_mins(10);
    /// How long calls go by HTTP after a server has declined a channel.
    pub const CHANNEL_PAUSE: Duration = Duration::from_mins(1);
    /// How long a poll over the broker waits: the answer may be lost, and is missed only then.
    pub const BROKER_POLL_WAIT: Duration = Duration::from_secs(5);
    /// How long an answer over the broker may take before its call is written again, at first and at last.
    pub const BROKER_PATIENCE: Duration = Duration::from_millis(300);
    pub const BROKER_PATIENCE_MAX: Duration = Duration::from_secs(3);
    /// Between two reads of a stream that is not there.
    pub const BROKER_PAUSE: Duration = Duration::from_millis(50);
    /// The first pause after a call without an answer, and the longest.
    pub const BACKOFF_FIRST: Duration = Duration::from_millis(100);
    pub const BACKOFF_MAX: Duration = Duration::from_secs(5);
    /// A renewal that got no answer is repeated after this long: the lease must survive two that are lost.
    pub const RENEWAL_PAUSE: Duration = Duration::from_secs(1);
    /// The least time between two polls that brought nothing.
    pub const EMPTY_POLL_PAUSE: Duration = Duration::from_millis(50);
    /// What an attempt has written and the server has not got yet. Who writes more waits for so long, then it is lost.
    pub const OUTPUT_PENDING_MAX: usize = 512 << 10;
    pub const OUTPUT_ROOM_WAIT: Duration = Duration::from_secs(10);
    /// Between two batches of an attempt, so that many small pieces become one.
    pub const OUTPUT_PAUSE: Duration = Duration::from_millis(20);
    /// How long an attempt that has ended waits for its output to arrive.
    pub const OUTPUT_FLUSH: Duration = Duration::from_secs(15);
    /// What is kept of standard error for an error's message.
    pub const STDERR_TAIL_BYTES: usize = 4 << 10;
    /// How much of it the message has.
    pub const STDERR_TAIL_CHARS: usize = 2_000;
    /// Runs whose directories one worker keeps at once; an offer beyond that is refused.
    pub const WORKDIRS_MAX: usize = 64;
    /// What one such directory may hold when a command begins.
    pub const WORKDIR_BYTES_MAX: u64 = 4 << 30;
    /// After the last grace period, how long the final reports may take.
    pub const FINAL_REPORTS: Duration = Duration::from_secs(5);
}
