//! Idempotency keys: what makes a repeated request one request.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::{IdempotencyRecord, StartAnswer};
pub use writes::{BeginIdempotency, FinishIdempotency, RenewIdempotency};
