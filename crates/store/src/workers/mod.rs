//! Worker sessions: one registration of a worker process each.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::{SessionRow, UnlistedClaim};
pub use writes::{
    CloseSession, DrainSession, ExpireSessions, ForgetSession, RegisterSession, RenewSession, SetSessionState,
};
