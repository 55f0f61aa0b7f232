//! What is asked and answered about schedules.

use interlock_core::ids::{RunId, ScheduleId};
use interlock_core::json::Json;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::trigger::Origin;
use interlock_core::trigger::schedule::{CATCH_UP_DEFAULT, DstPolicy, Overlap, SlotState};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where the calls live. A schedule is named by its id or its name.
pub mod path {
    pub const SCHEDULES: &str = "/api/v1/schedules";
    pub const SCHEDULE: &str = "/api/v1/schedules/{schedule}";
    pub const PAUSE: &str = "/api/v1/schedules/{schedule}/pause";
    pub const RESUME: &str = "/api/v1/schedules/{schedule}/resume";
    pub const TRIGGER: &str = "/api/v1/schedules/{schedule}/trigger";
    pub const NEXT: &str = "/api/v1/schedules/{schedule}/next";
}

/// A schedule to be made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSchedule {
    /// Unique in the tenant.
    pub name: String,
    /// The workflow whose newest version is started.
    pub workflow: String,
    /// Minute, hour, day of month, month, day of week; seconds may stand in front.
    pub cron: String,
    /// A name of the IANA database; `UTC` where omitted.
    #[serde(default = "utc")]
    pub timezone: String,
    #[serde(default = "once")]
    pub dst: DstPolicy,
    #[serde(default = "skip")]
    pub overlap: Overlap,
    /// How old a slot may be that is made up for after an outage, in milliseconds.
    #[serde(default = "catch_up")]
    pub catch_up_ms: Millis,
    /// Each slot is delayed by a span up to this, in milliseconds.
    #[serde(default)]
    pub jitter_ms: Millis,
    /// What its runs are given; expressions see `trigger.slot`.
    #[serde(default = "nothing")]
    pub inputs: Json,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    #[serde(default)]
    pub paused: bool,
}

fn utc() -> String {
    "UTC".to_owned()
}

const fn once() -> DstPolicy {
    DstPolicy::Once
}

const fn skip() -> Overlap {
    Overlap::Skip
}

const fn catch_up() -> Millis {
    CATCH_UP_DEFAULT
}

fn nothing() -> Json {
    Json::trusted("{}")
}

/// One schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleView {
    pub schedule_id: ScheduleId,
    pub name: String,
    pub workflow: String,
    pub origin: Origin,
    pub cron: String,
    /// The expression in words.
    pub description: String,
    pub timezone: String,
    pub dst: DstPolicy,
    pub overlap: Overlap,
    pub catch_up_ms: Millis,
    pub jitter_ms: Millis,
    pub inputs: Json,
    pub workspace: String,
    pub paused: bool,
    /// Why it is paused, or what is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<SlotView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run_id: Option<RunId>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
}

/// A schedule with what became of its latest slots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleDetail {
    #[serde(flatten)]
    pub schedule: ScheduleView,
    pub slots: Vec<PastSlot>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleList {
    pub schedules: Vec<ScheduleView>,
    /// Pass it as `after` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<String>,
}

/// A slot that will come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SlotView {
    pub at: Timestamp,
    /// The slot and its jitter.
    pub starts_at: Timestamp,
    /// The slot in UTC, and as the clocks of the schedule's zone show it.
    pub utc: String,
    pub local: String,
}

/// A slot that has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PastSlot {
    pub at: Timestamp,
    pub utc: String,
    pub state: SlotState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Upcoming {
    pub name: String,
    pub timezone: String,
    pub slots: Vec<SlotView>,
}

/// Why a schedule rests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseSchedule {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
