//! The calls of a worker. Each is safe to repeat: a repeat gets the first answer.
//!
//! A worker registers ([`WorkerHello`]) and gets a session with a lease. It renews the lease with one [`Heartbeat`],
//! however many attempts it holds, asks for work with [`Poll`], and hands in each result with [`Complete`], whose
//! answer may carry the run's next step. Around an effect it sends an intent before and an outcome after; what a step writes
//! while it runs goes in batches, each answered before the next. A session
//! that is over may still report what became of what it held. A run whose commands share a directory is offered with the
//! answer to a poll; the worker looks whether it could run all of them, and takes it or says why not ([`OfferAnswer`]).

use interlock_core::ids::SessionId;
use interlock_core::time::Millis;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use interlock_core::work::fault::CanaryReport;
pub use interlock_core::work::offer::{OfferAnswer, OfferVerdict, OfferedCommand, RunOffer, RunRef};
pub use interlock_core::work::output::{OutputBatch, OutputChunk, OutputStream, OutputTaken};
pub use interlock_core::work::{
    Assignment, AttemptRef, EffectAnswer, EffectIntent, EffectOutcome, OutboundMessage, Report, ReportedOutcome,
    WorkerHello,
};

/// Where the calls live. `{session}` is the id of the worker session.
pub mod path {
    pub const REGISTER: &str = "/api/v1/agent/register";
    pub const HEARTBEAT: &str = "/api/v1/agent/heartbeat";
    pub const POLL: &str = "/api/v1/agent/poll";
    pub const COMPLETE: &str = "/api/v1/agent/{session}/complete-step";
    pub const EFFECTS: &str = "/api/v1/agent/{session}/effects";
    pub const OUTCOMES: &str = "/api/v1/agent/{session}/outcomes";
    pub const OUTPUT: &str = "/api/v1/agent/{session}/output";
    pub const ASSIGNMENTS: &str = "/api/v1/agent/{session}/assignments";
    pub const UNREGISTER: &str = "/api/v1/agent/unregister";
    /// A WebSocket that carries all of the above, as [`crate::channel`] has it.
    pub const CHANNEL: &str = "/api/v1/agent/channel";
    /// What a worker needs to make them over a broker, as [`crate::broker`] has it.
    pub const BROKER: &str = "/api/v1/agent/broker";
}

/// Bounds of the worker calls.
pub mod limits {
    use interlock_core::time::Millis;

    /// Slots of one worker, and so the attempts of one heartbeat and the assignments of one poll.
    pub const SLOTS_MAX: u32 = 10_000;
    /// Queues that one worker serves.
    pub const QUEUES_MAX: usize = 64;
    /// Tasks that one worker names.
    pub const TASKS_MAX: usize = 1_000;
    /// Capabilities that one worker names.
    pub const CAPABILITIES_MAX: usize = 64;
    /// Labels of one worker.
    pub const LABELS_MAX: usize = 32;
    /// Runs whose directories one worker keeps.
    pub const KEPT_RUNS_MAX: usize = 1_000;
    /// How long a poll may wait for work.
    pub const POLL_WAIT_MAX: Millis = Millis::from_secs(60);
}

/// The answer to a registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Registered {
    pub session: SessionId,
    /// How long the session lives without a heartbeat.
    pub lease_ms: Millis,
    /// How often the worker is to renew it.
    pub renew_every_ms: Millis,
    /// The store's epoch: it rises when a backup is restored.
    pub epoch: u64,
    /// Fields of later calls that this server takes besides those of the first release, as in [`Renewed`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub takes: Vec<String>,
}

/// Renews the session's lease, and says what the worker holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    pub session: SessionId,
    #[serde(default)]
    pub held: Vec<AttemptRef>,
    /// The worker finishes what it holds and takes nothing new.
    #[serde(default)]
    pub draining: bool,
    /// The runs whose directories it keeps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keeps: Vec<RunRef>,
    /// What became of its canaries, where an answer has asked for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanaryReport>,
    /// How long the last heartbeat took to be answered, where that answer said that the server takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_ms: Option<Millis>,
}

/// The answer to a [`Heartbeat`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Renewed {
    pub lease_ms: Millis,
    /// Attempts that are to stop: their run is being canceled, or they have been given to another worker.
    #[serde(default)]
    pub stop: Vec<AttemptRef>,
    /// False if the session is gone: the worker registers again and drops what it held.
    pub known: bool,
    /// An operator takes the worker out of service: it finishes what it has, takes nothing new, and leaves.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drain: bool,
    /// Why the worker is given nothing, where that is not for want of work: for people to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// Of the runs whose directories it keeps, those that are not its own any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over: Vec<RunRef>,
    /// The worker is `errored`: it tries the controls of its sandbox out again, and says with its next heartbeat what became of
    /// that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prove: bool,
    /// Fields that this server takes besides those of the first release: `round_trip_ms` of a heartbeat, and `poll.round_trip_ms`
    /// of a poll.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub takes: Vec<String>,
}

/// The field of a heartbeat that says how long the last one took.
pub const ROUND_TRIP: &str = "round_trip_ms";
/// The same of a poll.
pub const POLL_ROUND_TRIP: &str = "poll.round_trip_ms";

/// The fields that servers of this release take besides those of the first one.
pub fn further_fields() -> Vec<String> {
    vec![ROUND_TRIP.to_owned(), POLL_ROUND_TRIP.to_owned()]
}

/// Asks for work, and waits for it for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Poll {
    pub session: SessionId,
    /// How many slots are free, at least one: no more steps than that are given.
    pub max: u32,
    /// How long the answer may take if there is nothing to do.
    #[serde(default)]
    pub wait_ms: Millis,
    /// How long the last registration or heartbeat took to be answered, where that answer said that the server takes it: the server
    /// that gives out steps may be another than the one that hears heartbeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_ms: Option<Millis>,
}

/// The answer to a [`Poll`]; empty when nothing came in time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Polled {
    pub assignments: Vec<Assignment>,
    /// Runs that the worker is asked to take as a whole. Only workers with the capability `workdir` get any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<RunOffer>,
    /// Why there is nothing, where that is not for want of work: for people to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// Hands in what became of an attempt. Over HTTP the session stands in the path and the report is the body.
#[derive(Debug, Clone, PartialEq)]
pub struct Complete {
    pub session: SessionId,
    pub report: Report,
}

/// The answer to a [`Complete`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Completed {
    /// The run's next step, claimed for this session in the commit that recorded the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Assignment>,
    /// False if the report had been recorded before: this is the first answer again.
    pub recorded: bool,
}

/// Ends a session. What it still holds is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Unregister {
    pub session: SessionId,
}
