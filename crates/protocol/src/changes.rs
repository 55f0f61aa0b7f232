//! What is asked and answered about changes that a second admin must agree to.

use interlock_core::ids::ChangeId;
use interlock_core::json::Json;
use interlock_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where the calls live.
pub mod path {
    pub const CHANGES: &str = "/api/v1/changes";
    pub const CHANGE: &str = "/api/v1/changes/{change}";
    pub const DECISION: &str = "/api/v1/changes/{change}/decision";
}

/// The header by which a request names the change that it carries out.
pub const CHANGE_HEADER: &str = "interlock-change";

/// Bounds of these calls.
pub mod limits {
    use interlock_core::time::Millis;

    /// How long a change waits for a second person.
    pub const DECIDED_WITHIN: Millis = Millis::from_hours(24);
    /// How long it can be carried out once they have agreed.
    pub const USED_WITHIN: Millis = Millis::from_hours(1);
    pub const NOTES_BYTES_MAX: usize = 4 << 10;
}

/// One change: the request that was made, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangeView {
    pub change: ChangeId,
    /// `policy` or `access`.
    pub subject: String,
    pub method: String,
    pub path: String,
    /// The body of the request, whole.
    pub body: Json,
    /// `requested`, `approved`, `rejected`, `used` or `expired`.
    pub state: String,
    pub asked_by: String,
    pub asked_at: Timestamp,
    /// Until when it can be decided on; once it is agreed to, until when it can be carried out.
    pub expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangeList {
    pub changes: Vec<ChangeView>,
    /// Pass it as `after` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<ChangeId>,
}

/// A second admin's decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecideChange {
    pub approve: bool,
    /// Needed to reject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}
