//! Rows of schedules and webhooks, and the writes on them.

use interlock_core::ids::{InboundId, OutboundId, OutboxId, RunId, ScheduleId, SignalId, TenantId};
use interlock_core::json::{Hash, Json};
use interlock_core::schedule::{DstPolicy, Overlap, SlotState};
use interlock_core::state::IdempotencyState;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::trigger::{EndpointState, Origin, Source};

/// What a schedule says.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleSpec {
    pub name: String,
    pub workflow: String,
    pub origin: Origin,
    pub cron: String,
    pub timezone: String,
    pub dst: DstPolicy,
    pub overlap: Overlap,
    pub catch_up: Millis,
    pub jitter: Millis,
    pub inputs: Json,
    pub workspace: String,
    pub paused: bool,
}

/// What starts a workflow at times.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleRow {
    pub tenant: TenantId,
    pub id: ScheduleId,
    pub spec: ScheduleSpec,
    pub note: Option<String>,
    /// The last slot that was dealt with.
    pub done_at: Timestamp,
    /// When to look again.
    pub next_at: Option<Timestamp>,
    pub last_run: Option<RunId>,
    pub revision: u64,
    pub created_at: Timestamp,
    pub created_by: Option<String>,
    pub updated_at: Timestamp,
}

/// What became of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotRow {
    pub slot_at: Timestamp,
    pub state: SlotState,
    pub run: Option<RunId>,
    pub note: Option<String>,
    pub at: Timestamp,
}

/// A sealed secret, and the one before it while that one still counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secrets {
    pub current: String,
    pub previous: Option<(String, Timestamp)>,
}

/// An address at which a tenant takes webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboundRow {
    pub tenant: TenantId,
    pub id: InboundId,
    pub name: String,
    pub source: Source,
    pub header: Option<String>,
    pub secondary: bool,
    pub paused: bool,
    pub secrets: Secrets,
    pub created_at: Timestamp,
    pub created_by: Option<String>,
}

/// No endpoint has this id.
const NO_ENDPOINT: InboundId = InboundId(uuid::Uuid::nil());

/// Names one delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRef {
    pub tenant: TenantId,
    pub endpoint: InboundId,
    pub key: String,
}

impl DeliveryRef {
    /// A signal that starts workflows is a delivery too, at no endpoint's address.
    pub fn of_signal(tenant: TenantId, signal: SignalId) -> Self {
        Self { tenant, endpoint: NO_ENDPOINT, key: signal.to_string() }
    }

    pub fn is_signal(&self) -> bool {
        self.endpoint == NO_ENDPOINT
    }

    /// Whom the key belongs to.
    pub fn client(&self) -> String {
        self.endpoint.to_string()
    }
}

/// What came in.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryRow {
    pub at: DeliveryRef,
    pub event: String,
    pub payload: Json,
    pub received_at: Timestamp,
    pub retry_at: Option<Timestamp>,
}

/// What came in, with the record of its key.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryRecord {
    pub delivery: DeliveryRow,
    pub state: IdempotencyState,
    pub attempts: u32,
    pub response: Option<Json>,
    pub error: Option<String>,
}

/// An address to which a tenant's events are sent.
#[derive(Debug, Clone, PartialEq)]
pub struct OutboundRow {
    pub tenant: TenantId,
    pub id: OutboundId,
    pub url: String,
    pub description: Option<String>,
    pub events: Option<Vec<String>>,
    pub workflows: Option<Vec<String>>,
    pub secrets: Secrets,
    pub state: EndpointState,
    pub note: Option<String>,
    pub fed_to: u64,
    pub fed_at: Timestamp,
    pub failing_since: Option<Timestamp>,
    pub created_at: Timestamp,
    pub created_by: Option<String>,
}

/// A message on its way to an endpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageRow {
    pub id: OutboxId,
    pub run: RunId,
    pub payload: Json,
    pub created_at: Timestamp,
    pub attempts: u32,
    pub next_at: Timestamp,
    pub delivered_at: Option<Timestamp>,
    pub dead_at: Option<Timestamp>,
    pub last_error: Option<String>,
}

/// One try to bring a message to its endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRow {
    pub attempt: u32,
    pub at: Timestamp,
    pub duration: Millis,
    pub status: Option<u16>,
    pub error: Option<String>,
    /// The beginning of the answer, escaped.
    pub excerpt: Option<String>,
}

