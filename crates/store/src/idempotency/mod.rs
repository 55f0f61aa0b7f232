//! Idempotency keys: what makes a repeated request one request.

mod reads;
mod rows;
pub(crate) mod sql;

pub use rows::{IdempotencyRecord, StartAnswer};
