//! Approvals and the votes on them, as lists show them. Their changes are part of a run's change set.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::{ApprovalFilter, ApprovalRow, DuePlace};
pub use writes::RecordPresentState;
