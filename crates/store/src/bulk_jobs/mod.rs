//! Bulk jobs: one action on runs that were chosen once.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::{BulkFailure, BulkJob};
pub use writes::{AdvanceBulkJob, ClaimBulkJob, PutBulkJob};
