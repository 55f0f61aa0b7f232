//! The outbox: messages that were committed with a run's change and wait to be sent.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::{DeadLetter, OutboxDestination, OutboxMessage};
pub use writes::{OutboxDelivered, OutboxFailed, OutboxRetry, ReplayDeadLetters, TakeMessage};
