//! Worker sessions: one registration of a worker process each.

mod reads;
mod rows;
pub(crate) mod sql;

pub use rows::{SessionRow, Unlisted};
