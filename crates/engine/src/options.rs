//! How an engine is set up. Every figure has a default that suits a server; a simulation or a test shortens them.

use std::sync::Arc;

use interlock_core::limits;
use interlock_core::run::assignment::AssignmentTimes;
use interlock_core::time::Millis;
use interlock_evidence::SigningKey;
use interlock_evidence::limits::BUNDLE_BYTES_MAX;
use interlock_outbound::Outbound;
use interlock_store::Sweep;

use crate::clock::Clock;
use crate::deliver::Deliver;
use crate::dispatch::ready::GROUP_READY_MAX;
use crate::dispatch::shares::BUSY_FROM_PLACES;
use crate::ids::IdSource;
use crate::payloads::PayloadOptions;
use crate::policy::JudgedBy;
use crate::slack::NoticeOptions;
use crate::traces::TraceOptions;
use crate::vault::Vault;

/// How long the sealer waits for more, once something was committed.
pub const SEAL_EVERY: Millis = Millis(200);

#[derive(Clone)]
pub struct EngineOptions {
    pub clock: Clock,
    pub ids: IdSource,
    /// The lease of a worker session and how often it is renewed.
    pub session_lease: Millis,
    pub session_renewal: Millis,
    /// How long after the end of a worker's lease an effect of it may still happen.
    pub effect_settles_after: Millis,
    /// How long the search for a worker may take that has a run as a whole.
    pub assignment: Arc<AssignmentTimes>,
    /// How long a worker with a fault is given no command and no run, and one that was offline is asked after others.
    pub fault_pause: Millis,
    /// How often the reaper looks for lost sessions and stuck steps.
    pub reap_every: Millis,
    /// How often the store is scanned for ready runs that no hint told of.
    pub scan_every: Millis,
    pub seal_every: Millis,
    pub sweep_every: Millis,
    /// What a sweep keeps; its `now` is set at each sweep.
    pub retention: Option<Sweep>,
    /// Runs kept in memory while they are worked on.
    pub cells_max: usize,
    /// Ready runs of one group that are kept in memory; the rest waits in the store.
    pub ready_max: usize,
    /// A tenant that takes little counts as quiet where all together have taken so many places within the last second or two.
    pub busy_from_places: u64,
    /// Expressions run on a bounded pool, or in place where there are no threads (simulation).
    pub expressions_in_place: bool,
    /// How many expressions may be evaluated at once: the machine's cores, since they do nothing but compute.
    pub expressions_max: usize,
    /// Decides on every action before it may happen.
    pub judge: JudgedBy,
    /// The key of the secrets that the store keeps sealed; without it no webhook has a secret.
    pub vault: Option<Vault>,
    /// Signs the heads of the audit logs and the evidence bundles; without it there are none.
    pub audit_key: Option<SigningKey>,
    /// The longest evidence bundle that is made; a verifier takes none that is longer than the default.
    pub evidence_bytes_max: usize,
    /// The one client for calls to the outside; without it messages wait.
    pub outbound: Option<Outbound>,
    /// Brings messages to destinations that the engine does not know by itself.
    pub deliver: Arc<dyn Deliver>,
    pub outbox_attempts_max: u32,
    /// Where people are told of approvals.
    pub notices: NoticeOptions,
    /// Where payloads go that are too long for a row; without it all stand in their rows.
    pub payloads: Option<PayloadOptions>,
    /// What is kept of an attempt's output; the rest is cut, with a mark.
    pub output_kept_bytes: u64,
    /// Where traces of runs go; nowhere without it.
    pub traces: Option<TraceOptions>,
    /// Whether the numbers about runs carry the tenant's id.
    pub metrics_by_tenant: bool,
    /// Start the loops. A tool that only gives commands does without.
    pub loops: bool,
    /// The largest difference between this machine's clock and the database's at start.
    pub clock_skew_max: Millis,
}

impl EngineOptions {
    pub fn new(deliver: Arc<dyn Deliver>) -> Self {
        let clock = Clock::system();
        Self {
            ids: IdSource::new(clock.clone()),
            clock,
            session_lease: limits::SESSION_LEASE,
            session_renewal: limits::SESSION_RENEWAL,
            effect_settles_after: limits::EFFECT_SETTLES_AFTER,
            assignment: Arc::default(),
            fault_pause: limits::WORKER_FAULT_PAUSE,
            reap_every: Millis(1_000),
            scan_every: Millis(1_000),
            seal_every: SEAL_EVERY,
            sweep_every: Millis::from_mins(1),
            retention: None,
            cells_max: 16_384,
            ready_max: GROUP_READY_MAX,
            busy_from_places: BUSY_FROM_PLACES,
            expressions_in_place: false,
            expressions_max: std::thread::available_parallelism().map_or(2, usize::from),
            judge: JudgedBy::Policy,
            vault: None,
            audit_key: None,
            evidence_bytes_max: BUNDLE_BYTES_MAX,
            outbound: None,
            deliver,
            outbox_attempts_max: 12,
            notices: NoticeOptions::default(),
            payloads: None,
            output_kept_bytes: limits::OUTPUT_KEPT_BYTES,
            traces: None,
            metrics_by_tenant: false,
            loops: true,
            clock_skew_max: Millis::from_mins(5),
        }
    }
}
