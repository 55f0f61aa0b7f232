use interlock_core::ids::{RunId, ScheduleId, TenantId};
use interlock_core::json::Json;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::trigger::Origin;
use interlock_core::trigger::schedule::{DstPolicy, Overlap, SlotState};

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
    /// A person, or the id of a key that no person owns.
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
