//! Steps that a worker can claim, and steps that one has claimed.

mod reads;
mod ready;
mod rows;
pub(crate) mod sql;

pub use rows::{Claimed, HeldStep, QueueLoad, ReadyGroup, ReadyRun};