/// A message to be queued.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMessage {
    pub id: OutboxId,
    pub run: RunId,
    pub payload: Json,
    /// Where it stands among the run's messages to this endpoint; at the same place the id decides.
    pub place: i64,
}

/// A message that was given up, of whatever kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    pub id: OutboxId,
    pub run: RunId,
    pub destination: String,
    pub created_at: Timestamp,
    pub attempts: u32,
    pub dead_at: Timestamp,
    pub error: Option<String>,
}

/// The destination of an endpoint's messages in the outbox.
pub fn destination(endpoint: OutboundId) -> String {
    format!("webhook:{endpoint}")
}

/// Writes on schedules and webhooks.
#[derive(Debug, Clone)]
pub enum TriggerOp {
    /// Answers `Stored`, or `Duplicate` where the name is taken.
    AddSchedule(ScheduleRow),
    /// Everything but identity, guarded by the revision that was read; with it what became of slots. Answers `Done`
    /// or `Gone`.
    ChangeSchedule {
        row: ScheduleRow,
        slots: Vec<SlotRow>,
    },
    RemoveSchedule {
        tenant: TenantId,
        schedule: ScheduleId,
    },
    /// Answers `Stored`, or `Duplicate` where the name is taken.
    AddInbound(InboundRow),
    /// Secrets, switches. Answers `Done` or `Gone`.
    ChangeInbound(InboundRow),
    RemoveInbound {
        tenant: TenantId,
        endpoint: InboundId,
    },
    /// The first step of every delivery: stores it, or says what became of the one before it. Answers `Begun`,
    /// `Finished`, `InFlight`, `Spent`, `Mismatch` or `Recent`.
    BeginDelivery {
        delivery: DeliveryRow,
        source: Source,
        request_hash: Hash,
        /// Deliveries that agree in it since then are one.
        fingerprint: Option<(Hash, Timestamp)>,
        /// The instant now, and until when this server alone may process it.
        now: Timestamp,
        lock_until: Timestamp,
    },
    /// Takes over a delivery that nobody finished. Answers like `BeginDelivery`; `Gone` where there is none.
    RetakeDelivery {
        at: DeliveryRef,
        now: Timestamp,
        lock_until: Timestamp,
    },
    /// Answers `Done`, or `Gone` where another attempt has taken it over.
    FinishDelivery {
        at: DeliveryRef,
        attempt: u32,
        state: IdempotencyState,
        response: Option<Json>,
        error: Option<String>,
        now: Timestamp,
        expires_at: Timestamp,
        retry_at: Option<Timestamp>,
    },
    AddOutbound(OutboundRow),
    /// Everything but identity; the feed's position only forward. Answers `Done` or `Gone`.
    ChangeOutbound(OutboundRow),
    /// Messages that are still on their way end with it.
    RemoveOutbound {
        tenant: TenantId,
        endpoint: OutboundId,
        at: Timestamp,
    },
    /// Queues messages and moves the endpoint on in the feed, if it stands where it was read. Answers `Done` or `Gone`.
    Publish {
        tenant: TenantId,
        endpoint: OutboundId,
        from: u64,
        to: u64,
        messages: Vec<NewMessage>,
        at: Timestamp,
    },
    /// Queues messages again, under new ids. Answers `Done`.
    Replay {
        tenant: TenantId,
        endpoint: OutboundId,
        messages: Vec<NewMessage>,
        at: Timestamp,
    },
    /// Sends messages again that were given up. Answers `Count`.
    ReplayDead {
        tenant: TenantId,
        ids: Vec<OutboxId>,
        at: Timestamp,
    },
    /// Takes a due message for one sender. Answers `Done`, or `Gone` where another has it.
    TakeMessage {
        tenant: TenantId,
        id: OutboxId,
        attempts: u32,
        now: Timestamp,
        until: Timestamp,
    },
    /// The log of one try, and what it says about the endpoint.
    LogAttempt {
        tenant: TenantId,
        endpoint: OutboundId,
        message: OutboxId,
        attempt: AttemptRow,
    },
    /// An endpoint that has failed for too long. Answers `Done` or `Gone`.
    DisableOutbound {
        tenant: TenantId,
        endpoint: OutboundId,
        note: String,
    },
}
