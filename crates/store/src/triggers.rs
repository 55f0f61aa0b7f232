//! Writes on schedules and webhooks.

use interlock_core::ids::{InboundId, OutboundId, OutboxId, ScheduleId, TenantId};
use interlock_core::json::{Hash, Json};
use interlock_core::state::IdempotencyState;
use interlock_core::time::Timestamp;
use interlock_core::trigger::Source;

use crate::inbound::{DeliveryRef, DeliveryRow, InboundRow};
use crate::outbound::{AttemptRow, NewMessage, OutboundRow};
use crate::schedules::{ScheduleRow, SlotRow};

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
