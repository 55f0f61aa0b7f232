//! Worker sessions: one registration of a worker process each.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::{SessionRow, Unlisted};
pub use writes::{CloseSession, ExpireSessions, RegisterSession, RenewSession, SetSessionState};
