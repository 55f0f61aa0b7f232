//! What is asked and answered about delegations: a person's right to decide, lent to another for a time.

use interlock_core::ids::DelegationId;
use interlock_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where the calls live.
pub mod path {
    pub const DELEGATIONS: &str = "/api/v1/delegations";
    pub const DELEGATION: &str = "/api/v1/delegations/{delegation}";
}

/// Bounds of these calls.
pub mod limits {
    use interlock_core::time::Millis;

    /// How long a delegation may last.
    pub const SPAN_MAX: Millis = Millis::from_hours(24 * 90);
    /// How far ahead it may begin.
    pub const AHEAD_MAX: Millis = Millis::from_hours(24 * 365);
    /// Delegations of one person, and to one person, that are not over.
    pub const OPEN_MAX: u32 = 20;
}

/// One delegation. It stays to be read when it is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DelegationView {
    pub delegation: DelegationId,
    /// Whose right to decide it is.
    pub delegator: String,
    /// Who may use it.
    pub delegate: String,
    pub from: Timestamp,
    pub until: Timestamp,
    pub reason: String,
    /// It counts at this moment.
    pub in_force: bool,
    pub created_at: Timestamp,
    pub created_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_by: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DelegationList {
    pub delegations: Vec<DelegationView>,
    /// Pass it as `after` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<DelegationId>,
}

/// Lends a right to decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateDelegation {
    /// Whose it is; the caller's own where omitted. Only an admin names another person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegator: Option<String>,
    pub delegate: String,
    /// From now on where omitted; an instant that has passed is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// At most 90 days after `from`.
    pub until: Timestamp,
    pub reason: String,
}
