use interlock_core::ids::{RunId, SessionId, TenantId};
use interlock_core::state::AssignmentState;
use interlock_core::time::Timestamp;

/// A run that a session was offered and has not answered, or that is its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveAssignment {
    pub tenant: TenantId,
    pub run: RunId,
    pub session: SessionId,
    pub state: AssignmentState,
    pub offered_at: Timestamp,
    pub acked_at: Option<Timestamp>,
}
