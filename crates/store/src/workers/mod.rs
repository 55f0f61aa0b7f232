//! Worker sessions: one registration of a worker process each.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::{SessionRow, UnlistedClaim};
pub use writes::{
    ClearSessionFault, CloseSession, CountLostAssignments, DrainSession, ExpireSessions, ForgetSession,
    RegisterSession, RenewSession, SetSessionFault, SetSessionMaintenance, SetSessionState,
};
