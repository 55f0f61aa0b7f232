use interlock_core::ids::{RunId, SessionId, TenantId};
use interlock_core::state::Control;
use interlock_core::time::Timestamp;
use interlock_core::work::AttemptRef;

/// Runs that share one place in the round robin.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReadyGroup {
    pub tenant: TenantId,
    pub workspace: String,
    pub queue: String,
}

/// A run whose current step can be claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyRun {
    pub tenant: TenantId,
    pub run: RunId,
    pub workspace: String,
    pub queue: String,
    pub priority: i32,
    pub eligible_at: Timestamp,
}

/// A running step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    pub tenant: TenantId,
    pub run: RunId,
    pub position: u32,
    pub attempt: u32,
    pub session: SessionId,
    pub control: Control,
}

impl Claimed {
    pub const fn at(&self) -> AttemptRef {
        AttemptRef { tenant: self.tenant, run: self.run, position: self.position, attempt: self.attempt }
    }
}

/// What waits on one of a tenant's queues, and what workers have from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueLoad {
    pub queue: String,
    /// Steps that can be claimed now.
    pub ready: u64,
    /// Steps whose time comes later: retries that back off.
    pub delayed: u64,
    pub running: u64,
    /// Since when the oldest step can be claimed.
    pub oldest_ready_at: Option<Timestamp>,
}

/// A step that a worker session has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldStep {
    pub run: RunId,
    pub position: u32,
    pub attempt: u32,
    pub claimed_at: Option<Timestamp>,
}
